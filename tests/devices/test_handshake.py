"""Whoever may be at an address: nobody, another server, another version, a stranger, the slow."""

# ruff: noqa: ARG002, N802 - the names and arguments of methods are those of the wire

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from edgeflare.devices import connection
from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.handshake import shake_hands
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.transports.transport import Endpoint
from edgeflare.errors import InfrastructureError
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR, TOO_MANY_WRONG_TOKENS
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentServicer, add_AgentServicer_to_server


def refusal(address: str, kind: type[InfrastructureError] = InfrastructureError) -> str:
    with pytest.raises(InfrastructureError) as caught:
        connect(find_profile(f"grpc://{address}"))
    assert type(caught.value) is kind
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"grpc://{address}: ")
    return message.removeprefix(f"grpc://{address}: ")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_nobody_is_there(listener: socket.socket) -> None:
    address = address_of(listener)
    listener.close()

    assert refusal(address, DeviceLost) == (
        "nobody is there (Connection refused); start an agent with `edgeflare agent serve`,"
        " or correct the address"
    )


def test_a_server_that_does_not_speak_grpc(listener: socket.socket) -> None:
    def answer_like_ssh() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    threading.Thread(target=answer_like_ssh, daemon=True).start()

    assert refusal(address_of(listener), DeviceLost).startswith(
        "something listens there, but does not speak like an EdgeFlare agent"
    )
    listener.shutdown(socket.SHUT_RDWR)


def test_a_server_that_says_nothing(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SHORT_CALL_SECONDS", 0.3)

    assert refusal(address_of(listener), DeviceLost) == (
        "no answer in time; is it an EdgeFlare agent, and is it awake?"
    )


def test_a_grpc_server_of_another_kind() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        assert refusal(f"127.0.0.1:{port}").startswith(
            "something answers there, but it is no EdgeFlare agent (Method not found!)"
        )
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("protocol", [(0, 9), (2, 0)])
def test_an_agent_of_another_major_version(
    serve: Callable[..., Profile], protocol: tuple[int, int]
) -> None:
    address = serve(protocol=protocol).address

    assert refusal(f"{address}") == (
        "the agent speaks another version of the protocol than this host, which speaks"
        f" {PROTOCOL_MAJOR}.{PROTOCOL_MINOR} (it speaks {protocol[0]}.{protocol[1]});"
        " install the same version of edgeflare on both"
    )


def test_an_agent_that_refuses_our_version(
    start_agent: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeflare.devices.handshake.PROTOCOL_MAJOR", 2)

    message = refusal(start_agent().address)

    assert message.startswith("the agent speaks another version of the protocol than this host")
    assert f"2.{PROTOCOL_MINOR}" in message
    assert f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}" in message


def test_a_newer_minor_is_welcome(serve: Callable[..., Profile]) -> None:
    newer = (PROTOCOL_MAJOR, PROTOCOL_MINOR + 1)
    with connect(serve(protocol=newer)) as device:
        assert device.provenance.protocol == f"{newer[0]}.{newer[1]}"


def test_a_token_that_is_missing_or_wrong(
    start_agent: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("open sesame\n")
    address = start_agent("--token-file", str(tmp_path / "token")).address
    monkeypatch.delenv("EDGEFLARE_TOKEN", raising=False)

    for wrong in ("", "open barley"):
        monkeypatch.setenv("EDGEFLARE_TOKEN", wrong)
        message = refusal(address)
        assert message.startswith("the agent does not let this host in")
        assert "put its token into EDGEFLARE_TOKEN" in message

    monkeypatch.setenv("EDGEFLARE_TOKEN", "open sesame")
    connect(find_profile(f"grpc://{address}")).close()


class BusyAgent:
    """A connection to an agent that looks at no token, the first so many times."""

    place = "board"

    def __init__(self, times: int) -> None:
        self.times = times

    def describe(self, _request: wire.DescribeRequest) -> wire.DescribeReply:
        self.times -= 1
        if self.times >= 0:
            raise grpc.RpcError(TOO_MANY_WRONG_TOKENS)
        return wire.DescribeReply(protocol=wire.ProtocolVersion(major=PROTOCOL_MAJOR))


@pytest.mark.parametrize(("times", "let_in"), [(4, True), (5, False)])
def test_a_host_whose_token_was_not_looked_at_tries_again(
    times: int, let_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("edgeflare.devices.handshake.time.sleep", pauses.append)
    busy = cast("connection.Connection", BusyAgent(times))
    if let_in:
        assert shake_hands(busy).protocol.major == PROTOCOL_MAJOR
    else:
        with pytest.raises(InfrastructureError, match=TOO_MANY_WRONG_TOKENS):
            shake_hands(busy)
    assert len(pauses) == 4


class SilentAgent(AgentServicer):
    """An agent that has no model, and does not answer to an upload in time."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def FindModel(
        self, request: wire.FindModelRequest, context: grpc.ServicerContext
    ) -> wire.FindModelReply:
        return wire.FindModelReply(present=False)

    def UploadModel(
        self, request_iterator: Iterator[wire.UploadModelRequest], context: grpc.ServicerContext
    ) -> wire.UploadModelReply:
        self.ended.wait(60)
        return wire.UploadModelReply()


@pytest.mark.slow
def test_a_profile_says_how_long_an_upload_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SHORT_CALL_SECONDS", 3600.0)
    agent, server = SilentAgent(), grpc.server(ThreadPoolExecutor(4))
    add_AgentServicer_to_server(agent, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    slow = Connection("board", Endpoint(f"127.0.0.1:{port}"), upload_seconds=1)
    with pytest.raises(DeviceLost, match="the agent did not answer in time"):
        slow.upload("0" * 64, b"model")
    slow.close()
    agent.ended.set()
    server.stop(None).wait()


@pytest.mark.slow
def test_a_profile_says_how_long_connecting_may_take(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SHORT_CALL_SECONDS", 3600.0)
    address = address_of(listener)
    board = Profile(name="board", transport="address", address=address, connect_timeout_seconds=1)
    with pytest.raises(DeviceLost, match="no answer in time"):
        connect(board)
