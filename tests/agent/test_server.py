from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare_agent import __version__
from edgeflare_agent.runtime import offered_kernel_sets, runtime_info
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR, agent_pb2, crc32
from edgeflare_protos.kernel_sets import Kernels
from edgeflare_protos.limits import (
    CHUNK_BYTES,
    FAILURE_TEXT_BYTES,
    MOST_INPUTS,
    PAYLOAD_LIMIT_BYTES,
)
from processes import workers

Inputs = Callable[..., NDArray[np.int8]]
Reference = Callable[[Path, Kernels, NDArray[np.generic]], bytes]
Part = agent_pb2.UploadModelRequest


@pytest.fixture
def client(start_agent: Any, connect: Any) -> Any:
    return connect(start_agent())


@pytest.fixture
def faulty_client(start_agent: Any, connect: Any, faulty_launcher: list[str]) -> Any:
    return connect(start_agent("--launcher", " ".join(faulty_launcher)))


def request(session_id: str, inputs: NDArray[Any], number: int = 1) -> agent_pb2.InferRequest:
    payload = inputs.tobytes()
    return agent_pb2.InferRequest(
        session_id=session_id,
        request_id=number,
        count=len(inputs),
        payload=payload,
        payload_crc32=crc32(payload),
    )


def status_of(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details() or ""


def test_the_handshake_describes_the_device(client: Any) -> None:
    version = agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR + 5)
    reply = client.stub.Describe(agent_pb2.DescribeRequest(protocol=version), timeout=200)
    assert (reply.protocol.major, reply.protocol.minor) == (PROTOCOL_MAJOR, PROTOCOL_MINOR)
    assert reply.agent_version == __version__
    assert (reply.runtime.name, reply.runtime.version) == (
        runtime_info().name,
        runtime_info().version,
    )
    assert reply.machine == os.uname().machine
    assert list(reply.cpu_features) == sorted(reply.cpu_features)
    assert tuple(reply.kernels) == offered_kernel_sets()
    assert reply.store_limit_bytes == 512 * 1024 * 1024
    assert reply.payload_limit_bytes == PAYLOAD_LIMIT_BYTES < 4 * 1024 * 1024
    assert reply.cores >= 1


@pytest.mark.parametrize("minor", [0, 1])
def test_an_older_host_is_welcome(client: Any, minor: int) -> None:
    version = agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR, minor=minor)
    reply = client.stub.Describe(agent_pb2.DescribeRequest(protocol=version), timeout=200)
    assert reply.protocol.major == PROTOCOL_MAJOR


@pytest.mark.parametrize("major", [0, PROTOCOL_MAJOR + 1])
def test_another_major_is_refused_and_both_are_named(client: Any, major: int) -> None:
    version = agent_pb2.ProtocolVersion(major=major, minor=3)
    code, words = status_of(
        lambda: client.stub.Describe(agent_pb2.DescribeRequest(protocol=version), timeout=200)
    )
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert f"{major}.3" in words
    assert f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}" in words


@pytest.mark.parametrize(
    ("kernels", "name"),
    [
        (agent_pb2.KERNELS_XNNPACK, "xnnpack"),
        (agent_pb2.KERNELS_BUILTIN, "builtin"),
        (agent_pb2.KERNELS_REFERENCE, "reference"),
    ],
)
def test_a_model_sent_and_run_answers_as_the_interpreter_does(
    client: Any,
    kernels: int,
    name: Kernels,
    int8_model: Path,
    harmless_inputs: Inputs,
    reference: Reference,
) -> None:
    inputs = harmless_inputs(64)
    session = client.open(int8_model, kernels)
    (given,), (asked,) = session.inputs, session.outputs
    assert (given.name, list(given.shape), given.dtype, given.zero_point) == (
        "x",
        [1, 8],
        "int8",
        -3,
    )
    assert (list(asked.shape), asked.scale) == ([1, 4], 1 / 256)
    assert list(session.operators) == ["FULLY_CONNECTED", "SOFTMAX"]
    assert session.total_nodes == 2
    assert (session.delegated_nodes > 0) == (name == "xnnpack")
    reply = client.stub.Infer(request(session.session_id, inputs, 77), timeout=200)
    assert reply.outputs == reference(int8_model, name, inputs)
    assert (reply.request_id, reply.payload_crc32) == (77, crc32(inputs.tobytes()))
    assert reply.outputs_crc32 == crc32(reply.outputs)
    assert reply.busy_seconds > 0


def test_a_stream_answers_in_order_with_many_under_way(
    client: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    session = client.open(int8_model)
    batches = [harmless_inputs(1 + number % 5, seed=number) for number in range(60)]
    requests = (request(session.session_id, batch, 100 + n) for n, batch in enumerate(batches))
    replies = list(client.stub.InferStream(requests, timeout=200))
    assert [reply.request_id for reply in replies] == list(range(100, 160))
    for reply, batch in zip(replies, batches, strict=True):
        assert reply.payload_crc32 == crc32(batch.tobytes())
        assert reply.outputs == reference(int8_model, "builtin", batch)


def test_a_stream_answers_before_it_is_closed(
    client: Any, int8_model: Path, harmless_inputs: Inputs
) -> None:
    session = client.open(int8_model)
    answered = threading.Event()

    def one_after_the_other() -> Iterator[agent_pb2.InferRequest]:
        yield request(session.session_id, harmless_inputs(2), 1)
        assert answered.wait(200)
        yield request(session.session_id, harmless_inputs(2), 2)

    replies = client.stub.InferStream(one_after_the_other(), timeout=200)
    assert next(replies).request_id == 1
    answered.set()
    assert next(replies).request_id == 2


def test_failures_are_answers(
    faulty_client: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    kinds = agent_pb2.InputFailure
    inputs = harmless_inputs(12)
    inputs[[1, 4, 7], 0] = 101, 102, 103
    session = faulty_client.open(int8_model, timeout=0.3)
    again = (request(session.session_id, inputs, number) for number in range(2))
    first, second = faulty_client.stub.InferStream(again, timeout=200)
    for reply, quarantined in ((first, False), (second, True)):
        assert [(f.index, f.kind, f.quarantined) for f in reply.failures] == [
            (1, kinds.KIND_CRASH, quarantined),
            (4, kinds.KIND_HANG, quarantined),
            (7, kinds.KIND_ERROR, False),
        ]
        assert reply.failures[2].detail == "node 3 (CONV_2D) failed to invoke"
        outputs = np.frombuffer(reply.outputs, np.int8).reshape(12, 4)
        right = np.frombuffer(reference(int8_model, "builtin", inputs), np.int8).reshape(12, 4)
        good = [index for index in range(12) if index not in (1, 4, 7)]
        assert (outputs[good] == right[good]).all()
        assert not outputs[[1, 4, 7]].any()
    telemetry = faulty_client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert telemetry.quarantined_inputs == 2
    assert telemetry.worker_restarts == 4


def test_failures_are_answers_however_much_a_runtime_says_of_them(
    faulty_client: Any, int8_model: Path, harmless_inputs: Inputs
) -> None:
    inputs = harmless_inputs(8000)
    inputs[:, 0] = 103
    session = faulty_client.open(int8_model)
    (reply,) = faulty_client.stub.InferStream(
        iter([request(session.session_id, inputs)]), timeout=200
    )
    assert [failure.index for failure in reply.failures] == list(range(8000))
    assert reply.failures[0].detail == "node 3 (CONV_2D) failed to invoke"
    said = sum(len(failure.detail) for failure in reply.failures)
    assert FAILURE_TEXT_BYTES - 100 < said <= FAILURE_TEXT_BYTES


def test_telemetry_counts(client: Any, int8_model: Path, harmless_inputs: Inputs) -> None:
    before = client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert (before.store_bytes, before.worker_restarts, before.quarantined_inputs) == (0, 0, 0)
    assert list(before.worker_rss_bytes) == []
    session = client.open(int8_model)
    now = client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert now.store_bytes == int8_model.stat().st_size
    assert len(now.worker_rss_bytes) == 1
    assert 5e6 < now.worker_rss_bytes[0] < 5e8
    assert 5e6 < now.agent_rss_bytes < 8e7
    assert now.uptime_seconds > before.uptime_seconds
    client.stub.CloseSession(
        agent_pb2.CloseSessionRequest(session_id=session.session_id), timeout=200
    )
    after = client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert list(after.worker_rss_bytes) == []
    code, _ = status_of(
        lambda: client.stub.Infer(request(session.session_id, harmless_inputs(1)), timeout=200)
    )
    assert code == grpc.StatusCode.NOT_FOUND
    client.stub.CloseSession(agent_pb2.CloseSessionRequest(session_id="never was"), timeout=200)


def test_a_known_model_is_found(client: Any, int8_model: Path) -> None:
    content = int8_model.read_bytes()
    ask = agent_pb2.FindModelRequest(sha256=hashlib.sha256(content).hexdigest())
    assert not client.stub.FindModel(ask, timeout=200).present
    client.upload(content)
    assert client.stub.FindModel(ask, timeout=200).present


def test_uploads_that_go_wrong(client: Any, start_agent: Any, connect: Any) -> None:
    content = bytes(100_000)
    lost, bad = grpc.StatusCode.DATA_LOSS, grpc.StatusCode.INVALID_ARGUMENT
    full = grpc.StatusCode.RESOURCE_EXHAUSTED
    assert status_of(lambda: client.upload(content, sha256="0" * 64))[0] == lost
    assert status_of(lambda: client.upload(content, size=99_999))[0] == lost
    assert status_of(lambda: client.upload(content, size=100_001))[0] == lost
    assert status_of(lambda: client.upload(content, sha256="../../etc/passwd"))[0] == bad
    assert status_of(lambda: client.upload(content, size=1 << 40))[0] == full
    header = Part(header=Part.Header(sha256="0" * 64, size_bytes=CHUNK_BYTES + 1))
    for parts in (
        [],
        [Part(chunk=b"x")],
        [header, header],
        [header, Part(chunk=bytes(CHUNK_BYTES + 1))],
    ):
        upload = iter(parts)
        assert status_of(lambda u=upload: client.stub.UploadModel(u, timeout=200))[0] == bad  # type: ignore[misc]
    small = connect(start_agent("--store-limit-mb", "1"))
    assert status_of(lambda: small.upload(bytes(1024 * 1024 + 1)))[0] == full
    telemetry = client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert telemetry.store_bytes == 0


def test_an_open_sessions_model_is_not_evicted(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    client = connect(start_agent("--store-limit-mb", "1"))
    session = client.open(int8_model)
    filler, filler_2 = b"1" * 600_000, b"2" * 600_000
    client.upload(filler)
    assert client.upload(filler_2).evicted_sha256 == [hashlib.sha256(filler).hexdigest()]
    assert status_of(lambda: client.upload(bytes(1024 * 1024)))[0] == (
        grpc.StatusCode.RESOURCE_EXHAUSTED
    )
    telemetry = client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert len(telemetry.worker_rss_bytes) == 1
    inputs = harmless_inputs(3)
    reply = client.stub.Infer(request(session.session_id, inputs), timeout=200)
    assert reply.outputs == reference(int8_model, "builtin", inputs)


def test_sessions_that_cannot_be_opened(client: Any, int8_model: Path, future_model: Path) -> None:
    content = int8_model.read_bytes()
    client.upload(content)
    good = {
        "model_sha256": hashlib.sha256(content).hexdigest(),
        "kernels": agent_pb2.KERNELS_BUILTIN,
        "threads": 1,
        "input_timeout_seconds": 5.0,
    }
    delegate = agent_pb2.ExternalDelegate(library="libc.so.6")
    wrong: list[tuple[dict[str, Any], grpc.StatusCode, str]] = [
        ({"model_sha256": "0" * 64}, grpc.StatusCode.NOT_FOUND, "no model"),
        ({"model_sha256": "../x"}, grpc.StatusCode.INVALID_ARGUMENT, "sha256"),
        ({"kernels": 0}, grpc.StatusCode.INVALID_ARGUMENT, "xnnpack, builtin, reference"),
        ({"kernels": 99}, grpc.StatusCode.INVALID_ARGUMENT, "kernels"),
        ({"threads": 0}, grpc.StatusCode.INVALID_ARGUMENT, "threads"),
        ({"threads": 100_000}, grpc.StatusCode.INVALID_ARGUMENT, "threads must be from 1 to 128"),
        ({"warmup": 2**32 - 1}, grpc.StatusCode.INVALID_ARGUMENT, "warmup must be"),
        ({"input_timeout_seconds": 1e300}, grpc.StatusCode.INVALID_ARGUMENT, "from 0.01 to 3,600"),
        ({"input_timeout_seconds": 0.0}, grpc.StatusCode.INVALID_ARGUMENT, "timeout"),
        ({"input_timeout_seconds": float("nan")}, grpc.StatusCode.INVALID_ARGUMENT, "timeout"),
        ({"delegate": delegate}, grpc.StatusCode.INVALID_ARGUMENT, "--allow-delegate"),
    ]
    for change, expected, word in wrong:
        opening = agent_pb2.OpenSessionRequest(**{**good, **change})
        code, words = status_of(lambda o=opening: client.stub.OpenSession(o, timeout=200))  # type: ignore[misc]
        assert (code, word in words) == (expected, True), words
    code, words = status_of(lambda: client.open(future_model))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert f"{runtime_info()} has no operator FULLY_CONNECTED version 99" in words


def test_an_allowed_library_that_is_no_delegate_is_refused_by_the_runtime(
    start_agent: Any, connect: Any, int8_model: Path
) -> None:
    client = connect(start_agent("--allow-delegate", "libc.so.6"))
    content = int8_model.read_bytes()
    client.upload(content)
    opening = agent_pb2.OpenSessionRequest(
        model_sha256=hashlib.sha256(content).hexdigest(),
        kernels=agent_pb2.KERNELS_BUILTIN,
        threads=1,
        input_timeout_seconds=5.0,
        delegate=agent_pb2.ExternalDelegate(library="libc.so.6"),
    )
    code, words = status_of(lambda: client.stub.OpenSession(opening, timeout=200))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "delegate" in words


@pytest.mark.slow
def test_payloads_that_go_wrong(client: Any, int8_model: Path, harmless_inputs: Inputs) -> None:
    session = client.open(int8_model)
    good = request(session.session_id, harmless_inputs(4))
    wrong: dict[str, tuple[dict[str, Any], grpc.StatusCode]] = {
        "checksum": ({"payload_crc32": good.payload_crc32 ^ 1}, grpc.StatusCode.DATA_LOSS),
        "count": ({"count": 5}, grpc.StatusCode.INVALID_ARGUMENT),
        "none": ({"count": 0}, grpc.StatusCode.INVALID_ARGUMENT),
        "session": ({"session_id": "x"}, grpc.StatusCode.NOT_FOUND),
    }
    for change, expected in wrong.values():
        bad = agent_pb2.InferRequest()
        bad.CopyFrom(good)
        for field, value in change.items():
            setattr(bad, field, value)
        assert status_of(lambda b=bad: client.stub.Infer(b, timeout=200))[0] == expected  # type: ignore[misc]
        stream = client.stub.InferStream(iter([good, bad, good]), timeout=200)
        assert next(stream).request_id == 1
        assert status_of(lambda s=stream: next(s))[0] == expected  # type: ignore[misc]
    large = np.zeros((MOST_INPUTS + 1, 8), np.int8)
    code, words = status_of(
        lambda: client.stub.Infer(request(session.session_id, large), timeout=200)
    )
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "count must be from 1 to 65,536" in words
    most = request(session.session_id, large[:MOST_INPUTS])
    assert len(client.stub.Infer(most, timeout=200).outputs) == 4 * MOST_INPUTS


@pytest.mark.slow
def test_many_sessions_run_side_by_side_up_to_a_bound(
    client: Any, int8_model: Path, float_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(30)
    kernels: list[tuple[int, Kernels]] = [
        (agent_pb2.KERNELS_XNNPACK, "xnnpack"),
        (agent_pb2.KERNELS_REFERENCE, "reference"),
    ]
    sessions = [(client.open(int8_model, number), name) for number, name in kernels * 4]
    assert len({session.session_id for session, _ in sessions}) == 8
    calls = [
        (client.stub.Infer.future(request(session.session_id, inputs), timeout=200), name)
        for session, name in sessions
    ]
    for call, name in calls:
        assert call.result().outputs == reference(int8_model, name, inputs)
    code, words = status_of(lambda: client.open(float_model))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "8 sessions" in words


def test_a_worker_killed_from_outside_costs_a_restart_only(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    agent = start_agent()
    client = connect(agent)
    session = client.open(int8_model)
    inputs = harmless_inputs(50)
    right = reference(int8_model, "builtin", inputs)
    for _ in range(3):
        for pid in workers(agent.pid):
            os.kill(pid, signal.SIGKILL)
        reply = client.stub.Infer(request(session.session_id, inputs), timeout=200)
        assert (reply.outputs, list(reply.failures)) == (right, [])
    telemetry = client.stub.Telemetry(agent_pb2.TelemetryRequest(), timeout=200)
    assert telemetry.worker_restarts == 3
