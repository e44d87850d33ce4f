from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare_agent.runtime import IsolatedModel, Options
from edgeflare_agent.runtime.tflite.rehearsal import MODEL
from posed_models import unary
from processes import fork_servers

_SECONDS = 60
"""A thread that has ended is among those of its process for a moment."""

_REHEARSAL = f"""
import os, time
from edgeflare_agent.runtime.tflite.rehearsal import rehearse
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


def launcher(folder: Path, rehearsal: str = "getpid") -> list[str]:
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
    with IsolatedModel.open(int8_model, Options("builtin"), launcher(tmp_path)) as model:
        (server,) = set(fork_servers(os.getpid())) & noted(tmp_path)
        assert server != model.worker_pid


def test_models_open_where_the_small_one_kills_the_fork_server(
    int8_model: Path, tmp_path: Path
) -> None:
    with IsolatedModel.open(int8_model, Options("builtin"), launcher(tmp_path, "abort")) as model:
        model.run(bytes(8), 1)
        assert len(noted(tmp_path)) == 2
