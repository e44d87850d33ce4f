"""The deadlines of calls, where a profile sets them."""

# ruff: noqa: ARG002, N802 - the names and arguments of methods are those of the wire

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from edgeflare.devices import connection
from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.transport import Endpoint
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentServicer, add_AgentServicer_to_server


class SilentAgent(AgentServicer):
    """An agent that has no model, and answers neither to Describe nor to an upload in time."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def Describe(
        self, request: wire.DescribeRequest, context: grpc.ServicerContext
    ) -> wire.DescribeReply:
        self.ended.wait(60)
        return wire.DescribeReply()

    def FindModel(
        self, request: wire.FindModelRequest, context: grpc.ServicerContext
    ) -> wire.FindModelReply:
        return wire.FindModelReply(present=False)

    def UploadModel(
        self, request_iterator: Iterator[wire.UploadModelRequest], context: grpc.ServicerContext
    ) -> wire.UploadModelReply:
        self.ended.wait(60)
        return wire.UploadModelReply()


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where such an agent listens, for a host whose usual deadline is an hour."""
    monkeypatch.setattr(connection, "SHORT_CALL_SECONDS", 3600.0)
    agent, server = SilentAgent(), grpc.server(ThreadPoolExecutor(4))
    add_AgentServicer_to_server(agent, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    agent.ended.set()
    server.stop(None).wait()


@pytest.mark.slow
def test_a_profile_says_how_long_an_upload_may_take(address: str) -> None:
    slow = Connection("board", Endpoint(address), upload_seconds=1)
    with pytest.raises(DeviceLost, match="the agent did not answer in time"):
        slow.upload("0" * 64, b"model")
    slow.close()


@pytest.mark.slow
def test_a_profile_says_how_long_connecting_may_take(address: str) -> None:
    board = Profile(name="board", transport="address", address=address, connect_timeout_seconds=1)
    with pytest.raises(DeviceLost, match="no answer in time"):
        connect(board)
