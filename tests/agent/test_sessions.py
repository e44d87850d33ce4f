"""Sessions that are taken up again, and all tensors of a model as an agent streams them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from agent_calls import DESCRIBE, batch, opening, refused
from edgeflare_agent.runtime import IsolatedModel, Options
from edgeflare_protos import agent_pb2, crc32, message_crc32, seal_holds
from edgeflare_protos.kernel_sets import Kernels
from edgeflare_protos.limits import CHUNK_BYTES

AGAIN = {"resume_token": "a"}


def test_the_same_token_takes_a_session_up_again(client: Any, int8_model: Path) -> None:
    first, again, other = (client.open(int8_model, resume_token=token) for token in ("a", "a", "b"))
    assert again.session_id == first.session_id != other.session_id
    assert again.inputs == first.inputs
    assert client.workers() == 2


def test_a_session_that_is_taken_up_again_counts_as_used(client: Any, int8_model: Path) -> None:
    opened = client.open(int8_model, **AGAIN)
    time.sleep(1.0)
    began = time.monotonic()
    client.open(int8_model, **AGAIN)
    assert client.telemetry(opened.session_id).idle_seconds <= time.monotonic() - began


def test_without_a_token_each_session_is_new(client: Any, int8_model: Path) -> None:
    assert client.open(int8_model).session_id != client.open(int8_model).session_id


def test_a_token_for_something_else_ends_what_was_open_under_it(
    client: Any, int8_model: Path, harmless_inputs: Any
) -> None:
    first = client.open(int8_model, **AGAIN)
    second = client.open(int8_model, **AGAIN, threads=2)
    assert second.session_id != first.session_id
    assert client.workers() == 1
    code, _ = refused(client.stub.Infer, batch(first.session_id, harmless_inputs(1)))
    assert code == grpc.StatusCode.NOT_FOUND


def test_a_host_that_asks_again_before_the_model_is_loaded_gets_the_same(
    client: Any, int8_model: Path
) -> None:
    with ThreadPoolExecutor(6) as pool:
        opened = list(pool.map(lambda _: client.open(int8_model, **AGAIN), range(6)))
    assert len({session.session_id for session in opened}) == 1
    assert client.workers() == 1


def test_replies_are_sealed(client: Any, int8_model: Path, harmless_inputs: Any) -> None:
    opened = client.open(int8_model, **AGAIN)
    assert opened.request_crc32 == message_crc32(opening(int8_model, **AGAIN))
    inputs = harmless_inputs(1).tobytes()
    capture = agent_pb2.CaptureRequest(
        session_id=opened.session_id, payload=inputs, payload_crc32=crc32(inputs)
    )
    replies = [
        opened,
        client.stub.Describe(DESCRIBE, timeout=200),
        client.infer(opened.session_id, harmless_inputs(3)),
        client.telemetry(),
        next(iter(client.stub.Capture(capture, timeout=200))),
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
    session_id = client.open(int8_model).session_id
    first, second = (client.telemetry(session_id).idle_seconds for _ in range(2))
    assert 0 < first < second
    client.infer(session_id, harmless_inputs(3))
    now = client.telemetry(session_id)
    assert now.uptime_seconds > now.idle_seconds
    assert not client.telemetry().HasField("idle_seconds")
    assert refused(lambda: client.telemetry("unknown"))[0] == grpc.StatusCode.NOT_FOUND


Inputs = Callable[..., NDArray[np.int8]]
Reference = Callable[[Path, Kernels, NDArray[np.generic]], bytes]


def captured(client: Any, session_id: str, payload: bytes) -> tuple[Any, bytes, list[int]]:
    request = agent_pb2.CaptureRequest(
        session_id=session_id, payload=payload, payload_crc32=crc32(payload)
    )
    first, *rest = client.stub.Capture(request, timeout=200)
    return first, b"".join(part.chunk for part in rest), [len(part.chunk) for part in rest]


def test_every_operators_tensor_comes_back(
    client: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(1)
    opened = client.open(int8_model, capture=True)
    assert [spec.name for spec in opened.outputs] == ["logits", "p"]
    first, outputs, _ = captured(client, opened.session_id, inputs.tobytes())
    assert first.payload_crc32 == crc32(inputs.tobytes())
    assert first.outputs_crc32 == crc32(outputs)
    assert first.size_bytes == len(outputs) == 8
    assert outputs[4:] == reference(int8_model, "builtin", inputs)
    logits = np.frombuffer(outputs[:4], np.int8).astype(float) - opened.outputs[0].zero_point
    powers = np.exp(logits * opened.outputs[0].scale)
    wanted = np.round(powers / powers.sum() * 256 - 128)
    assert np.abs(wanted - np.frombuffer(outputs[4:], np.int8)).max() <= 1


def test_without_capture_the_call_gives_the_models_outputs(
    client: Any, int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(1)
    opened = client.open(int8_model)
    _, outputs, _ = captured(client, opened.session_id, inputs.tobytes())
    assert outputs == reference(int8_model, "builtin", inputs)


def test_what_exceeds_a_message_comes_in_chunks(client: Any, large_model: Path) -> None:
    opened = client.open(large_model, capture=True)
    values = np.arange(opened.inputs[0].shape[1], dtype=np.float32).reshape(1, -1)
    _, outputs, sizes = captured(client, opened.session_id, values.tobytes())
    assert len(outputs) > 4 << 20
    assert max(sizes) <= CHUNK_BYTES
    parts = np.frombuffer(outputs, np.float32).reshape(-1, values.size)
    assert (parts[0] == -values).all()
    assert (parts[-1] == values).all()
    assert len(parts) == 16


def test_scalars_are_captured_too(scalar_model: Path) -> None:
    with IsolatedModel.open(scalar_model, Options("builtin", capture=True)) as model:
        shapes = [spec.shape for spec in model.outputs]
        assert () in shapes
        values = np.array([[3, 1, 2]], np.float32)
        batch = model.run(values.tobytes(), 1)
    assert batch.failures == ()
    assert np.frombuffer(batch.outputs, np.float32).tolist() == [6.0, -6.0]


def test_an_input_that_the_runtime_refuses_is_a_failure(client: Any, refusing_model: Path) -> None:
    opened = client.open(refusing_model, capture=True)
    first, _, _ = captured(client, opened.session_id, np.array([7], np.int32).tobytes())
    assert [failure.kind for failure in first.failures] == [agent_pb2.InputFailure.KIND_ERROR]


def test_damaged_payloads_and_unknown_sessions_are_refused(client: Any, int8_model: Path) -> None:
    opened = client.open(int8_model, capture=True)
    for session_id, payload, checksum, status in (
        (opened.session_id, b"12345678", 5, grpc.StatusCode.DATA_LOSS),
        (opened.session_id, b"1234", crc32(b"1234"), grpc.StatusCode.INVALID_ARGUMENT),
        ("nobody", b"12345678", crc32(b"12345678"), grpc.StatusCode.NOT_FOUND),
    ):
        request = agent_pb2.CaptureRequest(
            session_id=session_id, payload=payload, payload_crc32=checksum
        )
        assert refused(lambda r=request: list(client.stub.Capture(r, timeout=200)))[0] == status
