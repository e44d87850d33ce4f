"""The processes below another one, as Linux tells them."""

from __future__ import annotations

import contextlib
from pathlib import Path

_FORK_SERVER = b"edgeflare_agent.runtime.fork_server"


def children(pid: int) -> list[int]:
    """Return the children of a process; threads that end meanwhile have none any more."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in file.read_text().split()]
    return found


def workers(pid: int) -> list[int]:
    """Return the processes that run models for another one: those that its fork servers forked."""
    return [worker for server in fork_servers(pid) for worker in children(server)]


def fork_servers(pid: int) -> list[int]:
    """Return the processes that fork workers for another one."""
    return [one for one in children(pid) if _FORK_SERVER in _command(one)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
