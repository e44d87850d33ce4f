"""A port of loopback on which nobody listens right now."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port that was free a moment ago; whoever is next may be given the same."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
