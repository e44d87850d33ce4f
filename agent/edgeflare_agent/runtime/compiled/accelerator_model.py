"""One model on an accelerator, in this very process.

Only a worker process should use it, for a broken model or driver takes the process along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgeflare_agent.runtime.model_runtime import (
    ModelRejected,
    Options,
    Step,
    StepTensors,
    TensorSpec,
)
from edgeflare_agent.runtime.stderr_record import RecordedStderr, recorded_stderr
from edgeflare_agent.runtime.tflite.interpreter import described_steps
from edgeflare_agent.runtime.tflite.model_tensors import TensorDetails, described_model
from edgeflare_agent.runtime.tflite.packages import runtime_info
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels

_ADAPTER = re.compile(r"Selected adapter: (.+)")
_COUNTS = re.compile(r"(\d+) operations will run on the GPU, and the remaining (\d+) operations")
_NONE = re.compile(r"No operations will run on the GPU, and all (\d+) operations")
_UNSUPPORTED = re.compile(r"operations are not supported by GPU delegate:\n((?:\w+: .*\n)+)")
_LACKING = re.compile(r"Warning: (Vulkan .* required)\.")
_INVALID = re.compile(r"Validation error: (?:Error while parsing WGSL: :\d+:\d+ error: )?(.+)")

_NO_NPU = "No compiler plugin found"

_NO_DRIVER = (
    "finds no driver that it can use{lacking}: install the Vulkan driver of the device, or for a"
    " GPU in software on Debian: apt-get install libvulkan1 chromium"
)

_TOLD_BY: Kernels = "builtin"
"""The kernels of the interpreter that tells of the tensors of steps."""

_KEEPING_STATE = frozenset(
    (
        *("VAR_HANDLE", "SVDF", "RNN", "LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"),
        "BIDIRECTIONAL_SEQUENCE_LSTM",
    )
)
"""Operators with variables, which a compiled model has no call to reset."""


class AcceleratorLost(Exception):  # noqa: N818 - a fact about the device, like WorkerLost
    """An accelerator failed on an input.

    No answer to the input as a kernel's error is, so that it ends the worker: if a new one cannot
    open the model, the accelerator is gone, and else the input is tried again.
    """


class AcceleratedModel:
    """A model that is ready to be invoked; see `SteppedModel`.

    Its nodes, operators and quantizations are those that the interpreter reads from the file, since
    a compiled model tells of none.
    """

    external_nodes = 0
    arena_bytes = 0

    def __init__(self, content: bytes, options: Options) -> None:
        if options.capture:
            raise ModelRejected(
                "tensors between operators cannot be read from the"
                f" {KERNEL_SETS[options.kernels].title}"
            )
        self._content, self._options = content, options
        described = described_model(content, options.invocation)
        self.inputs, self.outputs = described.inputs, described.outputs
        self.operators = described.operators
        log = self._compile()
        self.adapter = log.adapter
        self.delegated_nodes = self._count_accelerated(log)
        stepped = bool(options.invocation.steps)
        self._reloads = stepped or not _KEEPING_STATE.isdisjoint(self.operators)

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once on an input that nothing came before; see `step`."""
        self.reset()
        self.step(inputs, outputs)

    def reset(self) -> None:
        """Set all variables to what they were at first: a model that has some is compiled anew."""
        if self._reloads:
            self._compile()

    def described(self, steps: Sequence[Step]) -> list[StepTensors]:
        """Return what goes in and comes out in each step; see `SteppedModel`."""
        return described_steps(self._content, replace(self._options, kernels=_TOLD_BY), steps)

    def take(self, step: Step) -> None:
        """Make ready for a step; see `SteppedModel`."""
        described = self.described([step])[0]
        with recorded_stderr() as recorded:
            try:
                signature = _signature(self._compiled, step.signature)
                _resize(self._compiled, signature, step.shapes)
                self._buffer(signature, described.inputs, described.outputs)
            except (RuntimeError, ValueError) as error:
                said = " ".join(str(error).split())
                raise ModelRejected(self._said(f"cannot be run in these steps: {said}")) from error
        self._require_valid(AcceleratorLog(recorded))

    def step(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once, its variables as they are; see `OpenedModel`.

        Buffers are given and read as bytes, since LiteRT's Python interface takes no values of 16
        or 64 bits.

        Raises:
            AcceleratorLost: see there.
            RuntimeError: a step is refused, as where an operator sizes its result while it runs,
                such as SLICE, and what it reads was resized.

        """
        try:
            for buffer, array in zip(self._given, inputs, strict=True):
                buffer.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
            self._compiled.run_by_index(self._index, self._all_given, self._all_made)
            for buffer, array in zip(self._made, outputs, strict=True):
                read = buffer.read(array.nbytes, np.uint8)
                array[...] = read.view(array.dtype).reshape(array.shape)
        except RuntimeError as error:
            said = " ".join(str(error).split())
            if self._options.invocation.steps:
                raise RuntimeError(self._said(f"cannot be run in these steps: {said}")) from error
            raise AcceleratorLost(said) from error

    def _compile(self) -> AcceleratorLog:
        """Compile the model, and find the buffer of each input and output by its tensor's index.

        Of invalid commands, such as a shader that does not compile, LiteRT says nothing: all
        answers are zeros then.
        """
        with recorded_stderr() as recorded:
            log = AcceleratorLog(recorded)
            try:
                self._compiled, signature = _compiled(self._content, self._options)
                self._buffer(signature, self.inputs, self.outputs)
            except (RuntimeError, ValueError) as error:
                raise ModelRejected(self._said(log.refusal(str(error)))) from error
        self._require_valid(log)
        return log

    def _buffer(
        self,
        signature: _Signature,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
    ) -> None:
        """Make the buffers of a signature in the shapes that it has now."""
        self._index = signature.index
        self._all_given = self._compiled.create_input_buffers(signature.index)
        self._all_made = self._compiled.create_output_buffers(signature.index)
        self._given = _in_order(signature.inputs.values(), self._all_given, inputs)
        self._made = _in_order(signature.outputs, self._all_made, outputs)

    def _require_valid(self, log: AcceleratorLog) -> None:
        if log.invalid:
            raise ModelRejected(
                self._said(f"prepares invalid commands, and would answer zeros: {log.invalid}")
            )

    def _said(self, refusal: str) -> str:
        return f"the {KERNEL_SETS[self._options.kernels].title} of {runtime_info()} {refusal}"

    def _count_accelerated(self, log: AcceleratorLog) -> int:
        if log.absent:  # what fell back to XNNPACK as a whole counts as accelerated, too
            return 0
        return len(self.operators) if self._compiled.is_fully_accelerated() else log.accelerated


@dataclass(frozen=True)
class _Signature:
    """What a compiled model calls a signature by.

    Attributes:
        index: number of the signature.
        inputs: the runtime's details of each input, by name, in the order of its buffers.
        outputs: likewise of each output, of which several may be one tensor, without names.

    """

    index: int
    inputs: dict[str, TensorDetails]
    outputs: tuple[TensorDetails, ...]


def _compiled(content: bytes, options: Options) -> tuple[Any, _Signature]:
    """Return LiteRT's `CompiledModel`, its inputs in the shapes that are asked for.

    Raises:
        RuntimeError: there is no driver, or it refuses the model.
        ValueError: it refuses the shapes that are asked for.

    """
    from ai_edge_litert import compiled_model as litert  # noqa: PLC0415 - an old runtime has none

    accelerators = litert.HardwareAccelerator[KERNEL_SETS[options.kernels].own_name]
    if options.acceleration.fallback:
        accelerators |= litert.HardwareAccelerator.CPU
    chosen = litert.Options(
        hardware_accelerators=accelerators,
        cpu_options=litert.CpuOptions(num_threads=options.threads),
        gpu_options=litert.GpuOptions(enforce_f32=options.acceleration.float32),
    )
    compiled = litert.CompiledModel.from_buffer(content, options=chosen)
    signature = _signature(compiled, options.invocation.signature)
    _resize(compiled, signature, options.invocation.shapes)
    return compiled, signature


def _resize(compiled: Any, signature: _Signature, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for number, (name, details) in enumerate(signature.inputs.items()):
        if (shape := shapes.get(name, shapes.get(details["name"]))) is not None:
            compiled.resize_input_tensor(number, shape, signature.index)


def _signature(compiled: Any, key: str) -> _Signature:
    index = compiled.get_signature_index(key) if key else 0
    names = compiled.get_signature_by_index(index)
    given = compiled.get_input_tensor_details(key or names["key"])
    made = compiled.get_output_tensor_details(key or names["key"])
    return _Signature(
        index,
        {name: given[name] for name in names["inputs"]},
        tuple(made[name] for name in names["outputs"]),
    )


def _in_order(
    details: Iterable[TensorDetails], buffers: Sequence[Any], tensors: Sequence[TensorSpec]
) -> list[Any]:
    """Return the buffers in the order of the tensors; a signature has an order of its own."""
    pairs = zip(details, buffers, strict=True)
    by_index = {known["index"]: buffer for known, buffer in pairs}
    return [by_index[tensor.index] for tensor in tensors]


class AcceleratorLog:
    """What was recorded while a model was compiled, read.

    Attributes:
        adapter: what the accelerator computes on, as its driver says; empty if that is not logged.
        accelerated: nodes that it took of a model that it took in part.
        absent: whether there is no such accelerator.

    """

    def __init__(self, recorded: RecordedStderr) -> None:
        self._recorded = recorded

    @property
    def adapter(self) -> str:
        """See the class."""
        found = _ADAPTER.search(self._recorded.text)
        return found.group(1).strip() if found else ""

    @property
    def accelerated(self) -> int:
        """See the class."""
        return self._counts()[0]

    def _counts(self) -> tuple[int, int]:
        """Return how many nodes the accelerator takes, and of how many; 0 if that is not logged."""
        text = self._recorded.text
        if found := _COUNTS.search(text):
            taken, left = map(int, found.groups())
            return taken, taken + left
        found = _NONE.search(text)
        return 0, int(found.group(1)) if found else 0

    @property
    def invalid(self) -> str:
        """What the driver finds invalid of what the accelerator prepared; empty for nothing."""
        found = _INVALID.search(self._recorded.text)
        return found.group(1).strip() if found else ""

    @property
    def absent(self) -> bool:
        """See the class."""
        return _NO_NPU in self._recorded.text

    def refusal(self, message: str) -> str:
        """Return why a model was refused, as what follows the accelerator's name."""
        text = self._recorded.text
        if "No adapters found" in text:
            lacking = _LACKING.search(text)
            return _NO_DRIVER.format(lacking=f" ({lacking.group(1)})" if lacking else "")
        if self.absent:
            return (
                "finds no NPU: install its vendor's compiler plugin and dispatch library for LiteRT"
            )
        if "dynamic-sized tensors" in text:
            return (
                "takes no model with tensors that are sized while it runs, as by SHAPE before"
                " RESHAPE: add --fold-shapes where their sizes never change, or convert it with a"
                " fixed batch size"
            )
        if found := _UNSUPPORTED.search(text):
            operators = "; ".join(found.group(1).split("\n")[:-1])
            taken, total = self._counts()
            return (
                f"takes {taken} of {total} nodes, and not {operators.strip(' .')}: set"
                " fallback = true in the device's profile to run the others on the CPU"
            )
        last = message.strip().split("└")[-1]
        return f"refuses it: {' '.join(last.split()) or 'no reason given'}"
