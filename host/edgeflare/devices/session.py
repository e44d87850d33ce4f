"""One model open on a device: an `Evaluator` like those of the host."""

from __future__ import annotations

import hashlib
import math
import secrets
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.devices.connection import Connection
from edgeflare.devices.profile import Profile
from edgeflare.devices.stream import InferenceStream
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Signature
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.limits import MOST_INPUTS


class DeviceSession:
    """Runs one model on a device; batches are pipelined over one stream.

    Attributes:
        delegated_nodes: nodes of the graph that a delegate really took.
        external_nodes: those of them that the external delegate took; None where the agent is too
            old to tell.
        total_nodes: nodes of the graph.
        operators: operators of the graph in execution order, delegates apart.

    """

    def __init__(
        self, connection: Connection, profile: Profile, model_path: Path, payload_limit: int
    ) -> None:
        """Upload the model, if the agent does not have it, and open it there.

        Args:
            connection: to the agent.
            profile: how the model is to run.
            model_path: the `.tflite` file.
            payload_limit: the most bytes that one message may carry.

        Raises:
            UserError: the file cannot be read, the device's runtime refuses it, or it is no model
                with one input and one output.
            InfrastructureError: the device fails.

        """
        self._profile = profile
        self._model_path = model_path
        # Kept, so that a reopened session runs this very model whatever became of the file.
        self._model = _read_model(model_path)
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

    @property
    def max_batch(self) -> int:
        """The most inputs that travel in one message; larger batches are split."""
        return self._max_batch

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; batches are answered in the order of their submission.

        Never blocks. Outputs are read-only where a batch travelled in one message.

        Args:
            inputs: (batch, *input shape without its batch dimension), in the signature's dtype.

        The future raises DeviceLost if the device is lost; after `Device.reopen` batches can be
        submitted again.

        """
        tensor = self._signature.input
        if not len(inputs) or inputs.shape[1:] != tensor.shape[1:] or inputs.dtype != tensor.dtype:
            raise ValueError(
                f"inputs are {inputs.dtype} {inputs.shape}, expected {tensor.dtype}"
                f" (batch, {', '.join(map(str, tensor.shape[1:]))})"
            )
        step = self._max_batch
        return self._stream.submit([inputs[i : i + step] for i in range(0, len(inputs), step)])

    def suspend(self) -> None:
        """End the stream of a lost connection; batches still under way fail."""
        self._stream.close()

    def resume(self, connection: Connection) -> None:
        """Open the model again over another connection, unless the session was closed."""
        if self.closed:
            return
        if self._session_id and not connection.resumes:
            # An agent that was never away still keeps the place of the session that was lost.
            with suppress(InfrastructureError):
                connection.close_session(self._session_id)
        sha256 = hashlib.sha256(self._model).hexdigest()
        request = open_request(sha256, self._profile)
        request.resume_token = self._resume_token
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
        self._signature = _signature(self._model_path, opened)
        self.delegated_nodes = opened.delegated_nodes
        told = opened.HasField("external_nodes")
        self.external_nodes = opened.external_nodes if told else None
        self.total_nodes = opened.total_nodes
        self.operators = tuple(opened.operators)
        input_bytes, output_bytes = map(_bytes, (self._signature.input, self._signature.output))
        self._max_batch = min(MOST_INPUTS, self._payload_limit // max(input_bytes, output_bytes))
        if not self._max_batch:
            raise UserError(
                f"{self._model_path}: one input or output takes {max(input_bytes, output_bytes)}"
                f" bytes, more than the {self._payload_limit} that one message carries; expected"
                " an image classifier of usual size"
            )
        self._stream = InferenceStream(
            self._connection,
            self._session_id,
            np.dtype(self._signature.output.dtype),
            output_bytes,
            self._profile.input_timeout_seconds,
        )


_KERNELS = {
    "xnnpack": wire.KERNELS_XNNPACK,
    "builtin": wire.KERNELS_BUILTIN,
    "reference": wire.KERNELS_REFERENCE,
}


def _read_model(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def open_request(sha256: str, profile: Profile) -> wire.OpenSessionRequest:
    """Return the request that opens a stored model as a profile says."""
    delegate = None
    if profile.delegate is not None:
        delegate = wire.ExternalDelegate(library=profile.delegate, options=profile.delegate_options)
    return wire.OpenSessionRequest(
        model_sha256=sha256,
        kernels=_KERNELS[profile.kernels],
        threads=profile.threads,
        delegate=delegate,
        warmup=profile.warmup,
        input_timeout_seconds=profile.input_timeout_seconds,
    )


def _signature(path: Path, opened: wire.OpenSessionReply) -> Signature:
    tensors = {}
    for role, specs in (("input", opened.inputs), ("output", opened.outputs)):
        if len(specs) != 1:
            names = ", ".join(spec.name for spec in specs) or "none"
            raise UserError(
                f"{path}: the model has {len(specs)} {role}s ({names}); expected an image"
                f" classifier with one input and one output"
            )
        tensors[role] = _tensor(specs[0])
    if tensors["input"].shape[:1] != (1,):
        raise UserError(
            f"{path}: the model's input has the shape {tensors['input'].shape}; expected a"
            " batch dimension of 1, so convert it with a batch size of 1"
        )
    return Signature(**tensors)


def _tensor(spec: wire.TensorSpec) -> Tensor:
    return Tensor(spec.name, tuple(spec.shape), spec.dtype, spec.scale, spec.zero_point)


def _bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize
