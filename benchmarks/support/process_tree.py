"""What a command and all its processes take: processor time, and memory together."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import psutil

_EVERY = 0.5
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class TreeCost:
    """What a command took.

    Attributes:
        status: its exit status.
        cpu: processor seconds of all its processes.
        memory: the most bytes that were resident in all of them together; what several share, such
            as the code of libraries, counts for each.

    """

    status: int
    cpu: float
    memory: int

    def __str__(self) -> str:
        return f"{self.cpu:.0f} s, {self.memory / 2**30:.2f} GiB"


def run(command: Sequence[str], errors: IO[str]) -> TreeCost:
    """Run a command to its end; looks at its processes twice a second."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    first, cpu, memory = psutil.Process(process.pid), 0.0, 0
    while process.poll() is None:
        seen, held = look_at(first)
        # The time of a process that has ended is its parent's, who is one of them.
        cpu, memory = max(cpu, seen), max(memory, held)
        time.sleep(_EVERY)
    return TreeCost(process.returncode, cpu, memory)


def look_at(first: psutil.Process) -> tuple[float, int]:
    """Return the processor seconds and the resident bytes of a process and all below it."""
    cpu, memory = 0.0, 0
    try:
        processes = [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return cpu, memory
    for each in processes:
        try:
            times, memory_now = each.cpu_times(), each.memory_info().rss
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        cpu += times.user + times.system + times.children_user + times.children_system
        memory += memory_now
    return cpu, memory
