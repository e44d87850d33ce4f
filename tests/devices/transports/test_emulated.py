"""Emulated devices: their agents, their scratch folders, and the driver of a GPU in software."""

from __future__ import annotations

import errno
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

from agent_calls import wait_until
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile, find_shipped_profile
from edgeflare.devices.transports import child_agent, emulated, scratch
from edgeflare.devices.transports.emulated import (
    PLUGIN,
    EmulatedTransport,
    check_driver,
    driver_variables,
)
from edgeflare.devices.transports.scratch import ScratchFolder
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.record.folder_contents import BEGUN_LIST
from processes import agents, alive, children, descendants, fork_servers, kill, workers


def profile(python: str | None = None) -> Profile:
    source = Path("mine.toml")
    return Profile(name="mine", transport="emulated", source=source, python=python)


def script(path: Path, text: str) -> str:
    """Write a program that stands where a Python interpreter is expected."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["xnnpack", "reference"])
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
def test_nothing_is_left_behind(model: Path, temporary: Path) -> None:
    others = set(descendants(os.getpid()))
    with connect(find_profile("emulated-builtin")) as device:
        device.open(model)
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        # The fork server of this process, which it may have begun, lives on for the next device.
        started = set(descendants(os.getpid())) - others - set(fork_servers(os.getpid()))
        assert len(started) >= 2  # agent and worker

    assert list(temporary.iterdir()) == []
    assert not [pid for pid in started if alive(pid)]


@pytest.mark.slow
def test_agent_and_fork_server_end_with_a_host_that_is_killed(tmp_path: Path) -> None:
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
    started = descendants(host.pid)
    assert len(started) == 2
    host.kill()
    host.communicate()

    assert wait_until(lambda: not any(alive(pid) for pid in started))


def test_ctrl_c_does_not_reach_the_agent() -> None:
    with EmulatedTransport(profile()):
        (agent,) = agents(os.getpid())
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
    (agent,) = agents(os.getpid())
    os.kill(agent, signal.SIGKILL)
    transport.close()
    transport.close()

    assert transport.failure_reason().startswith("its process was killed by SIGKILL")


@pytest.mark.slow
def test_the_agent_has_workers_from_the_fork_server_of_this_process_as_long_as_that_lives(
    model: Path, images: NDArray[np.float32]
) -> None:
    with connect(find_profile("emulated-xnnpack")) as device:
        session = device.open(model)
        expected = session.submit(images).result(200)
        (agent,) = agents(os.getpid())
        assert not children(agent)
        # A worker of an earlier test ends itself.
        kill([*fork_servers(os.getpid()), *workers(os.getpid())])
        again = session.submit(images).result(200)
        assert fork_servers(agent) == children(agent) != []
    np.testing.assert_array_equal(again.outputs, expected.outputs)


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


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(path: Path) -> None:
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))


def killed_processs_folder(temporary: Path) -> Path:
    code = (
        "import os; from edgeflare.devices.transports.scratch import ScratchFolder\n"
        "print(ScratchFolder().path, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    path = Path(done.stdout.strip())
    assert path.is_dir()
    return path


def test_it_is_removed_with_all_that_is_in_it(temporary: Path) -> None:
    folder = ScratchFolder()
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "file").touch()
    folder.remove()

    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_swept_up_and_nothing_else(temporary: Path) -> None:
    abandoned, fresh = killed_processs_folder(temporary), killed_processs_folder(temporary)
    in_use = ScratchFolder()
    somebody_elses = temporary / "other-emulated"
    somebody_elses.mkdir()
    alike = temporary / "edgeflare-scratch-of-mine"
    alike.mkdir()
    (alike / "mine").touch()
    empty, begun = (temporary / f"edgeflare-scratch-{name}" for name in ("empty", "begun"))
    empty.mkdir()
    begun.mkdir()
    (begun / BEGUN_LIST).write_text('{"schema":')
    for path in (abandoned, in_use.path, somebody_elses, alike, empty, begun):
        age(path)

    another = ScratchFolder()

    assert set(temporary.iterdir()) == {fresh, in_use.path, another.path, somebody_elses, alike}
    for folder in (in_use, another):
        folder.remove()


def test_one_that_cannot_be_begun_is_removed_and_unlocked(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "begin_list", full)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space left"):
        ScratchFolder()
    assert list(temporary.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def software(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver in software where browsers install it."""
    file = tmp_path / "lib" / "chromium" / "vk_swiftshader_icd.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    monkeypatch.setattr(emulated, "_SOFTWARE", (str(tmp_path / "lib*" / "chromium*/*.json"),))
    monkeypatch.setattr(emulated, "_INSTALLED", (str(tmp_path / "icd.d" / "*.json"),))
    for name in emulated.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return file


def test_the_driver_of_a_browser_is_named_to_old_and_new_loaders(software: Path) -> None:
    expected = {"VK_DRIVER_FILES": str(software), "VK_ICD_FILENAMES": str(software)}
    assert driver_variables({"HOME": "/root"}) == expected


@pytest.mark.parametrize("name", emulated.VARIABLES)
def test_the_one_that_the_user_names_counts(software: Path, name: str) -> None:
    assert software.exists()
    assert driver_variables({name: "/opt/driver.json"}) == {}


def test_the_loaders_own_are_taken_where_there_is_none(software: Path) -> None:
    software.unlink()
    assert driver_variables({}) == {}


def test_the_check_names_the_driver_or_what_installs_one(
    software: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulated, "find_library", lambda name: f"lib{name}.so.1")
    assert check_driver().found == str(software)
    own = software.with_name("driver.json")
    own.write_text("{}")
    monkeypatch.setenv("VK_DRIVER_FILES", str(own))
    assert check_driver().found == str(own)
    monkeypatch.setattr(emulated, "find_library", lambda _name: None)
    check = check_driver()
    assert not check.found
    assert not check.needed
    assert "apt-get install libvulkan1 chromium" in check.mend
    status = PLUGIN.status
    gpu = find_shipped_profile("emulated-gpu")
    assert status(gpu) == f"no Vulkan driver or loader on this machine: {check.mend}"
    assert status(gpu.with_kernels("builtin")) == "here"


def test_a_driver_that_the_user_names_and_that_is_not_there_is_no_driver(
    software: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", str(software.with_name("gone.json")))
    checked = check_driver()
    assert checked.found == ""
    assert "VK_DRIVER_FILES names" in checked.mend
