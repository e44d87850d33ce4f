"""Agents of emulated devices that the tests of a worker use one after the other.

To start an agent and its fork server takes a third of a second of processor time, several hundred
times in a run of the tests. What starts here, in the process of the tests, goes on when its device
is closed, for the next device of the same name, command and environment. Likewise the server that
forks this process's own workers goes on where only its folder is another one, or what no worker
reads. A command in a process of its own, a fork of this one too, starts and ends agents as always.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager

from edgeflare.devices.transports import child_agent
from edgeflare.devices.transports.child_agent import ChildAgent, ChildTransport
from edgeflare.devices.transports.emulated import EmulatedTransport
from edgeflare.devices.transports.transport import Endpoint, allow_delegate
from edgeflare_agent.runtime import fork_server_process, worker_process
from edgeflare_agent.runtime.fork_server_process import surroundings
from forked_agents import agents_socket, fork_agents

_MOST_IDLE = 3

_UNREAD = ("COLUMNS", "HOME", "PYTEST_CURRENT_TEST", "XDG_CACHE_HOME")
"""Variables that neither an agent, which is told where its files lie, nor a worker reads."""

_Key = tuple[object, ...]
"""All that agents of one device may differ in: its name, their command, their environment."""


class SharedAgents:
    """Starts, keeps and ends the agents that are shared.

    Attributes:
        idle: agents that nobody uses, the one that was used last at the end, and where they listen.

    """

    def __init__(self) -> None:
        self.idle: list[tuple[_Key, ChildAgent, Endpoint]] = []
        self._started: dict[ChildAgent, tuple[_Key, Endpoint]] = {}
        self._open, self._close = EmulatedTransport.open, EmulatedTransport.close
        self._paused = False
        self._process = os.getpid()

    def share(self) -> None:
        """Have emulated devices of this process share agents from here on."""
        atexit.register(self.end)

        def opened(transport: ChildTransport) -> Endpoint:
            return self._opened(transport)

        def closed(transport: ChildTransport) -> None:
            self._closed(transport)

        EmulatedTransport.open = opened  # type: ignore[assignment, method-assign]
        EmulatedTransport.close = closed  # type: ignore[assignment, method-assign]
        for module in (fork_server_process, worker_process):
            module.surroundings = self._surroundings  # type: ignore[attr-defined]
        starters = child_agent, fork_server_process
        fork_agents(agents_socket, *starters, wanted=lambda: not self._paused)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """End what nobody uses, and have each device start and end an agent, as users' do."""
        self.end()
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def end(self) -> None:
        """End what nobody uses."""
        while self.idle and not self._forked():
            self._end(self.idle.pop()[1])

    def _forked(self) -> bool:
        """Return whether this is a fork, whose parent goes on with the agents."""
        return os.getpid() != self._process

    def _surroundings(self) -> tuple[dict[str, str], int, int]:
        return surroundings() if self._paused else (_read_environment(), 0, 0)

    def _opened(self, transport: ChildTransport) -> Endpoint:
        if self._paused or self._forked():
            return self._open(transport)
        key = _key(transport)
        for place in reversed(range(len(self.idle))):
            if self.idle[place][0] == key:
                _, agent, endpoint = self.idle.pop(place)
                if not agent.failure_reason():
                    transport._agent, transport._failure_reason = agent, ""
                    return endpoint
                self._end(agent)
        endpoint = self._open(transport)
        assert transport._agent is not None
        self._started[transport._agent] = key, endpoint
        return endpoint

    def _closed(self, transport: ChildTransport) -> None:
        agent = transport._agent
        if agent in self._started and self._forked():
            transport._agent = None
            return
        if agent not in self._started or self._paused or agent.failure_reason():
            self._started.pop(agent, None)  # type: ignore[arg-type]
            self._close(transport)
            return
        transport._agent = None
        self.idle.append((self._started[agent][0], agent, self._started[agent][1]))
        if len(self.idle) > _MOST_IDLE:
            self._end(self.idle.pop(0)[1])

    def _end(self, agent: ChildAgent) -> None:
        self._started.pop(agent, None)
        agent.end()


def _key(transport: ChildTransport) -> _Key:
    profile = transport.profile
    command = (profile.python, *allow_delegate(profile))
    return profile.name, command, frozenset(_read_environment().items())


def _read_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _UNREAD}


SHARED_AGENTS = SharedAgents()
