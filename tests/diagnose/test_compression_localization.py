"""What quantization explains, and the first layer where it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.explanation import compression_loss
from edgeflare.models.model_probe import Values
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from networks import Kind, pair_of
from prepared_weights import with_prepared_weights
from public_cases import CASES
from requantizing import CONVERTERS, Converter, requantized
from tampering import (
    COMPRESSED,
    ORIGINAL,
    InterpreterProbe,
    class_reader,
    constant_of,
    edited,
    example_input,
    original_input,
    run,
    weighted,
    whole,
    with_constant,
    with_rectifiers_apart,
)

CONTENT, FLOAT = COMPRESSED.read_bytes(), ORIGINAL.read_bytes()
WEIGHTED = weighted(CONTENT)
POOL = next(one.index for one in Graph(CONTENT).layers if one.name == "MAX_POOL_2D")


def found_of(
    content: bytes,
    original: bytes,
    *inputs: tuple[Values, Values],
    kernels: Kernels = "xnnpack",
    reader: bytes | None = None,
) -> CompressionError:
    """What is found on the first pair of inputs, each as one and the other model takes it.

    Args:
        content: the compressed model.
        original: the other one.
        inputs: the one that is asked about, and those that are seen besides.
        kernels: that the compressed model runs on.
        reader: the model whose classes are read, if not the original.

    """
    graph = Graph(content)
    seen = [(whole(graph, raw, kernels, content), real) for raw, real in inputs]
    finder = CompressionLocalizer(
        graph,
        Graph(original),
        original,
        lambda model, capture: InterpreterProbe(model, capture=capture),
        class_reader(reader or original),
        *([lambda: seen[1:]] if len(seen) > 1 else []),
    )
    with closing(finder):
        found = finder.find(*seen[0])
    json.dumps(msgspec.to_builtins(compression_loss(found)), allow_nan=False)
    return found


def loss(content: bytes, original: bytes = FLOAT, seed: int = 0) -> CompressionError:
    return found_of(content, original, (example_input(seed), original_input(seed)))


def beyond(found: CompressionError) -> list[int]:
    return [layer.layer.operator_index for layer in found.layers if layer.beyond]


def test_what_the_converter_did_is_explained_everywhere() -> None:
    """By a factor: where the bound is loose, a fault can hide below it."""
    for seed in range(6):
        found = loss(CONTENT, seed=seed)
        assert (found.first, found.note, found.unmatched) == (None, "", ())
        assert len(found.layers) == len(Graph(CONTENT).layers)
        for layer in found.layers:
            assert layer.residual <= 0.8 * layer.explained
            assert layer.constants is None or layer.constants.steps <= 0.5001


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_so_it_is_of_networks_with_depthwise_and_residual_layers(kind: Kind, seed: int) -> None:
    """Also of other weights, on images of other classes."""
    original, compressed = pair_of(kind, seed)
    found = loss(compressed, original, 50 * seed)
    assert (found.first, found.note, found.unmatched) == (None, "", ())
    assert len(found.layers) == len(Graph(compressed).layers)


@pytest.mark.parametrize("converter", CONVERTERS.values(), ids=CONVERTERS)
def test_whatever_a_converter_rounds_is_explained(converter: Converter) -> None:
    content = requantized(FLOAT, CONTENT, converter)
    for seed in range(3):
        found = loss(content, seed=seed)
        assert (found.first, found.most, found.margin, found.beyond) == (None, None, None, ())


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("apart", ["compressed", "original"])
def test_an_activation_that_one_file_fuses_is_no_error_of_the_layer(apart: str, half: bool) -> None:
    """The file in half precision has no range that cuts off what is below 0."""
    content = with_prepared_weights(FLOAT, ["DEQUANTIZE"]) if half else CONTENT
    if apart == "compressed":
        content, original = with_rectifiers_apart(content), FLOAT
    else:
        original = with_rectifiers_apart(FLOAT)
    found = found_of(
        content, original, (original_input() if half else example_input(), original_input())
    )
    assert (found.first, found.unmatched, found.coarse) == (None, (), ())
    for layer in found.layers:
        assert layer.total is None or layer.total.snr_db is None or layer.total.snr_db > 20


FAULTS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "weights of another sign": (1, lambda values: -values),
    "one weight": (1, lambda values: _one(values, 3)),
    "rounded to every second step": (1, lambda values: values // 2 * 2 + 1),
    "a bias": (2, lambda values: _one(values, max(500, int(np.abs(values).max())))),
    "channels in another order": (1, lambda values: np.roll(values, 1, axis=0)),
}


def _one(values: Any, by: int) -> Any:
    changed = values.copy()
    changed.flat[0] = np.clip(changed.flat[0] + by, np.iinfo(values.dtype).min + 1, None)
    return changed


def require_found(content: bytes, original: bytes, operator: int) -> None:
    found = loss(content, original)
    assert found.first is not None
    assert found.first.operator_index == operator
    assert beyond(found) == [operator]


@pytest.mark.slow
@pytest.mark.parametrize("operator", WEIGHTED)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_constant_that_is_not_the_originals_is_found(fault: str, operator: int) -> None:
    position, change = FAULTS[fault]
    broken = with_constant(CONTENT, constant_of(CONTENT, operator, position), change)
    require_found(broken, FLOAT, operator)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["channels in another order", "rounded to every second step"])
def test_a_fault_in_any_depthwise_layer_is_found(fault: str) -> None:
    original, compressed = pair_of("mobilenet")
    for one in Graph(compressed).layers:
        if one.name == "DEPTHWISE_CONV_2D":
            axis = partial(np.roll, shift=1, axis=3)
            change = axis if fault.startswith("channels") else FAULTS[fault][1]
            name = constant_of(compressed, one.index)
            require_found(with_constant(compressed, name, change), original, one.index)


def test_a_scale_that_is_off_is_found() -> None:
    weights = Graph(CONTENT).operators[WEIGHTED[1]].inputs[1]

    def stretch(model: Any) -> None:
        quantization = model.subgraphs[0].tensors[weights].quantization
        quantization.scale = [scale * 1.5 for scale in quantization.scale]

    require_found(edited(CONTENT, stretch), FLOAT, WEIGHTED[1])


@pytest.mark.parametrize("chain", [("DEQUANTIZE",), ("DENSIFY",), ("DENSIFY", "DEQUANTIZE")])
def test_weights_that_an_original_prepares_as_it_runs_are_explained_as_constants_are(
    chain: tuple[str, ...],
) -> None:
    original = with_prepared_weights(FLOAT, chain)
    for seed in range(3):
        found = loss(CONTENT, original, seed)
        assert (found.note, found.unmatched, found.beyond) == ("", (), ())
        assert all(
            layer.constants for layer in found.layers if layer.layer.operator_index in WEIGHTED
        )
    broken = with_constant(CONTENT, constant_of(CONTENT, WEIGHTED[1]), lambda raw: -raw)
    found = loss(broken, original)
    assert found.most is not None
    assert beyond(found) == [found.most.operator_index] == WEIGHTED[1:2]
    assert found.beyond[0].margin_share is not None


# The layer that took most of the margin.


def biased(content: bytes, operator: int, change: Callable[[Any], Any]) -> bytes:
    return with_constant(content, constant_of(content, operator, 2), change)


def test_of_two_layers_the_one_that_took_most_of_the_margin_is_named() -> None:
    """A bias that is off by a step in an early layer, and biases that are all off in the last."""
    early, last = WEIGHTED[1], WEIGHTED[-1]
    by_a_step = biased(CONTENT, early, lambda values: _one(values, 1))
    shifted = biased(by_a_step, last, lambda values: values + 2000 * np.arange(values.size))
    for seed in range(4):
        found = loss(shifted, seed=seed)
        assert beyond(found) == [early, last]
        assert found.first == found.beyond[0].layer
        assert found.most == found.beyond[1].layer
        small, large = (abs(layer.margin_share or 0.0) for layer in found.beyond)
        assert small < large
        assert large > 0.5
        constants = found.beyond[1].constants
        assert constants is not None
        assert constants.steps > 2000


def test_a_layer_is_named_where_it_took_a_twentieth_of_the_margins_error_else_only_listed() -> None:
    named = []
    for by in (1, 10, 3000):
        found = loss(biased(CONTENT, WEIGHTED[1], partial(_one, by=by)))
        (layer,) = found.beyond
        assert found.first == layer.layer
        assert layer.margin_share is not None
        named.append(found.most is not None)
        assert named[-1] == (layer.margin_share >= 0.05)
    assert set(named) == {True, False}


def test_a_layer_that_makes_the_margins_error_smaller_is_listed_and_not_named() -> None:
    """An early fault takes margin, and biases of the last layer give somewhat more than that."""
    label = int(run(FLOAT, [original_input(0)])[0].argmax())
    worse = biased(CONTENT, WEIGHTED[1], lambda biases: biases - 4000)
    favour = 2000 * (np.arange(10) == label)
    found = loss(biased(worse, WEIGHTED[-1], partial(np.add, favour)))
    against, causes = (layer.margin_share or 0.0 for layer in found.beyond)
    assert against < 0 < causes < abs(against)
    assert found.most == found.beyond[1].layer


# Operators that are others.


def _pooling(size: int) -> Callable[[Any], None]:
    """Let pools take windows of a size."""

    def change(model: Any) -> None:
        for operator in model.subgraphs[0].operators:
            if hasattr(operator.builtinOptions, "filterWidth"):
                operator.builtinOptions.filterWidth = operator.builtinOptions.filterHeight = size

    return change


def _averages(model: Any) -> None:
    """Let the mean be taken where the largest was."""
    for code in model.operatorCodes:
        if code.builtinCode == schema.BuiltinOperator.MAX_POOL_2D:
            code.builtinCode = schema.BuiltinOperator.AVERAGE_POOL_2D
            code.deprecatedBuiltinCode = schema.BuiltinOperator.AVERAGE_POOL_2D


def test_a_pooling_that_became_another_is_found_by_its_result() -> None:
    def first_smaller(model: Any) -> None:
        options = model.subgraphs[0].operators[POOL].builtinOptions
        options.filterWidth = options.filterHeight = 1

    found = loss(edited(CONTENT, first_smaller))
    assert found.first is not None
    assert found.first.operator_index == POOL
    (layer,) = [layer for layer in found.layers if layer.beyond]
    assert [str(one) for one in layer.options] == [
        "filter_height 1, the original 2",
        "filter_width 1, the original 2",
    ]
    assert layer.residual > layer.explained


def test_an_operator_of_another_type_is_found_by_its_place() -> None:
    found = loss(edited(CONTENT, _averages))
    assert found.unmatched == ()
    assert found.first is not None
    assert (found.first.operator_index, found.first.name) == (POOL, "AVERAGE_POOL_2D")


def test_an_operator_of_another_type_that_does_the_same_is_no_loss() -> None:
    """Pools over one value, whose mean is the largest as well."""
    alone = _pooling(1)
    found = loss(edited(edited(CONTENT, alone), _averages), edited(FLOAT, alone))
    assert (found.first, found.unmatched) == (None, ())
    assert "AVERAGE_POOL_2D" in {layer.layer.name for layer in found.layers}


# Other values.


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("broken", ["compressed", "original"])
def test_values_that_are_not_finite_are_the_fault_of_the_file_that_has_them(
    broken: str, value: float
) -> None:
    """Of two float files with one weight that is not finite in the one."""
    operator, given = weighted(FLOAT)[1], original_input()

    def spoil(values: Any) -> Any:
        changed = values.copy()
        changed.flat[0] = value
        return changed

    spoilt = with_constant(FLOAT, constant_of(FLOAT, operator), spoil)
    files = (spoilt, FLOAT) if broken == "compressed" else (FLOAT, spoilt)
    found = found_of(*files, (given, given), reader=FLOAT)
    if broken == "compressed":
        assert found.original is None
        assert found.most is not None
        assert found.most.operator_index == operator
    else:
        assert found.original is not None
        assert found.original.operator_index == operator
        assert (found.most, found.grade, found.coarse, found.spread) == (None, None, (), ())


@pytest.mark.parametrize(("factor", "off"), [(1.0, False), (1.01, True)])
def test_a_float16_table_is_off_by_its_own_rounding_alone(factor: float, off: bool) -> None:
    """Of a model of tokens, whose table of floats a GATHER reads, as it is and one percent off."""
    folder = CASES / "fp16_mask_nan"
    original, content = (
        (folder / f"{name}.tflite").read_bytes() for name in ("original", "compressed")
    )
    graph = Graph(content)
    gather = next(one for one in graph.layers if one.name == "GATHER")
    table = graph.stored(gather.inputs[0])
    assert table is not None
    changed = with_constant(content, table.name, lambda values: values * np.float16(factor))
    with np.load(folder / "seeds.npz") as arrays:
        tokens = arrays["tokens"][:1].astype(np.int32)
    found = found_of(changed, original, (tokens, tokens))
    (layer,) = (one for one in found.layers if one.layer.operator_index == gather.index)
    assert (layer.residual > layer.explained) == off


def test_a_layer_whose_output_is_empty_has_no_error() -> None:
    """Nothing is sliced off the input, and put before it."""

    def sliced_off(dtype: str, quantization: tuple[float, int] | None) -> bytes:
        writer = GraphWriter()
        ends = [writer.constant(f"{one}", np.array([one, 0], np.int32)) for one in (0, 1)]
        x, none, y = (
            writer.tensor(name, shape, dtype, quantization)
            for name, shape in (("x", (1, 4)), ("none", (1, 0)), ("y", (1, 4)))
        )
        writer.operator("SLICE", [x, *ends], [none], schema.SliceOptionsT(), 2)
        joining = schema.ConcatenationOptionsT(axis=1)
        writer.operator("CONCATENATION", [none, x], [y], joining, 2)
        return writer.content([x], [y])

    given = np.array([[0.1, 0.5, -0.3, 0.2]])
    content, original = sliced_off("INT8", (0.02, 3)), sliced_off("FLOAT32", None)
    graph = Graph(content)
    raw = graph.tensors[graph.inputs[0]].raw(given)
    found = found_of(content, original, (raw, given.astype(np.float32)))
    assert [(one.layer.name, one.beyond) for one in found.layers] == [
        ("SLICE", False),
        ("CONCATENATION", False),
    ]
    assert (found.layers[0].residual, found.layers[0].explained) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("reach", "coarse"), [(40.0, []), (200.0, []), (1.0, [("FULLY_CONNECTED", "saturated")])]
)
def test_activations_of_16_bits_are_coarse_where_values_are_cut_off(
    reach: float, coarse: list[tuple[str, str]]
) -> None:
    """Between two layers; a range that is five times as wide as needed leaves enough steps."""
    content, original = perceptron("INT16", reach), perceptron("FLOAT32", reach)
    graph = Graph(content)
    given = np.random.default_rng(0).uniform(-4.0, 4.0, (17, 1, 8))
    raw = graph.tensors[graph.inputs[0]].raw(given)
    inputs = zip(raw, given.astype(np.float32), strict=True)
    found = found_of(content, original, *inputs, kernels="builtin")
    assert found.most is None
    assert [(one.name, one.kind) for one in found.coarse] == coarse


def perceptron(dtype: str, reach: float) -> bytes:
    """Two layers, as floats or in 16 bits with weights of 8."""
    rng, writer, floats = np.random.default_rng(0), GraphWriter(), dtype == "FLOAT32"

    def activation(name: str, size: int, largest: float) -> int:
        quantization = None if floats else (largest / 32767, 0)
        return writer.tensor(name, (1, size), dtype, quantization)

    def weights(name: str, shape: tuple[int, int]) -> int:
        values = rng.normal(size=shape).astype(np.float32)
        if floats:
            return writer.constant(name, values)
        step = float(np.abs(values).max()) / 127
        return writer.constant(name, np.round(values / step).astype(np.int8), (step, 0))

    x, hidden, y = activation("x", 8, 5.0), activation("h", 16, reach), activation("y", 4, 200.0)
    layers = ((x, weights("first", (16, 8)), hidden), (hidden, weights("last", (4, 16)), y))
    for (given, constant, made), function in zip(layers, ("RELU", "NONE"), strict=True):
        kind = getattr(schema.ActivationFunctionType, function)
        options, version = schema.FullyConnectedOptionsT(kind), 1 if floats else 7
        writer.operator("FULLY_CONNECTED", [given, constant], [made], options, version)
    return writer.content([x], [y])
