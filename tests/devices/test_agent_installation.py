"""What `agent install` and `agent uninstall` do to a device that a campaign holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgeflare.devices import agent_installation
from edgeflare.devices.lease import lease
from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.emulated import EmulatedTransport
from edgeflare.devices.transports.transport_plugin import AgentDeployment, TransportPlugin
from edgeflare.errors import UserError
from loopback_remote import LoopbackRemote


def test_a_device_that_is_held_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "host"))
    deployment = AgentDeployment(lambda _: LoopbackRemote(), "~/edgeflare", {}, "")
    here = TransportPlugin(create=EmulatedTransport, deployment=deployment)
    monkeypatch.setattr(agent_installation, "transport", lambda _: here)
    cache = tmp_path / "device"
    board = Profile(name="here", transport="ssh", cache=str(cache), python=sys.executable)

    with lease("here"), pytest.raises(UserError, match="here"):
        agent_installation.install_agent(board)
    assert not cache.exists()
    assert agent_installation.install_agent(board).sent_bytes
    with lease("here"), pytest.raises(UserError, match="here"):
        agent_installation.uninstall_agent(board)
    assert cache.exists()
    assert agent_installation.uninstall_agent(board) == str(cache)
    assert not cache.exists()
