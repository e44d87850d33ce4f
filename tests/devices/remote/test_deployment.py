"""What is sent to a device, and what becomes of agents when the link is lost at a bad moment."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.devices.agent_lease import AgentLease
from edgeflare.devices.connection import Connection
from edgeflare.devices.device import Device
from edgeflare.devices.handshake import shake_hands
from edgeflare.devices.lease import lease
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import deployment, on_device
from edgeflare.devices.remote.deployment import RemoteTransport, agent_code, target_of
from edgeflare.devices.remote.remote_shell import Output, RemoteLost
from edgeflare.devices.transports.emulated import EmulatedTransport
from edgeflare.devices.transports.transport import Endpoint
from edgeflare.devices.transports.transport_plugin import AgentDeployment, TransportPlugin
from edgeflare.errors import InfrastructureError, UserError
from loopback_remote import LoopbackRemote


def test_the_same_code_gives_the_same_file(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    made = []
    for folder in folders:
        folder.mkdir()
        made.append(agent_code(folder))
    assert made[0].sha256 == made[1].sha256
    content = made[0].file.read_bytes()
    assert content == made[1].file.read_bytes()
    assert made[0].sha256 == hashlib.sha256(content).hexdigest()


def test_unpacked_anywhere_it_runs_the_agent_with_the_python_that_it_is_told(
    tmp_path: Path,
) -> None:
    payload = agent_code(tmp_path)
    folder = tmp_path / "it's here"
    with tarfile.open(payload.file) as archive:
        names = archive.getnames()
        archive.extractall(folder)  # noqa: S202 - which was just made
    assert "agent" in names
    assert not [name for name in names if name.endswith((".pyc", ".pyi"))]
    script = "import sys, edgeflare_agent; print(edgeflare_agent.__file__, sys.argv[1:])"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" -c "{script}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [folder / "agent", "--port", "0"],
        env={**os.environ, "EDGEFLARE_AGENT_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == f"{folder}/edgeflare_agent/__init__.py ['--port', '0']\n"


@pytest.mark.parametrize(
    ("transport", "machine", "target"),
    [
        ("ssh", "aarch64", "linux-aarch64"),
        ("ssh", "x86_64", "linux-x86_64"),
        ("adb", "aarch64", "android-arm64"),
    ],
)
def test_the_machine_says_which_bundle(transport: str, machine: str, target: str) -> None:
    assert target_of(Profile(name="x", transport=transport), machine) == target


@pytest.mark.parametrize(
    ("transport", "machine", "words"),
    [
        ("ssh", "armv7l", r"32-bit system \(armv7l\).*tflite-runtime 2\.14.*armv7l.*python = "),
        ("adb", "armv8l", r"32-bit system"),
        ("ssh", "riscv64", r"riscv64, but bundles exist for .*aarch64.*name it in the profile"),
        ("adb", "x86_64", r"x86_64, but bundles exist for .*emulator image with an arm64"),
    ],
)
def test_a_machine_without_a_bundle_is_told_what_to_do(
    transport: str, machine: str, words: str
) -> None:
    with pytest.raises(UserError, match=words) as refused:
        target_of(Profile(name="x", transport=transport), machine)
    assert "\n" not in str(refused.value)


pytestmark = pytest.mark.slow


class LateLaunch(LoopbackRemote):
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
        names = [path.name for path in (cache / "runs").glob("*")]
        on_device.halt(LoopbackRemote(), str(cache), *names)


def profile(cache: Path) -> Profile:
    return Profile(name="here", transport="ssh", cache=str(cache), python=sys.executable)


def answers(endpoint: Endpoint) -> bool:
    connection = Connection("here", endpoint)
    try:
        return bool(shake_hands(connection).machine)
    finally:
        connection.close()


def test_an_agent_is_up_while_it_is_open(cache: Path) -> None:
    transport = RemoteTransport(profile(cache), LoopbackRemote())
    with transport as endpoint:
        assert answers(endpoint)
        assert len(on_device.running(LoopbackRemote(), str(cache))) == 1
    assert on_device.running(LoopbackRemote(), str(cache)) == []
    assert list((cache / "runs").iterdir()) == []
    assert transport.failure_reason() == ""
    transport.close()


class ByAnotherName(LoopbackRemote):
    """The same machine, named otherwise."""

    device = "there"


def test_devices_of_one_machine_are_told_apart_by_what_their_profiles_call_them(
    cache: Path,
) -> None:
    """Their agents, and the commands of this user, share no lease; their folders are their own."""
    profiles = [
        replace(profile(cache / name), agent_device=f"{cache} {name}") for name in ("gpu", "npu")
    ]
    with ExitStack() as stack:
        first = stack.enter_context(connected(profiles[0]))
        second = stack.enter_context(connected(profiles[1]))
        assert first.telemetry().uptime_seconds
        assert second.telemetry().uptime_seconds
        alias = replace(profiles[1], cache=str(cache / "third"))
        with pytest.raises(UserError, match="two of the devices named are the same one"):
            connected(alias)
        with pytest.raises(UserError, match="stand for one device"):
            connected(alias, ByAnotherName())


def connected(device: Profile, remote: LoopbackRemote | None = None) -> Device:
    return Device(device, RemoteTransport(device, remote or LoopbackRemote()), AgentLease())


def test_one_device_by_two_names_is_the_users_mistake(cache: Path) -> None:
    with RemoteTransport(profile(cache), LoopbackRemote()) as endpoint:
        with pytest.raises(UserError, match="two of the devices named are the same one"):
            RemoteTransport(profile(cache), ByAnotherName()).open()
        assert answers(endpoint)
    with RemoteTransport(profile(cache), ByAnotherName()) as endpoint:
        assert answers(endpoint)


def test_an_agent_that_a_lost_link_left_is_replaced_when_it_is_back(cache: Path) -> None:
    here = LoopbackRemote()
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
        assert here.launched.wait(200) == 0
        deadline = time.monotonic() + 200
        while len(on_device.running(here, str(cache))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert on_device.running(here, str(cache)) == []
    assert list((cache / "runs").iterdir()) == []


def test_how_the_agent_ended_is_remembered(cache: Path) -> None:
    here = LoopbackRemote()
    transport = RemoteTransport(profile(cache), here)
    transport.open()
    (run,) = (cache / "runs").iterdir()
    os.kill(int((run / "pid").read_text()), signal.SIGKILL)
    while on_device.running(here, str(cache)):  # a killed process takes a moment to be gone
        time.sleep(0.05)
    (run / "log").write_text("out of memory\n")
    transport.close()
    assert transport.failure_reason() == "its process had ended; it said: out of memory"


@pytest.fixture
def elsewhere(cache: Path) -> Iterator[subprocess.Popen[str]]:
    """Another host, whose leases nobody here sees, with the device open."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from edgeflare.devices.profile import Profile\n"
        "from edgeflare.devices.remote.deployment import RemoteTransport\n"
        "from loopback_remote import LoopbackRemote\n"
        f"profile = Profile(name='here', transport='ssh', cache={str(cache)!r},"
        " python=sys.executable)\n"
        "with RemoteTransport(profile, LoopbackRemote()):\n"
        "    print('up', flush=True)\n"
        "    input()\n"
    )
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(cache.parent / "elsewhere"),
        "PYTHONPATH": str(Path(__file__).parents[2] / "support"),
    }
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def test_a_device_that_another_host_uses_is_refused(
    cache: Path, elsewhere: subprocess.Popen[str]
) -> None:
    (theirs,) = on_device.running(LoopbackRemote(), str(cache))
    transport = RemoteTransport(profile(cache), LoopbackRemote())
    with pytest.raises(InfrastructureError) as refused:
        transport.open()
    assert re.fullmatch(
        rf"here: in use by {re.escape(platform.node())} for \d+ s \(its agent there is process"
        rf" {theirs.pid}\): wait until .* by itself within 2 minutes",
        str(refused.value),
    )
    assert on_device.running(LoopbackRemote(), str(cache)) == [theirs]
    assert [path.name for path in (cache / "runs").iterdir()] == [theirs.name]

    elsewhere.communicate("\n", timeout=300)
    with transport as endpoint:
        assert answers(endpoint)


def test_what_is_left_of_a_host_that_died_is_no_use(
    cache: Path, elsewhere: subprocess.Popen[str]
) -> None:
    (theirs,) = on_device.running(LoopbackRemote(), str(cache))
    elsewhere.kill()
    elsewhere.wait()
    with RemoteTransport(profile(cache), LoopbackRemote()) as endpoint:
        assert answers(endpoint)
        assert theirs not in on_device.running(LoopbackRemote(), str(cache))


class SlowToArrive(LoopbackRemote):
    """While something is sent, another host starts an agent."""

    def push(self, file: Path, target: str, seconds: float) -> None:
        super().push(file, target, seconds)
        run = Path(target).parents[1] / "runs" / "0123456789ab-1-1-cdef0123"
        run.mkdir(parents=True)
        self.other = subprocess.Popen(["sleep", "60"], cwd=run)
        (run / "pid").write_text(f"{self.other.pid}\n")
        (run / "began").write_text(f"{int(time.time()) - 600} lab-pc\n")


def test_one_that_began_while_the_agent_travelled_is_seen(cache: Path) -> None:
    here = SlowToArrive()
    with pytest.raises(InfrastructureError, match="in use by lab-pc for 10 minutes"):
        RemoteTransport(profile(cache), here).open()
    assert here.other.poll() is None
    here.other.kill()
    here.other.wait()


def test_a_device_that_is_held_is_left_alone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = AgentDeployment(lambda _: LoopbackRemote(), "~/edgeflare", {}, "")
    here = TransportPlugin(create=EmulatedTransport, deployment=there)
    monkeypatch.setattr(deployment, "transport", lambda _: here)
    board = profile(cache)

    with lease("here"), pytest.raises(UserError, match="here"):
        deployment.install_agent(board)
    assert not cache.exists()
    assert deployment.install_agent(board).sent_bytes
    with lease("here"), pytest.raises(UserError, match="here"):
        deployment.uninstall_agent(board)
    assert cache.exists()
    assert deployment.uninstall_agent(board) == str(cache)
    assert not cache.exists()
