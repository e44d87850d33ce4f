"""One model open on a device: an `Evaluator` like those of the host, or a probe of its tensors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch, Tensor, row_layout, tensor_bytes
from edgeflare.devices.connection import SLOW_LINK_BYTES_PER_SECOND, Connection, DeviceLost
from edgeflare.devices.profile import Profile
from edgeflare.devices.stream import ATTEMPTS, SLACK_SECONDS, InferenceStream
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import ONCE, Invocation, Signature
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import ProbeFailed, ProbeRefused, Values, packed, unpacked
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import crc32
from edgeflare_protos.kernel_sets import KERNEL_SETS, accelerated
from edgeflare_protos.limits import MOST_INPUTS


class DeviceSession:
    """Runs one model on a device; batches are pipelined over one stream.

    Attributes:
        delegated_nodes: nodes of the graph that a delegate really took.
        external_nodes: those of them that the external delegate took.
        total_nodes: nodes of the graph.
        runtime: package and version of the runtime that runs the model.
        adapter: what an accelerator computes on, as its driver says; empty where there is none.
        arena_bytes: size of the arena that the model takes; 0 where the runtime has none.
        operators: operators of the graph in execution order, delegates apart.

    """

    def __init__(
        self,
        connection: Connection,
        profile: Profile,
        model_path: Path,
        payload_limit: int,
        invocation: Invocation = ONCE,
    ) -> None:
        """Upload the model, if the agent does not have it, and open it there.

        Args:
            connection: connection to the agent.
            profile: how the model is to run.
            model_path: the `.tflite` file.
            payload_limit: the most bytes that one message may carry.
            invocation: how the model is called.

        Raises:
            UserError: the file cannot be read, the device's runtime refuses it, or the invocation
                does not fit it.
            InfrastructureError: the device fails.

        """
        self._profile = profile
        self._invocation = invocation
        self._model_path = model_path
        # Kept, so that a reopened session runs this very model whatever became of the file.
        try:
            self._model = read_model_file(model_path)
        except OSError as error:
            raise UserError(f"{model_path}: cannot be read: {error.strerror}") from None
        self._payload_limit = payload_limit
        self.closed = False
        self._session_id = ""
        # Under it an agent that was never away takes the session up again, its worker and all.
        self._resume_token = secrets.token_urlsafe(16)
        self.resume(connection)

    @property
    def signature(self) -> Signature:
        """What goes in and comes out."""
        return self._signature

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; batches are answered in the order of their submission.

        Never blocks. Outputs are read-only where a batch travelled in one message.

        Args:
            inputs: the rows of the batch, see `Evaluator`.

        The future raises DeviceLost if the device is lost; after `Device.reopen` batches can be
        submitted again.

        """
        shape, dtype = self._row
        if not len(inputs) or inputs.shape[1:] != shape or inputs.dtype != dtype:
            raise ValueError(
                f"inputs are {inputs.dtype} {inputs.shape}, expected {dtype}"
                f" (batch, {', '.join(map(str, shape))})"
            )
        step = self._max_batch
        return self._stream.submit([inputs[i : i + step] for i in range(0, len(inputs), step)])

    def suspend(self) -> None:
        """End the stream of a lost connection; batches still under way fail."""
        self._stream.cancel()

    def resume(self, connection: Connection) -> None:
        """Open the model again over another connection, unless the session was closed."""
        if self.closed:
            return
        sha256 = hashlib.sha256(self._model).hexdigest()
        request = open_request(sha256, self._profile)
        request.resume_token = self._resume_token
        if self._invocation != ONCE:
            request.invocation.CopyFrom(_invocation(self._invocation))
        try:
            opened = connection.open_model(self._model, request)
        except UserError as error:
            raise UserError(f"{self._model_path}: {error}") from None
        self._connection = connection
        self._session_id = opened.session_id
        try:
            self._adopt(opened)
        except UserError:
            connection.close_session(opened.session_id)
            raise

    def close(self) -> None:
        """End the session and its worker on the device. Closing twice is no error."""
        if self.closed:
            return
        self.closed = True
        self._stream.close()
        with suppress(InfrastructureError):  # a lost device holds no session
            self._connection.close_session(self._session_id)

    def _adopt(self, opened: wire.OpenSessionReply) -> None:
        self._signature = Signature(
            tuple(map(_tensor, opened.inputs)), tuple(map(_tensor, opened.outputs))
        )
        self._row = row_layout(self._signature.inputs)
        self.delegated_nodes = opened.delegated_nodes
        self.external_nodes = opened.external_nodes
        self.total_nodes = opened.total_nodes
        self.runtime = (opened.runtime.name, opened.runtime.version)
        self.adapter = opened.adapter
        self.arena_bytes = opened.arena_bytes
        self.operators = tuple(opened.operators)
        input_bytes = sum(map(tensor_bytes, self._signature.inputs))
        output_bytes = sum(map(tensor_bytes, self._signature.outputs))
        largest = max(input_bytes, output_bytes, 1)  # all tensors may be empty
        self._max_batch = min(MOST_INPUTS, self._payload_limit // largest)
        if not self._max_batch:
            raise UserError(
                f"{self._model_path}: one input or output takes {largest} bytes,"
                f" more than the {self._payload_limit} that one message carries: give a"
                " smaller model, or fewer frames"
            )
        self._stream = InferenceStream(
            self._connection,
            self._session_id,
            row_layout(self._signature.outputs)[1],
            output_bytes,
            self._profile.input_timeout_seconds,
        )


def open_request(sha256: str, profile: Profile) -> wire.OpenSessionRequest:
    """Return the request that opens a stored model as a profile says."""
    delegate = None
    if profile.delegate is not None:
        delegate = wire.ExternalDelegate(library=profile.delegate, options=profile.delegate_options)
    return wire.OpenSessionRequest(
        model_sha256=sha256,
        kernels=KERNEL_SETS[profile.kernels].number,
        threads=profile.threads,
        acceleration=wire.Acceleration(
            float32=profile.precision == "fp32", fallback=profile.fallback
        )
        if accelerated(profile.kernels)
        else None,
        arena_bytes=profile.arena_bytes or 0,
        delegate=delegate,
        warmup=profile.warmup,
        input_timeout_seconds=profile.input_timeout_seconds,
    )


def _invocation(invocation: Invocation) -> wire.Invocation:
    state = invocation.state.items()
    return wire.Invocation(
        signature=invocation.signature,
        input_shapes=_input_shapes(invocation.shapes),
        state=[wire.Invocation.StateLink(input=given, output=made) for given, made in state],
        frames=invocation.frames,
        steps=[
            wire.Invocation.Step(
                signature=step.signature,
                input_shapes=_input_shapes(step.shapes),
                output_shapes=[
                    wire.Invocation.OutputShape(output=output, shape=shape)
                    for output, shape in step.outputs.items()
                ],
            )
            for step in invocation.steps
        ],
    )


def _input_shapes(shapes: Mapping[str, tuple[int, ...]]) -> list[wire.Invocation.InputShape]:
    return [
        wire.Invocation.InputShape(input=input_, shape=shape) for input_, shape in shapes.items()
    ]


def _tensor(spec: wire.TensorSpec) -> Tensor:
    return Tensor(spec.name, tuple(spec.shape), spec.dtype, spec.scale, spec.zero_point)


_KINDS = {
    wire.InputFailure.KIND_CRASH: "crash",
    wire.InputFailure.KIND_HANG: "hang",
}


class DeviceProbe:
    """A `Probe` on a device.

    Attributes:
        given: positions, among the tensors of the graph, of what it takes.
        made: likewise of what `run` returns.
        runs: how often it was run, each a device query.

    """

    def __init__(
        self,
        connection: Connection,
        profile: Profile,
        content: bytes,
        *,
        capture: bool = False,
    ) -> None:
        """Upload a model, if the agent does not have it, and open it there.

        Args:
            connection: connection to the agent.
            profile: how models run there.
            content: a `.tflite` file.
            capture: return what every operator puts out, and not the model's outputs.

        Raises:
            ProbeRefused: the device's runtime refuses the model or the options.

        """
        self._connection = connection
        self._profile = profile
        sha256 = hashlib.sha256(content).hexdigest()
        request = open_request(sha256, self._profile)
        request.capture = capture
        try:
            opened = connection.open_model(content, request)
        except UserError as refused:
            raise ProbeRefused(str(refused)) from None
        self._session_id = opened.session_id
        self._specs = tuple(opened.outputs)
        self._output_bytes = sum(map(tensor_bytes, map(_tensor, self._specs)))
        self.given = tuple(spec.index for spec in opened.inputs)
        self.made = tuple(spec.index for spec in self._specs)
        self.runs = 0

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        """Run the model once; see `Probe`."""
        payload = packed(inputs)
        seconds = self._profile.input_timeout_seconds * ATTEMPTS + SLACK_SECONDS
        # All tensors of a model may be more than the model.
        seconds += (len(payload) + self._output_bytes) / SLOW_LINK_BYTES_PER_SECOND
        request = wire.CaptureRequest(
            session_id=self._session_id, payload=payload, payload_crc32=crc32(payload)
        )
        self.runs += 1
        first, *rest = self._connection.capture(request, seconds, self._output_bytes)
        self._connection.check_leased(first)
        outputs = b"".join(part.chunk for part in rest)
        if (
            first.payload_crc32 != request.payload_crc32
            or first.outputs_crc32 != crc32(outputs)
            or first.size_bytes != len(outputs)
        ):
            raise DeviceLost(f"{self._connection.name}: a reply arrived damaged")
        if first.failures:
            failure = first.failures[0]
            raise ProbeFailed(f"{_KINDS.get(failure.kind, 'error')}: {failure.detail}")
        return unpacked(outputs, self._specs)

    def close(self) -> None:
        """End the session and its worker on the device."""
        if self._session_id:
            with suppress(InfrastructureError):  # a lost device holds no session
                self._connection.close_session(self._session_id)
            self._session_id = ""

    def __enter__(self) -> DeviceProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
