"""What a host relies on whose link is bad: sessions taken up again, seals, and idleness."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from edgeflare_protos import PROTOCOL_MAJOR, agent_pb2, crc32, message_crc32, seal_holds


@pytest.fixture
def client(start_agent: Any, connect: Any, int8_model: Path) -> Any:
    client = connect(start_agent())
    client.upload(int8_model.read_bytes())
    return client


def opening(model: Path, token: str, threads: int = 1) -> agent_pb2.OpenSessionRequest:
    return agent_pb2.OpenSessionRequest(
        model_sha256=hashlib.sha256(model.read_bytes()).hexdigest(),
        kernels="KERNELS_BUILTIN",
        threads=threads,
        input_timeout_seconds=10,
        resume_token=token,
    )


def infer(session_id: str, inputs: Any) -> agent_pb2.InferRequest:
    payload = inputs.tobytes()
    return agent_pb2.InferRequest(
        session_id=session_id, count=len(inputs), payload=payload, payload_crc32=crc32(payload)
    )


def capture(session_id: str, inputs: Any) -> agent_pb2.CaptureRequest:
    payload = inputs.tobytes()
    return agent_pb2.CaptureRequest(
        session_id=session_id, payload=payload, payload_crc32=crc32(payload)
    )


def workers(client: Any) -> int:
    return len(client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200).worker_rss_bytes)


def test_the_same_token_takes_a_session_up_again(client: Any, int8_model: Path) -> None:
    first, again, other = (
        client.stub.OpenSession(opening(int8_model, token), timeout=200)
        for token in ("a", "a", "b")
    )
    assert again.session_id == first.session_id != other.session_id
    assert again.inputs == first.inputs
    assert workers(client) == 2


def test_a_session_that_is_taken_up_again_counts_as_used(client: Any, int8_model: Path) -> None:
    opened = client.stub.OpenSession(opening(int8_model, "a"), timeout=200)
    time.sleep(1.0)
    began = time.monotonic()
    client.stub.OpenSession(opening(int8_model, "a"), timeout=200)
    request = agent_pb2.TelemetryRequest(session_id=opened.session_id)
    idle_seconds = client.stub.Telemetry(request, timeout=200).idle_seconds
    assert idle_seconds <= time.monotonic() - began


def test_without_a_token_each_session_is_new(client: Any, int8_model: Path) -> None:
    opened = {
        client.stub.OpenSession(opening(int8_model, ""), timeout=200).session_id for _ in range(2)
    }
    assert len(opened) == 2


def test_a_token_for_something_else_ends_what_was_open_under_it(
    client: Any, int8_model: Path, harmless_inputs: Any
) -> None:
    first = client.stub.OpenSession(opening(int8_model, "a"), timeout=200)
    second = client.stub.OpenSession(opening(int8_model, "a", threads=2), timeout=200)
    assert second.session_id != first.session_id
    assert workers(client) == 1
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.Infer(infer(first.session_id, harmless_inputs(1)), timeout=200)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_host_that_asks_again_before_the_model_is_loaded_gets_the_same(
    client: Any, int8_model: Path
) -> None:
    with ThreadPoolExecutor(6) as pool:
        opened = set(
            pool.map(
                lambda _: client.stub.OpenSession(opening(int8_model, "a"), timeout=200).session_id,
                range(6),
            )
        )
    assert len(opened) == 1
    assert workers(client) == 1


def test_replies_are_sealed(client: Any, int8_model: Path, harmless_inputs: Any) -> None:
    version = agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR)
    request = opening(int8_model, "a")
    opened = client.stub.OpenSession(request, timeout=200)
    assert opened.request_crc32 == message_crc32(request)
    replies = [
        opened,
        client.stub.Describe(agent_pb2.DescribeRequest(protocol=version), timeout=200),
        client.stub.Infer(infer(opened.session_id, harmless_inputs(3)), timeout=200),
        client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200),
        next(
            iter(client.stub.Capture(capture(opened.session_id, harmless_inputs(1)), timeout=200))
        ),
    ]
    for reply in replies:
        assert reply.seal
        assert seal_holds(reply)
        for field, value in reply.ListFields():
            if field.name != "seal":
                damaged = type(reply)()
                damaged.CopyFrom(reply)
                damaged.ClearField(field.name)
                assert not seal_holds(damaged), (field.name, value)


def test_idleness_is_told_of_the_session_that_is_asked_for(
    client: Any, int8_model: Path, harmless_inputs: Any
) -> None:
    opened = client.stub.OpenSession(opening(int8_model, ""), timeout=200)

    def idle(session_id: str) -> Any:
        return client.stub.Telemetry(agent_pb2.TelemetryRequest(session_id=session_id), timeout=200)

    first = idle(opened.session_id).idle_seconds
    second = idle(opened.session_id).idle_seconds
    assert 0 < first < second
    client.stub.Infer(infer(opened.session_id, harmless_inputs(3)), timeout=200)
    assert idle(opened.session_id).uptime_seconds > idle(opened.session_id).idle_seconds
    assert not idle("").HasField("idle_seconds")
    with pytest.raises(grpc.RpcError) as caught:
        idle("unknown")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
