"""Packages that add a transport, installed in a folder on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path

import pytest

from edgeflare.devices.transports import transport_registry
from plugin_package import install_plugin

NICE = '''
import os
import sys
from pathlib import Path

from edgeflare.devices.profile_keys import ProfileKey, whole_number
from edgeflare.devices.transports.child_agent import ChildTransport
from edgeflare.devices.transports.transport_plugin import AddressScheme, TransportPlugin


class NiceTransport(ChildTransport):
    """Starts the agent on this machine, with a lower priority."""

    def start_agent(self, agent):
        nice = ["nice", "-n", str(self.profile.options["niceness"])]
        return agent.start([*nice, sys.executable, "-m", "edgeflare_agent"], os.environ)


def read_address(level):
    if not level.isdecimal():
        raise ValueError("expected nice://LEVEL")
    return {"niceness": int(level)}


PLUGIN = TransportPlugin(
    create=NiceTransport,
    keys=[ProfileKey("niceness", whole_number(0, 19), example="10", needs_trust=False)],
    starts_device=True,
    scheme=AddressScheme("nice", "nice://LEVEL", read_address),
    attached=lambda: ["nice://3", "nice://4"],
    status=lambda profile: f"at level {profile.options['niceness']}",
)
'''
"""A package of one file whose transport starts the agent as a child of the host."""


@contextmanager
def installed(
    folder: Path, code: str, entry: str = "nice = nice_transport:PLUGIN"
) -> Iterator[None]:
    """Install a package with that code and entry point, and remove it again."""
    name, _, value = entry.partition(" = ")
    install_plugin(folder, "nice_transport", code, {"edgeflare.transports": {name: value}})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "nice_transport", raising=False)
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    invalidate_caches()
    transport_registry.transport.cache_clear()
    transport_registry._entries.cache_clear()
