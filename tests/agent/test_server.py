from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from agent_calls import batch, opening, refused
from edgeflare_agent import __version__
from edgeflare_agent.runtime import offered_kernel_sets, runtime_info
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR, agent_pb2, crc32
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels
from edgeflare_protos.limits import (
    CHUNK_BYTES,
    FAILURE_TEXT_BYTES,
    MOST_INPUTS,
    PAYLOAD_LIMIT_BYTES,
)

Inputs = Callable[..., NDArray[np.int8]]
Reference = Callable[[Path, Kernels, NDArray[np.generic]], bytes]
Part = agent_pb2.UploadModelRequest


@pytest.fixture
def faulty_client(start_agent: Any, connect: Any, faulty_launcher: list[str]) -> Any:
    return connect(start_agent("--launcher", " ".join(faulty_launcher)))


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
    assert tuple(reply.kernel_sets) == offered_kernel_sets()
    assert reply.store_limit_bytes == 512 * 1024 * 1024
    assert reply.payload_limit_bytes == PAYLOAD_LIMIT_BYTES < 4 * 1024 * 1024
    assert reply.cores >= 1


@pytest.mark.parametrize(("major", "minor"), [(PROTOCOL_MAJOR, 0), (0, 3), (PROTOCOL_MAJOR + 1, 3)])
def test_an_older_host_is_welcome_and_another_major_refused_by_both_names(
    client: Any, major: int, minor: int
) -> None:
    version = agent_pb2.ProtocolVersion(major=major, minor=minor)
    request = agent_pb2.DescribeRequest(protocol=version)
    if major == PROTOCOL_MAJOR:
        assert client.stub.Describe(request, timeout=200).protocol.major == PROTOCOL_MAJOR
    else:
        code, words = refused(client.stub.Describe, request)
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert f"{major}.{minor}" in words
        assert f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}" in words


@pytest.mark.parametrize("name", ["xnnpack", "builtin", "reference"])
def test_a_model_sent_and_run_answers_as_the_interpreter_does(
    client: Any, name: Kernels, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(64)
    session = client.open(int8_model, kernels=KERNEL_SETS[name].number)
    (given,), (asked,) = session.inputs, session.outputs
    assert (given.name, list(given.shape), given.dtype) == ("x", [1, 8], "int8")
    assert (given.zero_point, list(asked.shape), asked.scale) == (-3, [1, 4], 1 / 256)
    assert list(session.operators) == ["FULLY_CONNECTED", "SOFTMAX"]
    assert session.total_nodes == 2
    assert (session.delegated_nodes > 0) == (name == "xnnpack")
    reply = client.infer(session.session_id, inputs, 77)
    assert reply.outputs == reference(int8_model, name, inputs)
    assert (reply.request_id, reply.payload_crc32) == (77, crc32(inputs.tobytes()))
    assert reply.outputs_crc32 == crc32(reply.outputs)
    assert reply.busy_seconds > 0


def test_a_stream_answers_in_order_with_many_under_way(
    client: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    session = client.open(int8_model)
    batches = [harmless_inputs(1 + number % 5, seed=number) for number in range(60)]
    requests = (batch(session.session_id, one, 100 + n) for n, one in enumerate(batches))
    replies = list(client.stub.InferStream(requests, timeout=200))
    assert [reply.request_id for reply in replies] == list(range(100, 160))
    for reply, one in zip(replies, batches, strict=True):
        assert reply.payload_crc32 == crc32(one.tobytes())
        assert reply.outputs == reference(int8_model, "builtin", one)


def test_a_stream_answers_before_it_is_closed(
    client: Any, int8_model: Path, harmless_inputs: Inputs
) -> None:
    session = client.open(int8_model)
    answered = threading.Event()

    def one_after_the_other() -> Iterator[agent_pb2.InferRequest]:
        yield batch(session.session_id, harmless_inputs(2), 1)
        assert answered.wait(200)
        yield batch(session.session_id, harmless_inputs(2), 2)

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
    session = faulty_client.open(int8_model, input_timeout_seconds=0.3)
    again = (batch(session.session_id, inputs, number) for number in range(2))
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
    telemetry = faulty_client.telemetry()
    assert telemetry.quarantined_inputs == 2
    assert telemetry.worker_restarts == 4


def test_failures_are_answers_however_much_a_runtime_says_of_them(
    faulty_client: Any, int8_model: Path, harmless_inputs: Inputs
) -> None:
    inputs = harmless_inputs(8000)
    inputs[:, 0] = 103
    session = faulty_client.open(int8_model)
    (reply,) = faulty_client.stub.InferStream(
        iter([batch(session.session_id, inputs)]), timeout=200
    )
    assert [failure.index for failure in reply.failures] == list(range(8000))
    assert reply.failures[0].detail == "node 3 (CONV_2D) failed to invoke"
    said = sum(len(failure.detail) for failure in reply.failures)
    assert FAILURE_TEXT_BYTES - 100 < said <= FAILURE_TEXT_BYTES


def test_telemetry_counts_and_a_known_model_is_found(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Inputs
) -> None:
    client = connect(start_agent())
    before = client.telemetry()
    assert (before.store_bytes, before.worker_restarts, before.quarantined_inputs) == (0, 0, 0)
    assert client.workers() == 0
    find = agent_pb2.FindModelRequest(sha256=opening(int8_model).model_sha256)
    assert not client.stub.FindModel(find, timeout=200).present
    session_id = client.open(int8_model).session_id
    assert client.stub.FindModel(find, timeout=200).present
    now = client.telemetry()
    assert now.store_bytes == int8_model.stat().st_size
    (rss,) = now.worker_rss_bytes
    assert 5e6 < rss < 5e8
    assert 5e6 < now.agent_rss_bytes < 8e7
    assert now.uptime_seconds > before.uptime_seconds
    client.close(session_id)
    assert client.workers() == 0
    code, _ = refused(client.stub.Infer, batch(session_id, harmless_inputs(1)))
    assert code == grpc.StatusCode.NOT_FOUND
    client.close("never was")


def test_uploads_that_go_wrong_leave_nothing(
    start_agent: Any, connect: Any, tmp_path: Path
) -> None:
    """Whoever promises too much is refused at once, and whoever sends more than promised then."""
    client = connect(start_agent("--store-limit-mib", "1"))
    content = bytes(100_000)
    lost, bad = grpc.StatusCode.DATA_LOSS, grpc.StatusCode.INVALID_ARGUMENT
    full = grpc.StatusCode.RESOURCE_EXHAUSTED
    for promised, expected in (
        ({"sha256": "0" * 64}, lost),
        ({"size": 99_999}, lost),
        ({"size": 100_001}, lost),
        ({"sha256": "../../etc/passwd"}, bad),
        ({"size": 2**20 + 1}, full),
        ({"size": 2**64 - 1}, full),
    ):
        assert refused(lambda p=promised: client.upload(content, **p))[0] == expected, promised
    header = Part(header=Part.Header(sha256="0" * 64, size_bytes=CHUNK_BYTES + 1))
    for parts in (
        [],
        [Part(chunk=b"x")],
        [header, header],
        [header, Part(chunk=bytes(CHUNK_BYTES + 1))],
    ):
        assert refused(client.stub.UploadModel, iter(parts))[0] == bad
    assert refused(lambda: client.upload(bytes(1024 * 1024 + 1)))[0] == full
    assert client.telemetry().store_bytes == 0
    assert list((tmp_path / "store").iterdir()) == []


def test_an_open_sessions_model_is_not_evicted(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    client = connect(start_agent("--store-limit-mib", "1"))
    session = client.open(int8_model)
    filler, filler_2 = b"1" * 600_000, b"2" * 600_000
    client.upload(filler)
    assert client.upload(filler_2).evicted_sha256s == [hashlib.sha256(filler).hexdigest()]
    code, _ = refused(lambda: client.upload(bytes(1024 * 1024)))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert client.workers() == 1
    inputs = harmless_inputs(3)
    outputs = client.infer(session.session_id, inputs).outputs
    assert outputs == reference(int8_model, "builtin", inputs)


def test_sessions_that_cannot_be_opened(client: Any, int8_model: Path, future_model: Path) -> None:
    client.upload(int8_model.read_bytes())
    absent, bad = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT
    delegate = agent_pb2.ExternalDelegate(library="libc.so.6")
    wrong: list[tuple[dict[str, Any], grpc.StatusCode, str]] = [
        ({"model_sha256": "0" * 64}, absent, "no model"),
        ({"model_sha256": "../x"}, bad, "sha256"),
        ({"kernels": 0}, bad, "xnnpack, builtin, reference"),
        ({"kernels": 99}, bad, "kernels"),
        ({"threads": 100_000}, bad, "threads must be from 1 to 128"),
        ({"input_timeout_seconds": 1e300}, bad, "from 0.01 to 3,600"),
        ({"delegate": delegate}, bad, "--allow-delegate"),
    ]
    for change, expected, word in wrong:
        code, words = refused(client.stub.OpenSession, opening(int8_model, **change))
        assert (code, word in words) == (expected, True), words
    code, words = refused(lambda: client.open(future_model))
    assert code == bad
    assert f"{runtime_info()} has no operator FULLY_CONNECTED version 99" in words


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"payload_crc32": 5}, grpc.StatusCode.DATA_LOSS),
        ({"count": 5}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"session_id": "x"}, grpc.StatusCode.NOT_FOUND),
    ],
)
def test_payloads_that_go_wrong_end_a_stream_behind_what_was_right(
    client: Any,
    int8_model: Path,
    harmless_inputs: Inputs,
    change: dict[str, Any],
    expected: grpc.StatusCode,
) -> None:
    good = batch(client.open(int8_model).session_id, harmless_inputs(4))
    bad = agent_pb2.InferRequest()
    bad.CopyFrom(good)
    for field, value in change.items():
        setattr(bad, field, value)
    assert refused(client.stub.Infer, bad)[0] == expected
    stream = client.stub.InferStream(iter([good, bad, good]), timeout=200)
    assert next(stream).request_id == 1
    assert refused(lambda: next(stream))[0] == expected


def test_a_batch_may_have_as_many_inputs_as_the_limit_says(client: Any, int8_model: Path) -> None:
    session_id = client.open(int8_model).session_id
    large = np.zeros((MOST_INPUTS + 1, 8), np.int8)
    code, words = refused(client.stub.Infer, batch(session_id, large))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "count must be from 1 to 65,536" in words
    assert len(client.infer(session_id, large[:MOST_INPUTS]).outputs) == 4 * MOST_INPUTS


@pytest.mark.slow
def test_many_sessions_run_side_by_side_up_to_a_bound(
    client: Any, int8_model: Path, float_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(30)
    kernels: tuple[Kernels, ...] = ("xnnpack", "reference")
    sessions = [
        (client.open(int8_model, kernels=KERNEL_SETS[name].number), name) for name in kernels * 4
    ]
    assert len({session.session_id for session, _ in sessions}) == 8
    calls = [
        (client.stub.Infer.future(batch(session.session_id, inputs), timeout=200), name)
        for session, name in sessions
    ]
    for call, name in calls:
        assert call.result().outputs == reference(int8_model, name, inputs)
    code, words = refused(lambda: client.open(float_model))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "8 sessions" in words
