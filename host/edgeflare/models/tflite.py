"""TFLite models on the host, in a worker process of the agent's: the original and the twin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor, row_layout
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import ONCE, Invocation, Signature
from edgeflare.models.model_file import read_model_file
from edgeflare.models.tflite_file import PACKED, declared_inputs, is_flatbuffer
from edgeflare.models.tflite_graph import Graph
from edgeflare_agent.runtime import (
    IsolatedModel,
    ModelRejected,
    Options,
    TensorSpec,
    WorkerLost,
)
from edgeflare_protos.kernel_sets import Kernels


class ModelRefused(UserError):  # noqa: N818 - what happened, to be told apart
    """A runtime refuses a file, however it is called; the message says which and why."""


class OperatorMissing(ModelRefused):
    """The runtime has no such operator, or not that version; the message names all three."""


class WorkerDied(InfrastructureError):  # noqa: N818 - a fact about the process, like WorkerLost
    """The process of a model died, and another one does not live; the message says how."""


_NO_OPERATOR = re.compile(r" has no (custom )?operator ")
"""How the agent's runtime says that it lacks an operator, in one line like whatever else it refuses
a model for."""


def open_tflite(
    path: Path,
    kernels: Kernels = "xnnpack",
    invocation: Invocation = ONCE,
    threads: int = 1,
    launcher: Sequence[str] | None = None,
    input_seconds: float = Options.input_timeout_seconds,
) -> TFLiteModel:
    """Load a model into a worker process.

    Args:
        path: the `.tflite` file; float32, float16, dynamic-range or integer quantized.
        kernels: the host's kernels that run it.
        invocation: signature, fixed shapes, state and frames, if any.
        threads: threads of the interpreter.
        launcher: the command that starts the worker's Python; None for this one.
        input_seconds: time that one input may take.

    Raises:
        UserError: the file is missing or empty, or the runtime refuses it, or the invocation does
            not fit it or leaves the size of an input open, or one of its tensors holds no numbers.

    """
    _require_runnable(path, invocation)
    options = Options(
        kernels=kernels,
        threads=threads,
        invocation=invocation,
        input_timeout_seconds=input_seconds,
    )
    try:
        model = IsolatedModel.open(path, options, launcher)
    except ModelRejected as rejected:
        if _NO_OPERATOR.search(str(rejected)):
            raise OperatorMissing(f"{path}: {rejected}") from rejected
        if invocation != ONCE:  # which is likelier to be wrong than the file
            raise UserError(f"{path}: {rejected}") from rejected
        raise ModelRefused(
            f"{path} does not load, copy it or convert it again: {rejected}"
        ) from rejected
    except WorkerLost as lost:
        raise InfrastructureError(f"{path}: no worker process could be started: {lost}") from lost
    signature = Signature(_tensors(model.inputs), _tensors(model.outputs))
    return TFLiteModel(path, model, signature, invocation)


def _require_runnable(path: Path, invocation: Invocation) -> None:
    """Refuse a model whose inputs are open, or hold no numbers.

    A file that is none of the format is left to the runtime, which says more.
    """
    content = read_model_file(path)
    if not is_flatbuffer(content):
        return
    try:
        graph = Graph(content, str(path))
    except UserError as error:
        why = str(error).removeprefix(f"{path}: ")
        raise ModelRefused(f"{path} does not load, copy it or convert it again: {why}") from error
    _require_sizes(graph, path, invocation)
    if not invocation.signature:  # whose graph may be another one; the runtime refuses there
        _require_numbers(graph, path)


def _require_sizes(graph: Graph, path: Path, invocation: Invocation) -> None:
    """Refuse a model whose input has a size that only the pair can know.

    Converters store 1 for a dynamic dimension, and what runs so has an image of one pixel, or does
    not load. A batch of 1 is meant, and so are the steps of a clip that is run frame by frame.
    """
    if invocation.state or invocation.frames or invocation.steps:
        return
    for name, stored, declared in declared_inputs(graph.model, invocation.signature):
        beyond = slice(0 if len(stored) == 1 else 1, None)
        pairs = zip(stored[beyond], declared[beyond], strict=False)
        if name not in invocation.shapes and (1, -1) in pairs:
            sizes = ", ".join("…" if size < 0 else str(size) for size in declared[1:])
            fixed = f"1, {sizes}" if sizes else "…"
            raise UserError(
                f"{path}: the shape of input {name} is dynamic, ({', '.join(map(str, declared))}): "
                f'say which it has here, in pair.toml: shapes = {{"{name}" = [{fixed}]}}'
            )


def _require_numbers(graph: Graph, path: Path) -> None:
    """Refuse a model that takes or gives what cannot be given values, or compared.

    Complex outputs are let pass, since a task need not read them.
    """
    for role, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors:
            known = graph.tensors[tensor]
            complex_output = role == "output" and known.type_name == "complex64"
            if not known.dtype and known.type not in PACKED and not complex_output:
                raise UserError(
                    f"{path}: {graph.describe(tensor)} is an {role}, and {role}s have to be numbers"
                    " or bools: convert the model so; between them any type is taken that the"
                    " runtime computes"
                )


class TFLiteModel:
    """A TFLite model in a worker process; a kernel that crashes cannot take the host along."""

    def __init__(
        self, path: Path, model: IsolatedModel, signature: Signature, invocation: Invocation
    ) -> None:
        self.signature = signature
        self.invocation = invocation
        self.operators = tuple(model.operators)
        self.runtime = model.runtime
        self._path = path
        self._model = model
        self._input_dtype = row_layout(signature.inputs)[1]
        self._output_dtype = row_layout(signature.outputs)[1]
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="edgeflare-tflite")

    def makers(self) -> tuple[OutputMaker | None, ...]:
        """Return of each output the operator that it is from; nothing beside the first graph."""
        graph = Graph(read_model_file(self._path), str(self._path))
        tensors = graph.outputs
        if self.invocation.signature:
            made = graph.signature_outputs(self.invocation.signature)
            tensors = tuple(
                made[output.name] for output in self.signature.outputs if output.name in made
            )
        if len(tensors) != len(self.signature.outputs):
            return ()
        return tuple(graph.origin(tensor) for tensor in tensors)

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Begin to run a batch; see `Evaluator`."""
        return self._thread.submit(self._run, inputs)

    def close(self) -> None:
        """End the worker process; batches that it still has are given up."""
        self._model.close()
        self._thread.shutdown(cancel_futures=True)

    def _run(self, inputs: NDArray[np.generic]) -> RawBatch:
        if not len(inputs):
            size = self._model.output_bytes // self._output_dtype.itemsize
            return RawBatch(np.empty((0, size), self._output_dtype))
        payload = np.ascontiguousarray(inputs, self._input_dtype)
        try:
            batch = self._model.run(payload.tobytes(), len(inputs))
        except WorkerLost as lost:
            raise WorkerDied(f"{self._path}: its worker process died: {lost}") from lost
        outputs = np.frombuffer(batch.outputs, self._output_dtype).reshape(len(inputs), -1)
        failures = {failure.index: failure.kind for failure in batch.failures}
        details = {failure.index: failure.detail for failure in batch.failures}
        return RawBatch(outputs, failures, batch.busy_seconds, details)


def _tensors(specs: Sequence[TensorSpec]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(spec.name, tuple(spec.shape), spec.dtype, spec.scale, spec.zero_point)
        for spec in specs
    )
