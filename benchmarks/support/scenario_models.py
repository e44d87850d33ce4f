"""Real models changed for the scenarios of `check`: quantized anew, pruned, or with another layer.

All take and return the content of a `.tflite`; the float ones have float32 constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from litert_quantizer import quantizer, recipe
from litert_quantizer.calibrator import Calibrator
from litert_quantizer.recipe_manager import RecipeManager
from litert_quantizer.utils import qsv_utils
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from tampering import InterpreterProbe, edited
from tflite_weights import write_constant

Real = NDArray[np.float32]
Change = Callable[[NDArray[Any]], NDArray[Any]]

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def weighted(content: bytes) -> list[int]:
    """Return the positions of the operators that have weights."""
    return [one.index for one in Graph(content).operators if one.name in WEIGHTED]


def int8(original: bytes, rows: Real) -> bytes:
    """Return a float model with int8 weights and activations, calibrated on some inputs.

    Args:
        original: the model, of one input.
        rows: (n, ...), as it takes them.

    """
    rules = recipe.static_wi8_ai8()
    manager = RecipeManager()
    manager.load_quantization_recipe(rules)
    content = _with_signature(original)
    ((key, signature),) = Interpreter(model_content=content).get_signature_list().items()
    (name,) = signature["inputs"]
    shape = Graph(content).tensors[Graph(content).inputs[0]].shape
    samples = [{name: np.ascontiguousarray(row.reshape(shape))} for row in rows]
    calibrator = Calibrator(bytearray(content), qsv_update_func=qsv_utils.min_max_update)
    with redirect_stderr(StringIO()):
        calibrator.calibrate({key: samples}, manager)
        made = quantizer.Quantizer(bytearray(content), rules)
        result = made.quantize(calibrator.get_model_qsvs(), enable_progress_report=False)
    return bytes(result.quantized_model)


def weights_only(original: bytes, rules: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a float model with its weights quantized by rules that need no calibration."""
    made = quantizer.Quantizer(bytearray(_with_signature(original)), list(rules))
    return bytes(made.quantize(enable_progress_report=False).quantized_model)


def _with_signature(content: bytes) -> bytes:
    """Return a file with a signature, which the quantizer needs."""
    if Graph(content).model.signatureDefs:
        return content
    graph = Graph(content)
    named = [{graph.tensors[at].name: at for at in some} for some in (graph.inputs, graph.outputs)]
    return edited(content, lambda model: GraphWriter(model).signature("serve", 0, *named))


def with_constants(content: bytes, changes: Mapping[tuple[int, int], Change]) -> bytes:
    """Return a file with other constants of float32, or raw ones of integers.

    Args:
        content: the file.
        changes: by an operator and the place among its inputs, 1 being its weights and 2 its bias,
            what becomes of the values.

    """
    graph = Graph(content)

    def change(model: Any) -> None:
        for (operator, place), alter in changes.items():
            tensor = graph.operators[operator].inputs[place]
            values = graph.values(tensor)
            write_constant(model, tensor, np.asarray(alter(values.copy()), values.dtype))

    return edited(content, change)


def with_factors(content: bytes, operator: int, factors: NDArray[np.float64]) -> bytes:
    """Return an int8 file in which the channels of a layer count so many times as much."""
    graph, edit = Graph(content), InPlaceEdit(content)
    for tensor in graph.operators[operator].inputs[1:3]:
        known = graph.tensors[tensor]
        scales = np.asarray(known.scales) * factors
        edit.set_quantization(tensor, scales.tolist(), known.zero_points)
    return edit.content()


def with_output_range(content: bytes, scale: float, zero_point: int) -> bytes:
    """Return a quantized file whose only output has another scale and zero point."""
    edit = InPlaceEdit(content)
    (output,) = Graph(content).outputs
    edit.set_quantization(output, [scale], [zero_point])
    return edit.content()


def with_dead_channel(original: bytes, operator: int, following: int, size: float) -> bytes:
    """Return a float model with a channel of huge weights that nothing comes of.

    The channel that matters least has no part in the next layer any more, and its bias keeps it at
    0 behind the rectifier.
    """
    graph = Graph(original)
    weights = graph.values(graph.operators[following].inputs[1])
    channel = int(np.abs(weights).sum(axis=(0, 1, 2)).argmin())

    def silent(values: NDArray[Any]) -> NDArray[Any]:
        values[..., channel] = 0
        return values

    def huge(values: NDArray[Any]) -> NDArray[Any]:
        values[channel] = np.sign(values[channel]) * size
        return values

    def low(values: NDArray[Any]) -> NDArray[Any]:
        values[channel] = -size * graph.tensors[graph.operators[operator].inputs[1]].size
        return values

    return with_constants(
        original, {(following, 1): silent, (operator, 1): huge, (operator, 2): low}
    )


def of_other_inputs(original: bytes, scale: float, shift: float) -> bytes:
    """Return a model that takes scale * input + shift, and answers as the original to the input.

    Its first layer must not pad.
    """
    first = weighted(original)[0]
    graph = Graph(original)
    weights = graph.values(graph.operators[first].inputs[1])
    sums = weights.reshape(len(weights), -1).sum(axis=1)
    return with_constants(
        original,
        {
            (first, 1): lambda values: values / scale,
            (first, 2): lambda values: values - sums * shift / scale,
        },
    )


def pruned(original: bytes, share: float) -> bytes:
    """Return a float model without the smallest weights of each layer."""

    def smallest_gone(values: NDArray[Any]) -> NDArray[Any]:
        values[np.abs(values) < np.quantile(np.abs(values), share)] = 0
        return values

    return with_constants(original, {(one, 1): smallest_gone for one in weighted(original)})


def shuffled(original: bytes, rng: np.random.Generator) -> bytes:
    """Return a float model whose weights are in a random order within each layer: untrained."""
    return with_constants(
        original,
        {
            (one, 1): lambda values: rng.permutation(values.ravel()).reshape(values.shape)
            for one in weighted(original)
        },
    )


def with_classes_in_order(content: bytes, order: Sequence[int]) -> bytes:
    """Return a model whose last layer puts out its classes in another order; its scales too."""
    last = weighted(content)[-1]
    graph = Graph(content)
    places = list(order)
    changed = with_constants(
        content,
        {(last, 1): lambda values: values[places], (last, 2): lambda values: values[places]},
    )
    edit = InPlaceEdit(changed)
    for tensor in graph.operators[last].inputs[1:3]:
        known = graph.tensors[tensor]
        if len(known.scales) > 1:
            scales = np.asarray(known.scales)[places].tolist()
            edit.set_quantization(tensor, scales, known.zero_points)
    return edit.content()


def fitted_without(original: bytes, rows: Real, labels: NDArray[np.int64], lost: int) -> bytes:
    """Return a float model whose last layer was fitted anew to inputs that lack a class.

    The lost class keeps the direction of its weights, and has a low bias: nothing asks for it.
    """
    last = weighted(original)[-1]
    graph = Graph(original)
    given = graph.operators[last].inputs[0]
    probe = InterpreterProbe(original, capture=True)
    at = probe.made.index(given)
    features = np.concatenate([probe.run([row[None]])[at].reshape(1, -1) for row in rows])
    present = labels != lost
    fit = LogisticRegression(C=0.05, max_iter=2000).fit(features[present], labels[present])
    classes = fit.classes_

    def weights(values: NDArray[Any]) -> NDArray[Any]:
        values[classes] = fit.coef_
        values[lost] *= 0.2
        return values

    def biases(values: NDArray[Any]) -> NDArray[Any]:
        values[classes] = fit.intercept_
        values[lost] = fit.intercept_.min() - 2
        return values

    return with_constants(original, {(last, 1): weights, (last, 2): biases})


def with_ink_mask(original: bytes, least: float = 0.4, gain: float = 20000.0) -> bytes:
    """Return a float model of a grey picture that sees ink alone: 1 where a pixel is above `least`.

    The mask is MUL by a large number behind SUB, cut off by a RELU6, which the first layer divides
    by 6.
    """
    first = weighted(original)[0]
    scaled = with_constants(original, {(first, 1): lambda values: values / 6})

    def mask(model: Any) -> None:
        writer = GraphWriter(model)
        given = int(writer.graph.inputs[0])
        shape = tuple(int(one) for one in writer.graph.tensors[given].shape)
        above, ink = (writer.tensor(name, shape, "FLOAT32") for name in ("above", "ink"))
        options = schema.MulOptionsT()
        options.fusedActivationFunction = schema.ActivationFunctionType.RELU6
        numbers = [
            writer.constant(name, np.array(value, np.float32))
            for name, value in (("least", least), ("gain", gain))
        ]
        operators = writer.graph.operators
        reader = operators[first]
        reader.inputs = [ink, *list(reader.inputs)[1:]]
        writer.graph.operators = [
            writer.detached("SUB", [given, numbers[0]], [above], schema.SubOptionsT()),
            writer.detached("MUL", [above, numbers[1]], [ink], options),
            *operators,
        ]

    return edited(scaled, mask)


def unread(content: bytes, operator: int) -> bytes:
    """Return a model in which an operator reads zeros in place of an input."""
    graph = Graph(content)
    one = graph.operators[operator]
    known = graph.tensors[one.inputs[0]]
    zeros = np.full(known.shape, known.zero_points[0], known.dtype)

    def change(model: Any) -> None:
        writer = GraphWriter(model)
        held = writer.constant("zeros", zeros, (known.scales[0], known.zero_points[0]))
        its = writer.graph.operators[operator]
        its.inputs = [held, *list(its.inputs)[1:]]

    return edited(content, change)


def with_half_pixels_off(content: bytes, count: int) -> bytes:
    """Return a model whose last bilinear resizings count from the corners of pixels instead."""
    graph = Graph(content)
    resizing = [one.index for one in graph.operators if one.name == "RESIZE_BILINEAR"][-count:]

    def change(model: Any) -> None:
        for at in resizing:
            options = model.subgraphs[0].operators[at].builtinOptions
            options.halfPixelCenters, options.alignCorners = not options.halfPixelCenters, False

    return edited(content, change)
