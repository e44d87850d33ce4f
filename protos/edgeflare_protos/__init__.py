"""The wire between host and agent: what both peers must agree on.

The messages are in `agent_pb2`, the service in `agent_pb2_grpc`; both are generated from
agent.proto.
"""

from __future__ import annotations

import zlib

PROTOCOL_MAJOR = 1
"""Peers whose majors differ refuse each other."""

PROTOCOL_MINOR = 0
"""A higher minor only adds."""

CHUNK_BYTES = 64 * 1024
"""The most bytes of a model in one message of an upload."""

AUTHORIZATION = "authorization"
"""The metadata key under which a host sends `Bearer TOKEN`."""


def crc32(payload: bytes | memoryview) -> int:
    """Return the checksum that requests and replies carry: CRC-32 as zlib and Ethernet count it."""
    return zlib.crc32(payload)
