"""The wire between host and agent: what both peers must agree on.

The messages are in `agent_pb2`, the service in `agent_pb2_grpc`; both are generated from
agent.proto. `limits` has the bounds of what a message may ask for, `kernel_sets` the kernel sets by
name, `lease_words` how a lease is carried and told.
"""

from __future__ import annotations

import zlib
from typing import Protocol

try:
    from edgeflare_protos._version import __version__ as __version__  # written by the build
except ModuleNotFoundError:  # a checkout that nothing was installed from
    __version__ = "0.1.0.dev0"

PROTOCOL_MAJOR = 1
"""Peers whose majors differ refuse each other."""

PROTOCOL_MINOR = 0
"""A higher minor only adds."""

AUTHORIZATION = "authorization"
"""The metadata key under which a host sends `Bearer TOKEN`."""

TOO_MANY_WRONG_TOKENS = "too many wrong tokens came lately; try again in a second"
"""What goes with RESOURCE_EXHAUSTED where an agent did not look at a token."""


def crc32(payload: bytes | memoryview) -> int:
    """Return the checksum that requests and replies carry: CRC-32 as zlib and Ethernet count it."""
    return zlib.crc32(payload)


class Message(Protocol):
    """A protobuf message."""

    def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802 - protobuf's name
        """Return the message as bytes."""


class Sealed(Message, Protocol):
    """A reply with a seal; see agent.proto."""

    seal: int


def message_crc32(message: Message) -> int:
    """Return the checksum of a message as a whole."""
    return crc32(message.SerializeToString(deterministic=True))


def set_seal(message: Sealed) -> None:
    """Seal a message; whoever changes it afterwards breaks the seal."""
    message.seal = 0
    message.seal = message_crc32(message)


def seal_holds(message: Sealed) -> bool:
    """Tell whether a message says what it said when it was sealed."""
    given, message.seal = message.seal, 0
    computed, message.seal = message_crc32(message), given
    return given == computed
