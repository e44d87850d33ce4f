"""The bounds of what a host may ask for; none of these requests reaches a worker or a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare_agent.requests import check_batch, check_capture, model_chunks, session_options
from edgeflare_agent.runtime import Invocation, IsolatedModel, Step
from edgeflare_protos import agent_pb2
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels
from edgeflare_protos.limits import (
    CHUNK_BYTES,
    LEAST_INPUT_TIMEOUT_SECONDS,
    MOST_CAPTURE_BYTES,
    MOST_DELEGATE_OPTIONS,
    MOST_FRAMES,
    MOST_INPUT_TIMEOUT_SECONDS,
    MOST_INPUTS,
    MOST_NAMED_TENSORS,
    MOST_STEPS,
    MOST_THREADS,
    MOST_TOKEN_CHARACTERS,
    MOST_WARMUP,
    PAYLOAD_LIMIT_BYTES,
)

UINT32 = 2**32 - 1


def opening(**changes: Any) -> agent_pb2.OpenSessionRequest:
    usual = {"kernels": KERNEL_SETS["builtin"].number, "threads": 1, "input_timeout_seconds": 5.0}
    return agent_pb2.OpenSessionRequest(**{**usual, **changes})


def model(input_bytes: int, output_bytes: int) -> IsolatedModel:
    return cast(
        "IsolatedModel", SimpleNamespace(input_bytes=input_bytes, output_bytes=output_bytes)
    )


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("threads", 1, MOST_THREADS),
        ("warmup", 0, MOST_WARMUP),
        ("input_timeout_seconds", LEAST_INPUT_TIMEOUT_SECONDS, MOST_INPUT_TIMEOUT_SECONDS),
    ],
)
@given(data=st.data())
def test_what_is_within_bounds_is_taken_and_nothing_else(
    data: st.DataObject, name: str, least: float, most: float
) -> None:
    whole = isinstance(least, int)
    value = data.draw(st.integers(0, UINT32) if whole else st.floats())
    if least <= value <= most:
        assert getattr(session_options(opening(**{name: value}), ()), name) == value
    else:
        with pytest.raises(ValueError, match=f"{name} must be from") as refused:
            session_options(opening(**{name: value}), ())
        assert "\n" not in str(refused.value)


def test_the_bounds_themselves_are_taken() -> None:
    most = opening(
        threads=MOST_THREADS,
        warmup=MOST_WARMUP,
        input_timeout_seconds=MOST_INPUT_TIMEOUT_SECONDS,
        resume_token="x" * MOST_TOKEN_CHARACTERS,
    )
    assert session_options(most, ()).threads == MOST_THREADS


def test_what_would_be_kept_without_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="resume_token"):
        session_options(opening(resume_token="x" * (MOST_TOKEN_CHARACTERS + 1)), ())
    options = {str(n): "" for n in range(MOST_DELEGATE_OPTIONS + 1)}
    delegate = agent_pb2.ExternalDelegate(library="lib.so", options=options)
    with pytest.raises(ValueError, match="delegate's options must be from 0 to 64, not 65"):
        session_options(opening(delegate=delegate), ["lib.so"])


@pytest.mark.parametrize("library", ["/tmp/evil.so", "/opt/../opt/libgood.so", "libgood.so"])  # noqa: S108
def test_a_delegate_that_was_not_allowed_is_refused(library: str) -> None:
    delegate = agent_pb2.ExternalDelegate(library=library)
    with pytest.raises(ValueError, match="was not told to allow the delegate"):
        session_options(opening(delegate=delegate), ["/opt/libgood.so"])


@pytest.mark.parametrize("kernels", sorted(KERNEL_SETS.keys() - set(TFLITE_KERNEL_SETS)))
def test_a_delegate_is_for_the_kernels_of_the_interpreter(kernels: Kernels) -> None:
    delegate = agent_pb2.ExternalDelegate(library="lib.so")
    with pytest.raises(ValueError, match=r"'lib\.so' is loaded by TFLite's interpreter"):
        session_options(opening(kernels=KERNEL_SETS[kernels].number, delegate=delegate), ["lib.so"])


@pytest.mark.parametrize("size", [0, CHUNK_BYTES + 1])
def test_chunks_are_neither_empty_nor_too_large(size: int) -> None:
    good = agent_pb2.UploadModelRequest(chunk=bytes(CHUNK_BYTES))
    chunks = model_chunks(iter([good, agent_pb2.UploadModelRequest(chunk=bytes(size))]))
    assert len(next(chunks)) == CHUNK_BYTES
    with pytest.raises(ValueError, match="bytes of a chunk must be from 1 to 65,536"):
        next(chunks)


def test_a_batch_is_bounded_by_its_bytes_and_by_its_count() -> None:
    check_batch(model(1, 1), agent_pb2.InferRequest(count=MOST_INPUTS, payload=bytes(MOST_INPUTS)))
    # A model whose tensors are empty takes any number of inputs in no bytes at all.
    for count in (0, MOST_INPUTS + 1, UINT32):
        with pytest.raises(ValueError, match="count must be from 1 to 65,536"):
            check_batch(model(0, 0), agent_pb2.InferRequest(count=count))
    with pytest.raises(ValueError, match="send at most 3 at once"):
        check_batch(model(1, PAYLOAD_LIMIT_BYTES // 3), agent_pb2.InferRequest(count=4))


def test_what_a_device_cannot_hold_is_not_captured() -> None:
    check_capture(model(1, MOST_CAPTURE_BYTES))
    with pytest.raises(ValueError, match="bytes of a model's tensors must be from 0 to"):
        check_capture(model(1, MOST_CAPTURE_BYTES + 1))


SHAPE, LINK = agent_pb2.Invocation.InputShape, agent_pb2.Invocation.StateLink
STEP = agent_pb2.Invocation.Step
WRITTEN = agent_pb2.Invocation.OutputShape
MADE = STEP(output_shapes=[WRITTEN(output="b", shape=[PAYLOAD_LIMIT_BYTES // 2 + 1])])
HALF = STEP(input_shapes=[SHAPE(input="a", shape=[PAYLOAD_LIMIT_BYTES // 2 + 1])])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"frames": MOST_FRAMES + 1}, "frames must be from 0 to 65,536"),
        ({"state": [LINK(input="a", output="b")]}, "frames must be at least 1"),
        ({"state": [LINK(input="a")] * 2, "frames": 2}, "fed by one state only"),
        ({"state": [LINK()] * (MOST_NAMED_TENSORS + 1), "frames": 2}, "the number of states"),
        ({"input_shapes": [SHAPE()] * (MOST_NAMED_TENSORS + 1)}, "the number of input shapes"),
        ({"input_shapes": [SHAPE(input="a", shape=[1, 0])]}, "dimension of the input 'a'"),
        ({"input_shapes": [SHAPE(input="a", shape=[-(2**63)])]}, "dimension of the input 'a'"),
        ({"input_shapes": [SHAPE(input="a", shape=[1 << 20] * 3)]}, "size of the input 'a'"),
        ({"steps": [STEP()] * (MOST_STEPS + 1)}, "the number of steps must be from 0 to 16"),
        ({"steps": [STEP()], "frames": 2}, "steps have shapes and signatures of their own"),
        ({"steps": [STEP()], "signature": "f"}, "steps have shapes and signatures of their own"),
        ({"steps": [STEP(input_shapes=[SHAPE(shape=[0])])]}, "each dimension of the input"),
        ({"steps": [HALF, HALF]}, "the size of the inputs of all steps must be from 0 to"),
        ({"steps": [MADE, MADE]}, "the size of the outputs of all steps must be from 0 to"),
        ({"steps": [STEP(output_shapes=[WRITTEN(shape=[0])])]}, "each dimension of the output"),
        (
            {"steps": [STEP(output_shapes=[WRITTEN()] * (MOST_NAMED_TENSORS + 1))]},
            "the number of output shapes must be from 0 to 256",
        ),
    ],
)
def test_an_invocation_out_of_bounds_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        session_options(opening(invocation=agent_pb2.Invocation(**asked)), ())


def test_an_invocation_arrives_as_it_was_asked_for() -> None:
    asked = agent_pb2.Invocation(
        signature="step",
        input_shapes=[SHAPE(input="x", shape=[1, 64])],
        state=[LINK(input="h", output="next")],
        frames=49,
    )
    invocation = session_options(opening(invocation=asked), ()).invocation
    assert invocation == Invocation("step", {"x": (1, 64)}, {"h": "next"}, 49)
    steps = [STEP(signature="f"), STEP(input_shapes=[SHAPE(input="x", shape=[3, 64])])]
    invocation = session_options(
        opening(invocation=agent_pb2.Invocation(steps=steps)), ()
    ).invocation
    assert invocation == Invocation(steps=(Step("f"), Step(shapes={"x": (3, 64)})))
    assert session_options(opening(), ()).invocation == Invocation()
