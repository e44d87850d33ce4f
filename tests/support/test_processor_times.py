"""Processor time of processes that run below a test, and of those that it has waited for."""

from __future__ import annotations

import subprocess
import sys
import time

from processor_times import spent_seconds


def test_a_process_counts_while_it_runs_and_when_it_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            before = spent_seconds(), time.process_time()
            while (below := _below(before)) < 0.2:
                time.sleep(0.05)
        finally:
            busy.kill()
    assert _below(before) > below - 0.1  # the clock of the system ticks a hundred times a second


def _below(before: tuple[float, float]) -> float:
    """Return the seconds of other processes than this one."""
    return spent_seconds() - before[0] - (time.process_time() - before[1])
