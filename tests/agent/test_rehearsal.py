from __future__ import annotations

import subprocess
import sys

from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare_agent.runtime.rehearsal import MODEL
from posed_models import unary

_SECONDS = 60
"""A thread that has ended is among those of its process for a moment."""

_REHEARSAL = f"""
import os, time
from edgeflare_agent.runtime.rehearsal import rehearse
from edgeflare_agent.runtime.runtime_packages import interpreter_module
interpreter_module()
before = os.listdir("/proc/self/task")
rehearse()
deadline = time.monotonic() + {_SECONDS}
while os.listdir("/proc/self/task") != before:
    assert time.monotonic() < deadline
    time.sleep(0.01)
"""


def test_the_small_model_is_one_operator_as_it_is_written_elsewhere() -> None:
    assert graph_file(unary("ABS", (1,))) == MODEL


def test_a_rehearsal_leaves_no_thread_behind_since_its_process_forks() -> None:
    subprocess.run([sys.executable, "-c", _REHEARSAL], check=True)
