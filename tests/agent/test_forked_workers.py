"""How workers begin: their fork servers, rehearsals, the time that they may take, their files."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from agent_calls import wait_until
from edgeflare.conform.graph_file import graph_file
from edgeflare.devices import connection
from edgeflare_agent.runtime import (
    IsolatedModel,
    Options,
    WorkerLost,
    fork_server_process,
    worker_process,
)
from edgeflare_agent.runtime.fork_server import MODEL
from edgeflare_agent.runtime.fork_server_process import ForkedProcess
from edgeflare_agent.runtime.shared_memory import nameless_file
from edgeflare_agent.runtime.worker_messages import LoadingOrder
from edgeflare_agent.runtime.worker_process import (
    WorkerProcess,
    end_fork_servers,
    fork_server_socket,
)
from posed_models import unary
from processes import alive, fork_servers, kill, workers

pytestmark = pytest.mark.usefixtures("own_agents")

OPTIONS = Options("builtin")


def own_servers() -> set[int]:
    return set(fork_servers(os.getpid()))


def answer(model: IsolatedModel) -> bytes:
    return model.run(bytes(8), 1).outputs


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
        kill(before)
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
        server = parent(old.worker_pid or 0)
        monkeypatch.setenv("EDGEFLARE_SAID_LATER", "so")
        monkeypatch.chdir(tmp_path)
        with IsolatedModel.open(int8_model, OPTIONS) as new:
            environment = Path(f"/proc/{new.worker_pid}/environ").read_bytes()
            assert b"EDGEFLARE_SAID_LATER=so" in environment.split(b"\0")
            assert Path(f"/proc/{new.worker_pid}/cwd").readlink() == tmp_path
            assert parent(new.worker_pid or 0) != server
        answer(old)
    # What nobody asks any more ends with its last worker.
    assert wait_until(lambda: not alive(server))


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
    with IsolatedModel.open(int8_model, OPTIONS), IsolatedModel.open(int8_model, OPTIONS) as model:
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


_ENDING = """
import contextlib, os, sys, threading, time
from pathlib import Path
from edgeflare_agent.runtime import IsolatedModel, Options, WorkerLost, end_all_workers

path, launcher, begun = map(Path, sys.argv[1:])

def wait():
    with contextlib.suppress(WorkerLost):
        IsolatedModel.open(path, Options("builtin"), [str(launcher)])

waiting = threading.Thread(target=wait, daemon=True)
waiting.start()
while not (begun.exists() and begun.read_text()):
    time.sleep(0.01)
end_all_workers(10.0)
waiting.join(20)
print(len(begun.read_text().splitlines()), waiting.is_alive())
"""
"""Ends the workers of a process of which a thread waits for a fork server."""


def test_no_fork_server_is_started_once_the_process_ends(int8_model: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    launcher = script(tmp_path / "launcher", f"echo begun >> {begun}\nexec sleep 600\n")
    command = [sys.executable, "-c", _ENDING, str(int8_model), launcher, str(begun)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    assert said.stdout.split() == ["1", "False"]


def test_a_launcher_that_starts_nothing_is_said_to(int8_model: Path, tmp_path: Path) -> None:
    launcher = script(tmp_path / "launcher", "echo no Python here >&2\nexit 3\n")
    with pytest.raises(WorkerLost, match="exit code 3; it last said: no Python here"):
        IsolatedModel.open(int8_model, OPTIONS, [launcher])


def test_servers_end_when_they_are_told_to(int8_model: Path) -> None:
    with IsolatedModel.open(int8_model, OPTIONS):
        assert own_servers()
    end_fork_servers()
    assert not own_servers()


def test_the_socket_for_a_child_is_there_as_long_as_it_is_needed() -> None:
    with fork_server_socket() as descriptor:
        assert descriptor is not None
        end_fork_servers()
        assert stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_server_that_was_lost_before_it_forked_here_is_replaced(int8_model: Path) -> None:
    with fork_server_socket():  # for a child, which has had it fork
        kill(own_servers())
    with IsolatedModel.open(int8_model, OPTIONS) as model:
        assert parent(model.worker_pid or 0) in own_servers()


def test_the_end_of_a_process_is_seen_where_nobody_tells_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fork_server_process, "_UNTOLD_SECONDS", 0.1)
    told, tells = os.pipe()
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        process = ForkedProcess(sleeper.pid, told)
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        sleeper.kill()
    assert process.wait(60) == -signal.SIGKILL
    os.close(tells)


def test_what_a_worker_has_left_running_prints_into_nothing_of_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_END_SECONDS", 0.2)
    line = tmp_path / "line"
    os.mkfifo(line)
    launcher = script(
        tmp_path / "launcher",
        f'case "$*" in *fork_server*) exit 3;; esac\n(read word < "{line}"; echo "$word" >&2) &\n',
    )
    shared = nameless_file("shared")
    worker = WorkerProcess([launcher], shared)
    worker.end()
    pipes = [os.pipe() for _ in range(8)]  # which get the numbers that are free
    for _, writes in pipes:
        os.write(writes, b"another one's")
    line.write_text("late\n")
    for _, writes in pipes:
        os.close(writes)
    worker._listener.join(200)
    assert [os.read(reads, 100) for reads, _ in pipes] == [b"another one's"] * len(pipes)
    for descriptor in (shared, *(reads for reads, _ in pipes)):
        os.close(descriptor)


def script(path: Path, content: str) -> str:
    path.write_text(f"#!/bin/sh\n{content}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


_SECONDS = 60
"""A thread that has ended is among those of its process for a moment."""

_REHEARSAL = f"""
import os, time
from edgeflare_agent.runtime.fork_server import rehearse
from edgeflare_agent.runtime.tflite.packages import interpreter_module
interpreter_module()
before = os.listdir("/proc/self/task")
rehearse()
deadline = time.monotonic() + {_SECONDS}
while os.listdir("/proc/self/task") != before:
    assert time.monotonic() < deadline
    time.sleep(0.01)
"""


def noted(folder: Path) -> set[int]:
    """Return the processes that ran a model."""
    return {int(line) for line in (folder / "noted").read_text().split()}


def noting_launcher(folder: Path, rehearsal: str = "getpid") -> list[str]:
    """Return a launcher whose processes note that they run a model; rehearsals do a call of os."""
    script = folder / "launcher.py"
    script.write_text(f"""
import os, sys
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
invoke = LoadedModel.invoke
def noting(*arguments):
    with open({str(folder / "noted")!r}, "a") as file:
        print(os.getpid(), file=file)
    if os.getpid() == started and "fork_server" in module:
        os.{rehearsal}()
    invoke(*arguments)
started = os.getpid()
LoadedModel.invoke = noting
_, _, code, module, *rest = sys.argv
sys.argv = ["-c", module, *rest]
exec(code)
""")
    return [sys.executable, str(script)]


def test_the_small_model_is_one_operator_as_it_is_written_elsewhere() -> None:
    assert graph_file(unary("ABS", (1,))) == MODEL


def test_a_rehearsal_leaves_no_thread_behind_since_its_process_forks() -> None:
    subprocess.run([sys.executable, "-c", _REHEARSAL], check=True)


def test_a_fork_server_runs_a_model_before_it_forks(int8_model: Path, tmp_path: Path) -> None:
    with IsolatedModel.open(int8_model, Options("builtin"), noting_launcher(tmp_path)) as model:
        (server,) = set(fork_servers(os.getpid())) & noted(tmp_path)
        assert server != model.worker_pid


def test_models_open_where_the_small_one_kills_the_fork_server(
    int8_model: Path, tmp_path: Path
) -> None:
    with IsolatedModel.open(
        int8_model, Options("builtin"), noting_launcher(tmp_path, "abort")
    ) as model:
        model.run(bytes(8), 1)
        assert len(noted(tmp_path)) == 2


class SlowWorker:
    """A worker that imports its runtime and then takes longer than anybody waits."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def send(self, message: dict[str, Any]) -> None:
        del message

    def receive(self, seconds: float) -> dict[str, Any] | None:
        self.waited.append(seconds)
        return {"runtime": "ai-edge-litert 2"} if len(self.waited) == 1 else None


def test_a_worker_that_warms_up_has_time_for_it() -> None:
    worker = SlowWorker()
    options = Options("builtin", warmup=30, input_timeout_seconds=10.0)
    order = LoadingOrder("a.tflite", "", options)
    with pytest.raises(WorkerLost, match="did not get ready within 480 s"):
        worker_process.load(cast("WorkerProcess", worker), order)
    assert worker.waited == [180, 480]


def test_the_host_waits_longer_than_the_agent() -> None:
    """So that the agent says what went wrong, and its host is not gone by then."""
    assert connection.LOAD_SECONDS > worker_process._LOAD_SECONDS


@pytest.mark.parametrize("in_memory", [True, False])
def test_it_is_empty_and_keeps_what_is_written(
    monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    file = nameless_file("edgeflare-test")
    try:
        assert os.fstat(file).st_size == os.fstat(file).st_nlink == 0
        assert os.write(file, b"some") == 4
        assert os.pread(file, 9, 0) == b"some"
    finally:
        os.close(file)
