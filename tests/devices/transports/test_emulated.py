from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.transports import child_agent
from edgeflare.devices.transports.emulated import EmulatedTransport
from edgeflare.errors import InfrastructureError, UserError
from processes import alive, children


def profile(python: str | None = None) -> Profile:
    source = Path("mine.toml")
    return Profile(name="mine", transport="emulated", source=source, python=python)


def script(path: Path, text: str) -> str:
    """Write a program that stands where a Python interpreter is expected."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_a_profile_runs_on_its_kernels(
    kernels: str,
    model: Path,
    images: NDArray[np.float32],
    expected: Callable[[str], NDArray[np.float32]],
) -> None:
    with connect(find_profile(f"emulated-{kernels}")) as device:
        session = device.open(model)
        answered = session.submit(images).result(200)
        provenance = device.provenance

    assert np.array_equal(answered.outputs, expected(kernels))
    assert answered.failures == {}
    assert answered.busy_seconds > 0
    assert provenance.kernels == kernels
    assert provenance.delegated_nodes == (1 if kernels == "xnnpack" else 0)


@pytest.mark.slow
def test_nothing_is_left_behind(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = set(descendants(os.getpid()))
    with connect(find_profile("emulated-builtin")) as device:
        device.open(model)
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        started = set(descendants(os.getpid())) - others
        assert len(started) >= 2  # agent and worker

    assert list(tmp_path.iterdir()) == []
    assert not [pid for pid in started if alive(pid)]


@pytest.mark.slow
def test_the_agent_ends_with_a_host_that_is_killed(tmp_path: Path) -> None:
    host = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time\n"
            "from edgeflare.devices.profile_lookup import find_profile\n"
            "from edgeflare.devices.device import connect\n"
            "device = connect(find_profile('emulated-builtin'))\n"
            "print('up', flush=True)\n"
            "time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert host.stdout is not None
    assert host.stdout.readline() == b"up\n"
    (agent,) = descendants(host.pid)
    host.kill()
    host.communicate()

    assert ends(agent)


def test_ctrl_c_does_not_reach_the_agent() -> None:
    with EmulatedTransport(profile()):
        (agent,) = agents()
        assert os.getsid(agent) != os.getsid(0)


def test_a_python_that_is_not_there() -> None:
    with pytest.raises(UserError) as caught:
        EmulatedTransport(profile("/no/such/python")).open()
    assert str(caught.value) == (
        'mine.toml: python = "/no/such/python": cannot be run: No such file or directory'
    )


def test_an_agent_that_does_not_start_says_why(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "echo warming up >&2; echo no runtime here >&2; exit 7")

    with pytest.raises(InfrastructureError) as caught:
        EmulatedTransport(profile(python)).open()
    assert str(caught.value) == (
        "mine: the agent did not start: its process ended with exit code 7; it said:"
        " no runtime here"
    )


def test_an_agent_that_is_never_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_agent, "READY_SECONDS", 0.2)
    monkeypatch.setattr(child_agent, "STOP_SECONDS", 0.2)
    python = script(tmp_path / "python", "echo still thinking >&2; exec sleep 60")

    with pytest.raises(InfrastructureError) as caught:
        EmulatedTransport(profile(python)).open()
    assert str(caught.value) == (
        "mine: the agent was not ready within 0.2 s; it said: still thinking"
    )


@pytest.mark.slow
def test_a_profile_says_how_long_the_agent_may_take_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_agent, "STOP_SECONDS", 0.2)
    python = script(tmp_path / "python", "exec sleep 60")
    with pytest.raises(InfrastructureError, match="the agent was not ready within 1 s"):
        EmulatedTransport(replace(profile(python), start_timeout_seconds=1)).open()


def test_an_agent_that_says_something_else(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "echo hello")

    with pytest.raises(InfrastructureError, match=r"printed b'hello.n' where its ready line was"):
        EmulatedTransport(profile(python)).open()


def test_last_words_tell_how_the_agent_ended() -> None:
    transport = EmulatedTransport(profile())
    transport.open()
    assert transport.failure_reason() == ""
    (agent,) = agents()
    os.kill(agent, signal.SIGKILL)
    transport.close()
    transport.close()

    assert transport.failure_reason().startswith("its process was killed by SIGKILL")


@pytest.mark.old_board
def test_another_interpreter_with_an_older_runtime(
    old_board_python: Path, model: Path, images: NDArray[np.float32]
) -> None:
    """It finds this installation's agent, and nothing else of it."""
    board = replace(find_profile("emulated-builtin"), python=str(old_board_python))
    with connect(board) as device:
        answered = device.open(model).submit(images).result(200)
        assert (device.provenance.runtime, device.provenance.runtime_version) == (
            "tflite-runtime",
            "2.14.0",
        )
    assert np.isfinite(answered.outputs).all()


def descendants(pid: int) -> list[int]:
    """The process ids of children, and of theirs."""
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def agents() -> list[int]:
    """The agents below this process; a fork server, which may be left, runs another module."""
    below = descendants(os.getpid())
    return [pid for pid in below if b"edgeflare_agent" in command(pid).split(b"\0")]


def command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def ends(pid: int) -> bool:
    """Wait for a process that is no child of ours."""
    for _ in range(4000):  # 200 s
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False
