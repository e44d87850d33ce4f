"""One model on TensorFlow Lite Micro, in this very process.

Only a worker process should use it, for a broken model takes the process along.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from edgeflare_agent.runtime.model_runtime import ModelRejected, Options
from edgeflare_agent.runtime.stderr_record import recorded_stderr
from edgeflare_agent.runtime.tflite.model_tensors import described_model

_STEP_BYTES = 64
"""What sizes are tried at: a power of two of these, then in between."""

_PLENTY_BYTES = 1 << 28
"""Size of the arena in which each model runs; pages that it does not touch take no memory."""

_TOTAL = re.compile(r"Arena allocation total (\d+) bytes")
_UNSUPPORTED = re.compile(r"Didn't find op for builtin opcode '(\w+)'")
_CUSTOM = re.compile(r"Failed to get registration from op code CUSTOM")
_WITHOUT_SIZE = re.compile(r"Op#(\d+) \((\w+)\) of subgraph 0 has dynamic tensor")
_NODE = re.compile(r"Node (\w+) \(number (\d+)\) failed")


class MicroModel:
    """A model that is ready to be invoked; see `OpenedModel`.

    The arena is the one block of memory in which TFLite Micro keeps all tensors and its own data.
    The model runs in a large one, and how large it has to be is found by opening it in others.
    """

    delegated_nodes = 0
    external_nodes = 0
    adapter = ""

    def __init__(self, content: bytes, options: Options) -> None:
        if options.capture:
            raise ModelRejected("tensors between operators cannot be read from TFLite Micro")
        described = described_model(content, options.invocation)
        self.inputs, self.outputs = described.inputs, described.outputs
        self.operators = described.operators
        self._interpreter = _opened(content, _PLENTY_BYTES)
        with recorded_stderr() as recorded:
            self._interpreter.print_allocations()
        found = _TOTAL.search(recorded.text)
        if found is None:
            raise ModelRejected("TFLite Micro does not say how large an arena the model takes")
        counted = int(found.group(1))  # bytes
        with recorded_stderr():
            opens = partial(_opened, content)
            self.arena_bytes = _least_arena_bytes(opens, counted, _PLENTY_BYTES)
        if options.arena_bytes and self.arena_bytes > options.arena_bytes:
            raise ModelRejected(
                f"its arena takes {self.arena_bytes:,} bytes, and the device's profile allows"
                f" {options.arena_bytes:,}: set a higher arena_bytes there, or make the model"
                " smaller"
            )
        self._given = [described.graph_inputs.index(tensor.index) for tensor in self.inputs]
        self._made = [described.graph_outputs.index(tensor.index) for tensor in self.outputs]
        self._check_shapes()

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once on an input that nothing came before; see `step`."""
        self.reset()
        self.step(inputs, outputs)

    def reset(self) -> None:
        """Set all variables to what they were at first, so that no answer depends on others."""
        self._interpreter.reset()

    def step(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once, its variables as they are; see `OpenedModel`.

        Raises:
            RuntimeError: a kernel refused; with its reason.

        """
        for position, array in zip(self._given, inputs, strict=True):
            self._interpreter.set_input(array, position)
        try:
            self._interpreter.invoke()
        except RuntimeError as error:
            # The reason is logged alone, so the model runs once more.
            with recorded_stderr() as recorded, suppress(RuntimeError):
                self._interpreter.invoke()
            raise RuntimeError(_refusal(recorded.text, str(error))) from error
        for position, array in zip(self._made, outputs, strict=True):
            array[...] = self._interpreter.get_output(position)

    def _check_shapes(self) -> None:
        """Raise ModelRejected where shapes are asked for that the file does not have."""
        for position, tensor in zip(self._given, self.inputs, strict=True):
            fixed = tuple(map(int, self._interpreter.get_input_details(position)["shape"]))
            if fixed != tensor.shape:
                raise ModelRejected(
                    f"TFLite Micro runs a model in the shapes of its file: {tensor.name} has"
                    f" {fixed} there, not {tensor.shape}; convert it with the shapes that it runs"
                    " in"
                )


def _opened(content: bytes, arena_bytes: int) -> Any:
    """Return the runtime's `Interpreter`."""
    from tflite_micro.python.tflite_micro import runtime  # noqa: PLC0415 - it may be missing

    with recorded_stderr() as recorded:
        try:
            return runtime.Interpreter.from_bytes(content, arena_size=arena_bytes)
        except (RuntimeError, ValueError) as error:
            raise ModelRejected(_refusal(recorded.text, str(error))) from error


def _refusal(log: str, message: str) -> str:
    """Return in one line why a model was refused, from what the runtime logged."""
    if unsupported := sorted(set(_UNSUPPORTED.findall(log))):
        return f"TFLite Micro has no operator {', '.join(unsupported)}"
    if _CUSTOM.search(log):
        return "TFLite Micro has none of its custom operators"
    if found := _WITHOUT_SIZE.search(log):
        number, operator = found.groups()
        return f"TFLite Micro refuses {operator}, node {number}: a tensor without values or size"
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    said = [line for line in lines if not _NODE.match(line)]
    why = (said[0] if said else message).removeprefix("tensorflow/lite/micro/")
    if node := _NODE.search(log):
        operator, number = node.groups()
        return f"TFLite Micro refuses {operator}, node {number}: {why}"
    return f"TFLite Micro refuses it: {why}"


def _least_arena_bytes(opens: Callable[[int], object], counted: int, most: int) -> int:
    """Return the least size of an arena, in steps of 64 bytes from the one that is counted.

    Each size is tried in a forked process, for kernels that get no memory may read from nowhere.

    Args:
        opens: opens the model in an arena of so many bytes, or raises ModelRejected.
        counted: what the runtime counts once the model is open, in bytes; this leaves out what
            operators take for a moment while they get ready.
        most: bytes in which it opens.

    """
    too_few, enough = -1, 0
    while not _opens_elsewhere(opens, min(counted + enough * _STEP_BYTES, most)):
        if counted + enough * _STEP_BYTES >= most:
            return most
        too_few, enough = enough, max(1, 2 * enough)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _opens_elsewhere(opens, counted + middle * _STEP_BYTES):
            enough = middle
        else:
            too_few = middle
    return min(counted + enough * _STEP_BYTES, most)


def _opens_elsewhere(opens: Callable[[int], object], size: int) -> bool:
    """Return whether a model opens in a process that ends with it, however that ends."""
    child = os.fork()
    if not child:
        code = 1
        try:
            opens(size)
            code = 0
        except ModelRejected:
            pass
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
