"""Agents go on from test to test, and a fork of the tests leaves its parent's alone."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.transports.emulated import EmulatedTransport
from edgeflare.devices.transports.transport import Endpoint
from shared_agents import SharedAgents

pytestmark = pytest.mark.slow


@pytest.fixture
def agents(own_agents: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedAgents]:
    shared = SharedAgents()

    def opened(transport: EmulatedTransport) -> Endpoint:
        return shared._opened(transport)

    def closed(transport: EmulatedTransport) -> None:
        shared._closed(transport)

    monkeypatch.setattr(EmulatedTransport, "open", opened)
    monkeypatch.setattr(EmulatedTransport, "close", closed)
    yield shared
    shared.end()


def used() -> EmulatedTransport:
    """Open a device and close it."""
    transport = EmulatedTransport(find_profile("emulated-builtin"))
    transport.open()
    transport.close()
    return transport


def test_one_that_nobody_uses_is_taken_by_the_next_device(agents: SharedAgents) -> None:
    used()
    ((_, agent, _),) = agents.idle
    used()
    assert [idle for _, idle, _ in agents.idle] == [agent]
    assert agent.failure_reason() == ""


def test_a_fork_ends_none_of_its_parent(agents: SharedAgents) -> None:
    used()
    opened = EmulatedTransport(find_profile("emulated-reference"))
    opened.open()
    ((_, agent, _),) = agents.idle
    if (pid := os.fork()) == 0:
        used()
        opened.close()
        agents.end()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert (agent.folder / "store").is_dir()
    opened.close()
    assert [(idle.folder / "store").is_dir() for _, idle, _ in agents.idle] == [True, True]
