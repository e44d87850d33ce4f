"""Faults to plant: in a `.tflite` file, or in whatever runs it on a device.

As a program it is a launcher for the agent's workers, `python fault_injection.py SPEC -m MODULE …`:
it runs the module as Python would, with the fault of the file SPEC in the runtime. SPEC has the
fields of `Planted` as JSON; a byte for each input that the runtime is asked goes into SPEC.asked.
"""

# ruff: noqa: ARG005 - the arguments of a change are those of all changes

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare_agent.runtime.model_runtime import Options
from edgeflare_agent.runtime.tflite import interpreter
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
from graph_writer import GraphWriter
from tampering import edited, with_constant


@dataclass(frozen=True)
class Planted:
    """A fault.

    Attributes:
        fault: which, a key of `WEIGHTS`, `BIASES`, `OPERATORS` or `DEVICES`.
        layer: name of the tensor that its layer puts out; empty for a fault of the whole device.
        amount: how much of it there is, 1 being what its name says.
        seed: of what it draws.
        threads: the fewest interpreter threads that bring it about.
        place: the runtime that has it, a key of `PLACES` in runtime_fault_injection.py; empty for
            TFLite's interpreter.

    """

    fault: str
    layer: str = ""
    amount: float = 1.0
    seed: int = 0
    threads: int = 1
    place: str = ""


Change = Callable[[NDArray[Any], np.random.Generator, float], NDArray[Any]]


def _one_weight(values: Any, rng: np.random.Generator, amount: float) -> Any:
    """Change the largest weight to its opposite."""
    changed = values.copy()
    changed.flat[np.abs(values.astype(float)).argmax()] *= -1
    return changed


def _some_weights(values: Any, rng: np.random.Generator, amount: float) -> Any:
    """Put something else in the place of some weights."""
    changed = values.copy()
    places = rng.choice(values.size, max(1, int(amount * values.size)), replace=False)
    changed.flat[places] = rng.integers(-127, 128, len(places))
    return changed


def _one_channel(values: Any, rng: np.random.Generator, amount: float) -> Any:
    """Scale the weights of one channel of the output."""
    changed = values.astype(float)
    axis = 3 if len(values) == 1 else 0  # of depthwise layers the last one
    at = int(rng.integers(values.shape[axis]))
    np.moveaxis(changed, axis, 0)[at] *= amount
    return np.round(changed)


def _no_low_bits(values: Any, rng: np.random.Generator, amount: float) -> Any:
    step = 2 ** int(amount)
    return values // step * step


WEIGHTS: dict[str, Change] = {
    "weights negated": lambda values, rng, amount: -values,
    "one weight": _one_weight,
    "some weights": _some_weights,
    "one channel": _one_channel,
    "rounded down to even": _no_low_bits,
    "padding shifted by a row": lambda values, rng, amount: np.roll(values, int(amount), axis=1),
    "padding shifted by a column": lambda values, rng, amount: np.roll(values, int(amount), axis=2),
    "filters in another order": lambda values, rng, amount: np.roll(
        values, int(amount), axis=-1 if len(values) == 1 else 0
    ),
    "zero point off by one": lambda values, rng, amount: values + int(amount),
}
"""Faults in the weights. A weight's zero point that is off by one adds one to each weight."""


def _one_bias(values: Any, rng: np.random.Generator, amount: float) -> Any:
    changed = values.copy()
    changed.flat[rng.integers(values.size)] += int(amount * (np.abs(values).max() + 100))
    return changed


BIASES: dict[str, Change] = {
    "bias shifted": lambda values, rng, amount: (
        values + int(amount * (np.abs(values).max() // 2 + 100))
    ),
    "one bias": _one_bias,
}
"""Faults in the bias."""


def broken(content: bytes, planted: Planted) -> bytes:
    """Return a model with a fault in a layer; unchanged where it does not have that layer."""
    graph = Graph(content)
    named = {graph.tensors[tensor].name: one for one in graph.operators for tensor in one.outputs}
    one = named.get(planted.layer)
    if one is None:
        return content
    if planted.fault in OPERATORS:
        return OPERATORS[planted.fault](content, graph, one, planted)
    rng = np.random.default_rng(planted.seed)
    weights = planted.fault in WEIGHTS
    alter = (WEIGHTS if weights else BIASES)[planted.fault]

    def change(values: NDArray[Any]) -> NDArray[Any]:
        wrong = np.asarray(alter(values, rng, planted.amount))
        return np.clip(wrong, -127, 127) if values.dtype == np.int8 else wrong

    return with_constant(content, graph.tensors[one.inputs[1 if weights else 2]].name, change)


# Faults of an operator.


def _scale_off(content: bytes, graph: Graph, one: GraphOp, planted: Planted) -> bytes:
    """Stretch the scales of the weights, by a quarter for an amount of 1."""

    def change(model: Any) -> None:
        quantization = model.subgraphs[0].tensors[one.inputs[1]].quantization
        factor = 1 + planted.amount / 4
        quantization.scale = [float(scale) * factor for scale in quantization.scale]

    return edited(content, change)


def _rounds_down(content: bytes, graph: Graph, one: GraphOp, planted: Planted) -> bytes:
    """Round outputs down in place of to the nearest: as if half a unit less had been summed up."""
    (unit,) = graph.tensors[one.outputs[0]].scales
    steps = _steps_of_sums(graph, one)
    return _with_bias(content, graph, one, lambda bias: bias - unit / 2 / steps)


def _misread_zero_point(content: bytes, graph: Graph, one: GraphOp, planted: Planted) -> bytes:
    """Take the input's zero point for another one, off by the amount."""
    weights = graph.values(one.inputs[1]).astype(np.float64)
    axis = graph.tensors[one.inputs[1]].axis
    if one.name == "FULLY_CONNECTED":
        axis = 0
    sums = weights.sum(axis=tuple(at for at in range(weights.ndim) if at != axis))
    return _with_bias(content, graph, one, lambda bias: bias + int(planted.amount) * sums)


def _steps_of_sums(graph: Graph, one: GraphOp) -> NDArray[np.float64]:
    (given,) = graph.tensors[one.inputs[0]].scales
    return given * np.asarray(graph.tensors[one.inputs[1]].scales, np.float64)


def _with_bias(
    content: bytes,
    graph: Graph,
    one: GraphOp,
    change: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> bytes:
    name = graph.tensors[one.inputs[2]].name
    return with_constant(content, name, lambda bias: np.round(change(bias.astype(np.float64))))


def _cut_off(content: bytes, graph: Graph, one: GraphOp, planted: Planted) -> bytes:
    """Apply another activation than the operator's own."""

    def change(model: Any) -> None:
        options = model.subgraphs[0].operators[one.index].builtinOptions
        options.fusedActivationFunction = schema.ActivationFunctionType.RELU_N1_TO_1

    return edited(content, change)


def _other_pooling(content: bytes, graph: Graph, one: GraphOp, planted: Planted) -> bytes:
    """Take the mean in place of the largest."""

    def change(model: Any) -> None:
        operator = model.subgraphs[0].operators[one.index]
        operator.opcodeIndex = GraphWriter(model).code("AVERAGE_POOL_2D", 2)

    return edited(content, change)


def _half_precision(content: bytes, graph: Graph, one: GraphOp, planted: Planted) -> bytes:
    """Compute a layer as a half-precision path does: weights, bias and scales rounded to float16.

    A quantized layer is dequantized, computed in float and quantized again.
    """
    given, weights, *rest = [graph.tensors[tensor] for tensor in one.inputs]
    real = [_halved(tensor.real(graph.values(tensor.index))) for tensor in (weights, *rest)]
    if given.scales:
        (scale,) = given.scales
        real[0] = real[0] * (float(np.float16(scale)) / scale)

    def change(model: Any) -> None:
        writer = GraphWriter(model)
        operator = writer.graph.operators[one.index]
        constants = [
            writer.constant(f"{planted.layer}/half{at}", values.astype(np.float32))
            for at, values in enumerate(real)
        ]
        if not given.scales:
            operator.inputs = [given.index, *constants]
            return
        made = graph.tensors[one.outputs[0]]
        before, behind = (
            writer.tensor(f"{like.name}/float", like.shape, "FLOAT32") for like in (given, made)
        )
        operator.inputs, operator.outputs = [before, *constants], [behind]
        operator.opcodeIndex = writer.code(one.name)
        first = writer.detached("DEQUANTIZE", [given.index], [before], version=2)
        last = writer.detached("QUANTIZE", [behind], [made.index])
        writer.graph.operators[one.index : one.index + 1] = [first, operator, last]

    return edited(content, change)


def _halved(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float16).astype(np.float64)


OPERATORS: dict[str, Callable[[bytes, Graph, GraphOp, Planted], bytes]] = {
    "scale off": _scale_off,
    "rounds down": _rounds_down,
    "zero point of the input misread": _misread_zero_point,
    "sum cut off": _cut_off,
    "other pooling": _other_pooling,
    "half precision": _half_precision,
}
"""Faults of one operator that are no change of its constants alone."""


# Faults of whatever runs the model.


def plant(planted: Planted) -> None:
    """Put a fault into this process's runtime."""
    if planted.layer:
        _plant_in_loading(planted)
    else:
        _plant_in_invoking(planted)


def _plant_in_loading(planted: Planted) -> None:
    load = interpreter._load

    def loaded(content: bytes, options: Options) -> Any:
        if planted.threads <= options.threads:
            content = broken(content, planted)
        return load(content, options)

    setattr(interpreter, "_load", loaded)  # noqa: B010


def _signed(image: NDArray[Any]) -> NDArray[Any]:
    """Values of 0 to 1, preprocessed as for a model that takes -1 to 1."""
    return np.clip(2 * image.astype(int) - 127, -128, 127).astype(image.dtype)


INPUTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "channels swapped": lambda image: image[..., ::-1],
    "rows from below": lambda image: image[:, ::-1],
    "columns from the right": lambda image: image[:, :, ::-1],
    "rows and columns exchanged": lambda image: image.swapaxes(1, 2),
    "preprocessed for -1 to 1": _signed,
}
"""Ways of a device to be shown another image than the host."""

DEVICES = ("constant output", "flaky", "stale output", *INPUTS)
"""Faults of a whole device. The last one is of devices that take int8 for 0 to 1."""


def _plant_in_invoking(planted: Planted) -> None:
    """Break what goes into the model, or what comes out of it."""
    invoke = LoadedModel.invoke
    before: list[Any] = []
    calls = count()
    fault = planted.fault

    def invoked(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        # A part that was cut out does not begin with the model's own input, an image.
        own = len(model.inputs) == 1 and "/given" not in model.inputs[0].name
        if own and fault in INPUTS:
            inputs = [np.ascontiguousarray(INPUTS[fault](inputs[0]))]
        invoke(model, inputs, outputs)
        last = outputs[-1]
        if fault == "constant output" and model.outputs[-1].shape[-1:] == (10,):
            constant = np.roll(np.arange(last.size), planted.seed)
            last[...] = constant.astype(last.dtype).reshape(last.shape)
        elif fault == "flaky" and own and next(calls) % max(2, round(2 / planted.amount)) == 0:
            last[...] = np.roll(last, 1)
        elif fault == "stale output" and own:
            now = last.copy()
            last[...] = before.pop() if before else now
            before.append(now)

    setattr(LoadedModel, "invoke", invoked)  # noqa: B010


def _count_inputs(path: Path) -> None:
    invoke = LoadedModel.invoke
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def invoked(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        os.write(file, b".")
        invoke(model, inputs, outputs)

    setattr(LoadedModel, "invoke", invoked)  # noqa: B010


if __name__ == "__main__":
    _count_inputs(Path(sys.argv[1] + ".asked"))
    plant(Planted(**json.loads(Path(sys.argv[1]).read_text())))
    module = 4 if sys.argv[2] == "-c" else 3  # -c takes the code that runs the module, -m does not
    sys.argv = sys.argv[module:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
