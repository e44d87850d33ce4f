"""How a lease travels, and how its holder is called: what host and agent must say alike."""

from __future__ import annotations

from edgeflare_protos import agent_pb2

LEASE = "edgeflare-lease"
"""The metadata key under which a host sends its lease."""


def lease_token(number: int, secret: str) -> str:
    """Return what goes under that key."""
    return f"{number}:{secret}"


def holder_words(holder: agent_pb2.LeaseHolder) -> str:
    """Return who has a lease: "ana@bench (process 812, edgeflare search)"."""
    if not holder.user:
        return "a program on the device that does not say for whom"
    return f"{holder.user} (process {holder.pid}, {holder.command})"
