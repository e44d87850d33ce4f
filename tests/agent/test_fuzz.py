"""Damaged messages and damaged models: each is answered by a clear status, and the agent lives."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from agent_calls import DESCRIBE, batch, opening
from edgeflare_protos import PROTOCOL_MAJOR, agent_pb2, crc32

MESSAGES = 1_000
MODELS = 100
AT_ONCE = 4

STEPS = agent_pb2.Invocation(
    steps=[
        agent_pb2.Invocation.Step(
            signature=name,
            input_shapes=[agent_pb2.Invocation.InputShape(input="x", shape=[rows, 3])],
        )
        for name, rows in (("", 1), ("other", 4))
    ]
)

CLEAR = {
    grpc.StatusCode.OK,
    grpc.StatusCode.DATA_LOSS,  # a checksum does not hold
    grpc.StatusCode.FAILED_PRECONDITION,  # another version of the protocol
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # larger than what the agent has room for
}
"""What agent.proto promises; UNKNOWN would be an exception that nobody thought of."""


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Change, insert, remove or repeat some bytes, once or a few times."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(len(changed) + 1))
        length = int(rng.integers(1, 9))
        noise = rng.integers(0, 256, length, dtype=np.uint8).tobytes()
        match rng.integers(5):
            case 0:
                changed[place : place + length] = noise
            case 1:
                changed[place:place] = noise
            case 2:
                del changed[place : place + length]
            case 3:
                changed[place:place] = changed[place : place + length]
            case _ if changed:
                changed[place % len(changed)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def status_of(call: Callable[[], object]) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


class RawAgent:
    """Sends bytes as they are to the RPCs of an agent."""

    def __init__(self, channel: grpc.Channel) -> None:
        def path(name: str) -> str:
            return f"/edgeflare.v1.Agent/{name}"

        self._unary: dict[str, Any] = {
            name: channel.unary_unary(path(name))
            for name in (
                *("Describe", "FindModel", "OpenSession"),
                *("Infer", "Telemetry", "CloseSession"),
            )
        }
        self._upload: Any = channel.stream_unary(path("UploadModel"))
        self._stream: Any = channel.stream_stream(path("InferStream"))
        self._capture: Any = channel.unary_stream(path("Capture"))

    def send(self, name: str, message: bytes) -> grpc.StatusCode:
        if name == "UploadModel":
            return status_of(lambda: self._upload(iter([message]), timeout=200))
        if name == "InferStream":
            return status_of(lambda: list(self._stream(iter([message]), timeout=200)))
        if name == "Capture":
            return status_of(lambda: list(self._capture(message, timeout=200)))
        return status_of(lambda: self._unary[name](message, timeout=200))


@pytest.mark.slow
def test_damaged_messages(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Any, reference: Any
) -> None:
    agent = start_agent("--store-limit-mib", "1")
    client = connect(agent)
    session = client.open(int8_model)
    inputs = harmless_inputs(4)
    sha256 = opening(int8_model).model_sha256
    infer = batch(session.session_id, inputs)
    messages = {
        "Describe": DESCRIBE,
        "FindModel": agent_pb2.FindModelRequest(sha256=sha256),
        "UploadModel": agent_pb2.UploadModelRequest(
            header=agent_pb2.UploadModelRequest.Header(sha256=sha256, size_bytes=1000)
        ),
        # Of a model that is not there, so that the few that are whole enough start no worker.
        "OpenSession": opening(int8_model, model_sha256="0" * 64, invocation=STEPS),
        "Infer": infer,
        "InferStream": infer,
        "Capture": agent_pb2.CaptureRequest(
            session_id=session.session_id,
            payload=inputs[:1].tobytes(),
            payload_crc32=crc32(inputs[:1].tobytes()),
        ),
        "Telemetry": agent_pb2.TelemetryRequest(session_id=session.session_id),
        # Of another session, so that the one in use stays open.
        "CloseSession": agent_pb2.CloseSessionRequest(session_id="x" * 22),
    }
    rng = np.random.default_rng(0)
    answered: Counter[grpc.StatusCode] = Counter()
    with agent.channel() as channel:
        raw = RawAgent(channel)
        for number in range(MESSAGES):
            name = list(messages)[number % len(messages)]
            sent = mutated(messages[name].SerializeToString(), rng)
            code = raw.send(name, sent)
            assert code in CLEAR, (name, sent)
            answered[code] += 1
    assert len(answered) > 4, answered
    still_right(client, agent, infer, reference(int8_model, "builtin", inputs))


@pytest.mark.slow
def test_damaged_models(
    start_agent: Any,
    connect: Any,
    int8_model: Path,
    float_model: Path,
    harmless_inputs: Any,
    reference: Any,
    tmp_path: Path,
) -> None:
    """A damaged model is refused, or runs, or its inputs fail; nothing else happens."""
    agent = start_agent("--store-limit-mib", "2")
    client = connect(agent)
    session = client.open(int8_model)
    rng = np.random.default_rng(0)
    wholes = (int8_model.read_bytes(), float_model.read_bytes())
    models = [mutated_model(wholes[number % 2], rng) for number in range(MODELS)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answered = Counter(pool.map(lambda model: try_model(client, tmp_path, model), models))
    assert set(answered) == {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}
    assert min(answered.values()) > MODELS / 40
    inputs = harmless_inputs(4)
    infer = batch(session.session_id, inputs)
    still_right(client, agent, infer, reference(int8_model, "builtin", inputs))
    assert client.workers() == 1  # no worker of a damaged model is left


def mutated_model(whole: bytes, rng: np.random.Generator) -> bytes:
    """Change some bytes, anywhere or in the tables, or cut the file off."""
    changed = bytearray(whole)
    if rng.random() < 0.1:
        return bytes(changed[: rng.integers(len(changed))])
    for _ in range(int(2 ** rng.integers(0, 6))):
        changed[rng.integers(len(changed))] = int(rng.integers(256))
    return bytes(changed)


def try_model(client: Any, folder: Path, content: bytes) -> grpc.StatusCode:
    """Upload and open a model, and run an input of zeros if it opens."""
    path = folder / hashlib.sha256(content).hexdigest()
    path.write_bytes(content)
    try:
        opened = client.open(path, input_timeout_seconds=1)
    except grpc.RpcError as error:
        refused: Any = error
        assert len(refused.details()) > 20  # says what is wrong
        code: grpc.StatusCode = refused.code()
        return code
    size = sum(int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize for spec in opened.inputs)
    infer = batch(opened.session_id, bytes(size))
    assert status_of(lambda: client.stub.Infer(infer, timeout=200)) in CLEAR
    client.close(opened.session_id)
    return grpc.StatusCode.OK


def still_right(client: Any, agent: Any, infer: agent_pb2.InferRequest, truth: bytes) -> None:
    """Hold the agent to the answer that its first session has given all along."""
    assert agent.process.poll() is None
    assert client.stub.Infer(infer, timeout=200).outputs == truth
    assert client.stub.Describe(DESCRIBE, timeout=200).protocol.major == PROTOCOL_MAJOR
