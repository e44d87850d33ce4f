"""All tensors of a model, as the agent captures and streams them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare_agent.runtime import IsolatedModel, Options
from edgeflare_protos import agent_pb2, crc32
from edgeflare_protos.kernel_sets import Kernels
from edgeflare_protos.limits import CHUNK_BYTES

Inputs = Callable[..., NDArray[np.int8]]
Reference = Callable[[Path, Kernels, NDArray[np.generic]], bytes]


@pytest.fixture
def client(start_agent: Any, connect: Any) -> Any:
    return connect(start_agent())


def open_capturing(client: Any, model: Path, *, capture: bool = True) -> agent_pb2.OpenSessionReply:
    content = model.read_bytes()
    client.upload(content)
    reply: agent_pb2.OpenSessionReply = client.stub.OpenSession(
        agent_pb2.OpenSessionRequest(
            model_sha256=hashlib.sha256(content).hexdigest(),
            kernels=agent_pb2.KERNELS_BUILTIN,
            threads=1,
            input_timeout_seconds=10.0,
            capture=capture,
        ),
        timeout=200,
    )
    return reply


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
    opened = open_capturing(client, int8_model)
    assert opened.captures
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
    opened = open_capturing(client, int8_model, capture=False)
    assert not opened.captures
    _, outputs, _ = captured(client, opened.session_id, inputs.tobytes())
    assert outputs == reference(int8_model, "builtin", inputs)


def test_what_exceeds_a_message_comes_in_chunks(client: Any, large_model: Path) -> None:
    opened = open_capturing(client, large_model)
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
    opened = open_capturing(client, refusing_model)
    first, _, _ = captured(client, opened.session_id, np.array([7], np.int32).tobytes())
    assert [failure.kind for failure in first.failures] == [agent_pb2.InputFailure.KIND_ERROR]


def test_damaged_payloads_and_unknown_sessions_are_refused(client: Any, int8_model: Path) -> None:
    opened = open_capturing(client, int8_model)
    for session_id, payload, checksum, status in (
        (opened.session_id, b"12345678", 5, grpc.StatusCode.DATA_LOSS),
        (opened.session_id, b"1234", crc32(b"1234"), grpc.StatusCode.INVALID_ARGUMENT),
        ("nobody", b"12345678", crc32(b"12345678"), grpc.StatusCode.NOT_FOUND),
    ):
        request = agent_pb2.CaptureRequest(
            session_id=session_id, payload=payload, payload_crc32=checksum
        )
        with pytest.raises(grpc.RpcError) as caught:
            list(client.stub.Capture(request, timeout=200))
        assert caught.value.code() == status
