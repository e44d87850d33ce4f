"""The agent under tflite-runtime 2.14 and numpy < 2, as many boards still have it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

import edgeflare_agent
import edgeflare_protos
from agent_calls import DESCRIBE, refused
from edgeflare_protos import agent_pb2
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS

pytestmark = pytest.mark.old_board

Inputs = Callable[..., NDArray[np.int8]]


@pytest.fixture
def client(start_agent: Any, connect: Any, old_board_python: str) -> Any:
    rooms = (edgeflare_agent.__path__[0], edgeflare_protos.__path__[0])
    path = os.pathsep.join(str(Path(room).parent) for room in rooms)
    return connect(start_agent(python=old_board_python, env={**os.environ, "PYTHONPATH": path}))


def test_it_says_which_runtime_it_is(client: Any) -> None:
    reply = client.stub.Describe(DESCRIBE, timeout=200)
    assert (reply.runtime.name, reply.runtime.version) == ("tflite-runtime", "2.14.0")


@pytest.mark.parametrize("kernels", [KERNEL_SETS[name].number for name in TFLITE_KERNEL_SETS])
def test_it_classifies_as_the_new_runtime_does_within_its_rounding(
    client: Any,
    kernels: int,
    int8_model: Path,
    harmless_inputs: Inputs,
    reference: Callable[..., bytes],
) -> None:
    inputs = harmless_inputs(200)
    session = client.open(int8_model, kernels=kernels)
    # This runtime does not hand int8 operators to XNNPACK.
    assert (session.delegated_nodes, session.total_nodes) == (0, 2)
    reply = client.infer(session.session_id, inputs)
    outputs = np.frombuffer(reply.outputs, np.int8).reshape(200, 4).astype(int)
    right = np.frombuffer(reference(int8_model, "builtin", inputs), np.int8).reshape(200, 4)
    assert np.abs(outputs - right).max() <= 8
    assert (outputs.argmax(1) == right.argmax(1)).mean() > 0.9


def test_it_counts_delegated_nodes_of_a_float_model(client: Any, float_model: Path) -> None:
    session = client.open(float_model, kernels=KERNEL_SETS["xnnpack"].number)
    assert (session.delegated_nodes, session.total_nodes) == (2, 2)


def test_a_truncated_model_crashes_the_worker_only(
    client: Any, int8_model: Path, future_model: Path, tmp_path: Path
) -> None:
    half = tmp_path / "half.tflite"
    content = int8_model.read_bytes()
    half.write_bytes(content[: len(content) // 2])
    wrong = {half: "tflite-runtime 2.14.0", future_model: "FULLY_CONNECTED version 99"}
    for path, why in wrong.items():
        code, words = refused(lambda p=path: client.open(p))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert why in words
    assert client.open(int8_model).session_id


def test_variables_are_reset_before_each_clip(
    client: Any, variable_model: Path, resource_model: Path
) -> None:
    for path, size, sums in ((variable_model, 2, [1, 1.5]), (resource_model, 1, [1, 2])):
        session = client.open(path, invocation=agent_pb2.Invocation(frames=2))
        reply = client.infer(session.session_id, np.ones((3, 2, size), np.float32))
        outputs = np.frombuffer(reply.outputs, np.float32).reshape(3, 2, size)
        assert outputs[:, :, 0].tolist() == [sums] * 3


def test_a_clip_is_run_with_its_state(client: Any, state_model: Callable[[str], Path]) -> None:
    link = agent_pb2.Invocation.StateLink(input="state", output="next")
    invocation = agent_pb2.Invocation(state=[link], frames=4)
    session = client.open(state_model("FLOAT32"), invocation=invocation)
    clips = np.random.default_rng(1).normal(size=(5, 4, 1, 3)).astype(np.float32)
    reply = client.infer(session.session_id, clips)
    assert [tuple(spec.shape) for spec in session.outputs] == [(4, 1, 3)] * 2
    states = np.frombuffer(reply.outputs, np.float32).reshape(5, 2, 4, 3)[:, 0]
    assert np.array_equal(states, np.cumsum(clips[:, :, 0], axis=1))


def test_it_takes_other_shapes_and_signatures_in_turn(
    client: Any, dynamic_model: Path, two_signature_model: Path
) -> None:
    wire = agent_pb2.Invocation
    shapes = [wire.InputShape(input="x", shape=[rows, 3]) for rows in (1, 4, 1)]
    resized = wire(steps=[wire.Step(input_shapes=[shape]) for shape in shapes])
    session = client.open(dynamic_model, invocation=resized)
    rows = np.random.default_rng(2).normal(size=(2, 18)).astype(np.float32)
    doubled = np.split(2 * rows, (3, 15), axis=1)
    right = [np.concatenate([part, np.full_like(part, 7)], axis=1) for part in doubled]
    reply = client.infer(session.session_id, rows)
    assert reply.outputs == np.concatenate(right, axis=1).tobytes()
    in_turn = wire(steps=[wire.Step(signature=name) for name in ("negate", "double", "negate")])
    session = client.open(two_signature_model, invocation=in_turn)
    rows = rows[:, :7].copy()
    factors = np.array([-1, -1, 2, 2, 2, -1, -1], np.float32)
    assert client.infer(session.session_id, rows).outputs == (factors * rows).tobytes()
