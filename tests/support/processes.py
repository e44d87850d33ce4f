"""The processes below another one, as Linux tells them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

FORK_SERVER = b"edgeflare_agent.runtime.fork_server"
"""An argument of fork servers, and so of the workers that they fork."""


def children(pid: int) -> list[int]:
    """Return the children of a process; threads that end meanwhile have none any more."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in file.read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


def agents(pid: int) -> list[int]:
    """Return the agents below a process that were not forked from one of the tests' own."""
    return [
        descendant
        for descendant in descendants(pid)
        if b"edgeflare_agent" in process_file(descendant, "cmdline").split(b"\0")
    ]


def workers(pid: int) -> list[int]:
    """Return the processes that run models for another one: those that its fork servers forked."""
    return [worker for server in fork_servers(pid) for worker in children(server)]


def fork_servers(pid: int) -> list[int]:
    """Return the processes that fork workers for another one."""
    return [one for one in children(pid) if FORK_SERVER in process_file(one, "cmdline")]


def kill(pids: Iterable[int]) -> None:
    """Kill processes, of which some may have ended by themselves."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and is not reaped does not."""
    return _state(pid) not in ("Z", "")


def stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal."""
    return _state(pid) == "T"


def processor_seconds(pid: int) -> float:
    """Return what a process has taken, and those that it has waited for; 0 where it is no more."""
    return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def _state(pid: int) -> str:
    """Return the letter of a process's state; empty for none."""
    return "".join(_stat(pid)[:1])


def _stat(pid: int) -> list[str]:
    """Return what Linux says of a process, from its state on; nothing where it is no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def process_file(pid: int, name: str) -> bytes:
    """Return a file of a process below `/proc`; nothing once the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
