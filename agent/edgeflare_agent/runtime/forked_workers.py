"""Workers that are forked by a server of their launcher, which is started when first asked."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence

from edgeflare_agent.runtime.fork_server_process import (
    ForkedProcess,
    ForkServerProcess,
    surroundings,
)
from edgeflare_agent.runtime.launcher import python_command

_servers: dict[tuple[str, ...], ForkServerProcess] = {}
_without: set[tuple[str, ...]] = set()
"""Launchers whose server has never forked a worker: they start each by itself."""

_lock = threading.Lock()


def forked_worker(launcher: Sequence[str], descriptors: Sequence[int]) -> ForkedProcess | None:
    """Return a new worker, None if it has to be started by itself.

    Args:
        launcher: the command that starts Python.
        descriptors: its stdin, stdout, stderr and shared file.

    """
    key = tuple(launcher)
    while (server := _server(key)) is not None:
        forked = server.fork(descriptors)
        with _lock:
            if forked is not None:
                server.forked = True
                return forked
            if not server.forked:
                _without.add(key)
            if _servers.get(key) is server:
                _forget(key)
    return None


@atexit.register
def end_fork_servers() -> None:
    """Kill all servers, not their workers."""
    with _lock:
        for launcher in list(_servers):
            _forget(launcher)


def _server(launcher: tuple[str, ...]) -> ForkServerProcess | None:
    """Return the server of a launcher; one that was started elsewhere makes room for another."""
    with _lock:
        server = _servers.get(launcher)
        if server is not None and server.surroundings != surroundings():
            del _servers[launcher]
            server.retire()
            server = None
        if server is None and launcher not in _without:
            try:
                command = python_command(launcher, "edgeflare_agent.runtime.fork_server")
                server = _servers[launcher] = ForkServerProcess(command)
            except OSError:
                _without.add(launcher)
        return server


def _forget(launcher: tuple[str, ...]) -> None:
    _servers.pop(launcher).kill()
