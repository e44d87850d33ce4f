"""The checks of requests: every number is compared with its bound before it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from edgeflare_agent.device_lease import check_holder
from edgeflare_agent.model_store import Corrupted
from edgeflare_agent.runtime import (
    Acceleration,
    Delegate,
    Invocation,
    IsolatedModel,
    Options,
    Step,
)
from edgeflare_protos import agent_pb2, seal_holds
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels, is_tflite_kernel_set
from edgeflare_protos.limits import (
    CHUNK_BYTES,
    LEAST_INPUT_TIMEOUT_SECONDS,
    LEAST_SECRET_CHARACTERS,
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

KERNELS: dict[int, Kernels] = {known.number: name for name, known in KERNEL_SETS.items()}
"""The kernel sets by their numbers on the wire."""


def session_options(request: agent_pb2.OpenSessionRequest, allowed: Sequence[str]) -> Options:
    """Return how a session is to run its model.

    Args:
        request: as it came.
        allowed: the libraries that a host may name as a delegate.

    Raises:
        ValueError: a number is out of its bounds, or something named is not there.

    """
    if request.kernels not in KERNELS:
        raise ValueError(f"kernels must be one of {', '.join(KERNELS.values())}")
    _check_range("threads", request.threads, 1, MOST_THREADS)
    _check_range("warmup", request.warmup, 0, MOST_WARMUP)
    _check_range(
        "input_timeout_seconds",
        request.input_timeout_seconds,
        LEAST_INPUT_TIMEOUT_SECONDS,
        MOST_INPUT_TIMEOUT_SECONDS,
    )
    _check_range("the length of resume_token", len(request.resume_token), 0, MOST_TOKEN_CHARACTERS)
    return Options(
        kernels=KERNELS[request.kernels],
        threads=request.threads,
        delegate=_delegate(request, allowed) if request.HasField("delegate") else None,
        warmup=request.warmup,
        input_timeout_seconds=request.input_timeout_seconds,
        capture=request.capture,
        invocation=_invocation(request.invocation),
        arena_bytes=request.arena_bytes,
        acceleration=Acceleration(
            float32=request.acceleration.float32, fallback=request.acceleration.fallback
        ),
    )


def check_lease_request(request: agent_pb2.AcquireLeaseRequest) -> None:
    """Refuse a request for a lease that arrived damaged, or whose words are too long.

    Raises:
        Corrupted: it is damaged.
        ValueError: a part of it is out of its bounds.

    """
    if not seal_holds(request):
        raise Corrupted("the request does not match its seal")
    check_holder(request.holder)
    for name, secret, least in (
        ("secret", request.secret, LEAST_SECRET_CHARACTERS),
        ("former_secret", request.former_secret, 0),
    ):
        _check_range(f"the length of {name}", len(secret), least, MOST_TOKEN_CHARACTERS)
        if not (secret.isascii() and secret.isprintable()):
            raise ValueError(f"{name} must be ASCII characters that print")


def model_chunks(requests: Iterator[agent_pb2.UploadModelRequest]) -> Iterator[bytes]:
    """Yield what follows the header of an upload, piece by piece; ValueError if it is none."""
    for request in requests:
        if not request.HasField("chunk"):
            raise ValueError("an upload has one header, then chunks only")
        # Empty ones could come without end.
        _check_range("the bytes of a chunk", len(request.chunk), 1, CHUNK_BYTES)
        yield request.chunk


def check_batch(model: IsolatedModel, request: agent_pb2.InferRequest) -> None:
    """Refuse, by a ValueError, a batch that is too large or whose outputs would be."""
    _check_range("count", request.count, 1, MOST_INPUTS)
    largest = max(len(request.payload), request.count * model.output_bytes)
    if largest > PAYLOAD_LIMIT_BYTES:
        most = PAYLOAD_LIMIT_BYTES // max(model.input_bytes, model.output_bytes)
        raise ValueError(
            f"{request.count} inputs or their outputs exceed {PAYLOAD_LIMIT_BYTES} bytes: "
            f"send at most {most} at once"
        )


def check_capture(model: IsolatedModel) -> None:
    """Refuse, by a ValueError, to capture more than a device should hold in memory."""
    _check_range("the bytes of a model's tensors", model.output_bytes, 0, MOST_CAPTURE_BYTES)


def _delegate(request: agent_pb2.OpenSessionRequest, allowed: Sequence[str]) -> Delegate:
    asked, kernels = request.delegate, KERNELS[request.kernels]
    if not is_tflite_kernel_set(kernels):
        raise ValueError(
            f"the delegate {asked.library!r} is loaded by TFLite's interpreter, and not by the"
            f" runtime of the {KERNEL_SETS[kernels].title}: leave one of them out"
        )
    if asked.library not in allowed:
        raise ValueError(
            f"the agent was not told to allow the delegate {asked.library!r}: "
            "start it with --allow-delegate"
        )
    _check_range("the number of a delegate's options", len(asked.options), 0, MOST_DELEGATE_OPTIONS)
    return Delegate(asked.library, dict(asked.options))


def _invocation(asked: agent_pb2.Invocation) -> Invocation:
    _check_range("frames", asked.frames, 0, MOST_FRAMES)
    _check_range("the number of steps", len(asked.steps), 0, MOST_STEPS)
    _check_range("the number of states", len(asked.state), 0, MOST_NAMED_TENSORS)
    if asked.state and not asked.frames:
        raise ValueError("a state needs the number of frames of a clip: frames must be at least 1")
    if asked.steps and (asked.frames or asked.signature or asked.input_shapes):
        raise ValueError("steps have shapes and signatures of their own, and no frames")
    for role, total in (
        ("inputs", sum(prod(entry.shape) for step in asked.steps for entry in step.input_shapes)),
        ("outputs", sum(prod(entry.shape) for step in asked.steps for entry in step.output_shapes)),
    ):
        # An element is a byte or more, and the tensors of all steps have to fit a message.
        _check_range(f"the size of the {role} of all steps", total, 0, PAYLOAD_LIMIT_BYTES)
    if len({link.input for link in asked.state}) < len(asked.state):
        raise ValueError("an input can be fed by one state only")
    return Invocation(
        signature=asked.signature,
        shapes=_shapes(asked.input_shapes),
        state={link.input: link.output for link in asked.state},
        frames=asked.frames,
        steps=tuple(map(_step, asked.steps)),
    )


def _step(asked: agent_pb2.Invocation.Step) -> Step:
    _check_range("the number of output shapes", len(asked.output_shapes), 0, MOST_NAMED_TENSORS)
    for output_shape in asked.output_shapes:
        _check_shape(f"output {output_shape.output!r}", output_shape.shape)
    outputs = {entry.output: tuple(entry.shape) for entry in asked.output_shapes}
    return Step(asked.signature, _shapes(asked.input_shapes), outputs)


def _shapes(asked: Sequence[agent_pb2.Invocation.InputShape]) -> dict[str, tuple[int, ...]]:
    _check_range("the number of input shapes", len(asked), 0, MOST_NAMED_TENSORS)
    for input_shape in asked:
        _check_shape(f"input {input_shape.input!r}", input_shape.shape)
    return {input_shape.input: tuple(input_shape.shape) for input_shape in asked}


def _check_shape(tensor: str, shape: Sequence[int]) -> None:
    for size in shape:
        _check_range(f"each dimension of the {tensor}", size, 1, PAYLOAD_LIMIT_BYTES)
    # An element is a byte or more, and a tensor has to fit a message.
    _check_range(f"the size of the {tensor}", prod(shape), 1, PAYLOAD_LIMIT_BYTES)


def _check_range(name: str, value: float, least: float, most: float) -> None:
    # Written so that NaN fails too.
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least:,} to {most:,}, not {value:,}")
