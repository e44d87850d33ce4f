"""What becomes of agents when the link is lost at an inconvenient moment."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflare.devices.connection import Connection
from edgeflare.devices.handshake import shake_hands
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import on_device
from edgeflare.devices.remote.remote import Output, RemoteLost
from edgeflare.devices.remote.transport import RemoteTransport
from edgeflare.devices.transports.transport import Endpoint
from here import Here


class LateLaunch(Here):
    """Loses the link during the first launch, whose shell goes on, and slowly."""

    launched: subprocess.Popen[bytes] | None = None

    def run(self, script: str, seconds: float, command: str) -> Output:
        if command == "launch" and self.launched is None:
            self.launched = subprocess.Popen(["sh", "-c", f"sleep 2\n{script}"], stdout=-3)
            self.is_lost = True
        return super().run(script, seconds, command)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "host"))
    cache = tmp_path / "device"
    yield cache
    if cache.exists():
        names = [path.name for path in (cache / "runs").iterdir()]
        on_device.halt(Here(), str(cache), *names)


def profile(cache: Path) -> Profile:
    return Profile(name="here", transport="ssh", cache=str(cache), python=sys.executable)


def answers(endpoint: Endpoint) -> bool:
    connection = Connection("here", endpoint)
    try:
        return bool(shake_hands(connection).machine)
    finally:
        connection.close()


def test_an_agent_is_up_while_it_is_open(cache: Path) -> None:
    transport = RemoteTransport(profile(cache), Here())
    with transport as endpoint:
        assert answers(endpoint)
        assert len(on_device.running(Here(), str(cache))) == 1
    assert on_device.running(Here(), str(cache)) == []
    assert list((cache / "runs").iterdir()) == []
    assert transport.last_words() == ""
    transport.close()


def test_an_agent_that_a_lost_link_left_is_replaced_when_it_is_back(cache: Path) -> None:
    here = Here()
    transport = RemoteTransport(profile(cache), here)
    transport.open()
    before = on_device.running(here, str(cache))
    here.is_lost = True
    transport.close()
    with pytest.raises(RemoteLost):
        transport.open()
    here.is_lost = False
    assert on_device.running(here, str(cache)) == before
    with transport as endpoint:
        assert answers(endpoint)
        after = on_device.running(here, str(cache))
        assert len(after) == 1
        assert after != before
    assert on_device.running(here, str(cache)) == []


def test_an_agent_that_came_up_after_the_link_was_lost_is_ended_too(cache: Path) -> None:
    here = LateLaunch()
    transport = RemoteTransport(profile(cache), here)
    with pytest.raises(RemoteLost):
        transport.open()
    here.is_lost = False
    with transport as endpoint:
        assert answers(endpoint)
        assert here.launched is not None
        assert here.launched.wait(60) == 0
        deadline = time.monotonic() + 30
        while len(on_device.running(here, str(cache))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert on_device.running(here, str(cache)) == []
    assert list((cache / "runs").iterdir()) == []


def test_how_the_agent_ended_is_remembered(cache: Path) -> None:
    transport = RemoteTransport(profile(cache), Here())
    transport.open()
    (run,) = (cache / "runs").iterdir()
    pid = (run / "pid").read_text().strip()
    (run / "log").write_text("out of memory\n")
    subprocess.run(["kill", "-9", pid], check=True)
    transport.close()
    assert transport.last_words() == "its process had ended; it said: out of memory"
