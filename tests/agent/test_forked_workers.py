from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare_agent.runtime import IsolatedModel, Options, WorkerLost
from edgeflare_agent.runtime.forked_workers import end_fork_servers
from processes import alive, fork_servers, workers

OPTIONS = Options("builtin")
DEADLINE_SECONDS = 200


def own_servers() -> set[int]:
    return set(fork_servers(os.getpid()))


def answer(model: IsolatedModel) -> bytes:
    return model.run(bytes(8), 1).outputs


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_models_that_are_loaded_one_after_the_other_have_one_server(int8_model: Path) -> None:
    with IsolatedModel.open(int8_model, OPTIONS) as first:
        expected, pid = answer(first), first.worker_pid
        before = own_servers()
        with IsolatedModel.open(int8_model, OPTIONS) as second:
            assert answer(second) == expected
            assert second.worker_pid != pid
            assert {parent(one) for one in (pid, second.worker_pid) if one} <= before
    assert own_servers() == before
    assert not workers(os.getpid())


def test_a_server_that_is_killed_is_replaced_and_its_workers_go_on(int8_model: Path) -> None:
    with IsolatedModel.open(int8_model, OPTIONS) as old:
        expected = answer(old)
        before = own_servers()
        for server in before:
            os.kill(server, signal.SIGKILL)
        assert answer(old) == expected
        with IsolatedModel.open(int8_model, OPTIONS) as new:
            assert answer(new) == expected
        assert not own_servers() & before
        assert old.worker_pid is not None
        os.kill(old.worker_pid, signal.SIGKILL)
        assert answer(old) == expected
        assert old.restarts == 1


def test_workers_have_the_environment_and_the_folder_of_the_moment(
    int8_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IsolatedModel.open(int8_model, OPTIONS) as old:
        before = own_servers()
        monkeypatch.setenv("EDGEFLARE_SAID_LATER", "so")
        monkeypatch.chdir(tmp_path)
        with IsolatedModel.open(int8_model, OPTIONS) as new:
            environment = Path(f"/proc/{new.worker_pid}/environ").read_bytes()
            assert b"EDGEFLARE_SAID_LATER=so" in environment.split(b"\0")
            assert Path(f"/proc/{new.worker_pid}/cwd").readlink() == tmp_path
        assert parent(old.worker_pid or 0) in before
        answer(old)
    # What nobody asks any more ends with its last worker.
    wait_until(lambda: not any(map(alive, before)))


def test_a_worker_starts_in_a_folder_that_was_removed(
    int8_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    model = int8_model.absolute()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with IsolatedModel.open(model, OPTIONS) as opened:
        answer(opened)


def test_a_worker_leaves_nothing_open_that_is_the_servers(int8_model: Path) -> None:
    with (
        IsolatedModel.open(int8_model, OPTIONS),
        IsolatedModel.open(int8_model, OPTIONS) as model,
    ):
        open_files = [str(one.readlink()) for one in Path(f"/proc/{model.worker_pid}/fd").iterdir()]
    assert not [one for one in open_files if one.startswith("socket:")]
    assert len({one for one in open_files if one.startswith("pipe:")}) == 3


def test_a_launcher_whose_server_cannot_fork_starts_each_worker_by_itself(
    int8_model: Path, tmp_path: Path
) -> None:
    launcher = script(
        tmp_path / "launcher",
        f'case "$*" in *fork_server*) exit 3;; esac\nexec {sys.executable} "$@"\n',
    )
    with IsolatedModel.open(int8_model, OPTIONS, [launcher]) as model:
        assert parent(model.worker_pid or 0) == os.getpid()
        answer(model)


def test_a_launcher_that_starts_nothing_is_said_to(int8_model: Path, tmp_path: Path) -> None:
    launcher = script(tmp_path / "launcher", "echo no Python here >&2\nexit 3\n")
    with pytest.raises(WorkerLost, match="exit code 3; it last said: no Python here"):
        IsolatedModel.open(int8_model, OPTIONS, [launcher])


def test_servers_end_when_they_are_told_to(int8_model: Path) -> None:
    with IsolatedModel.open(int8_model, OPTIONS):
        assert own_servers()
    end_fork_servers()
    assert not own_servers()


def script(path: Path, content: str) -> str:
    path.write_text(f"#!/bin/sh\n{content}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
