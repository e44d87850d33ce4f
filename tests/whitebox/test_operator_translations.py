"""Each operator against the runtime, as a model of its own with drawn quantizations and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from edgeflare.whitebox.operator_translations import TRANSLATIONS
from edgeflare.whitebox.translation_check import excess
from graph_writer import GraphWriter

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

SHAPE = (1, 6, 6, 4)
RELU6 = 3


class Drawn(GraphWriter):
    """A model under construction, with drawn scales, zero points and constants."""

    def __init__(self, dtype: str, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.input = self.drawn("input", SHAPE)

    def drawn(self, name: str, shape: tuple[int, ...], scale: float | None = None) -> int:
        drawn = (scale or float(self.rng.uniform(0.02, 0.1)), int(self.rng.integers(-20, 20)))
        return self.tensor(name, shape, self.dtype, drawn if self.dtype == "INT8" else None)

    def like_input(self, shape: tuple[int, ...], name: str = "output") -> int:
        """A tensor with the quantization of the input."""
        known = self.graph.tensors[self.input].quantization
        quantization = None if known is None else (known.scale[0], known.zeroPoint[0])
        return self.tensor(name, shape, self.dtype, quantization)

    def weights(self, shape: tuple[int, ...], channels: int) -> list[int]:
        if self.dtype == "FLOAT32":
            drawn = [self.rng.normal(0, 0.3, size).astype(np.float32) for size in (shape, channels)]
            return [self.constant(*one) for one in zip(("weights", "bias"), drawn, strict=True)]
        scale = 0.003 * self.graph.tensors[self.input].quantization.scale[0]
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        bias = self.rng.integers(-900, 900, channels).astype(np.int32)
        return [
            self.constant("weights", values, (0.003, 0)),
            self.constant("bias", bias, (scale, 0)),
        ]


def convolution(drawn: Drawn, name: str) -> int:
    shape, channels, kind = (5, 3, 3, 4), 5, schema.Conv2DOptionsT
    if depthwise := name == "DEPTHWISE_CONV_2D":
        shape, channels, kind = (1, 3, 3, 4), 4, schema.DepthwiseConv2DOptionsT
    options = kind(strideW=2 if depthwise else 1, strideH=2, fusedActivationFunction=RELU6)
    if depthwise:
        options.depthMultiplier = 1
    output = drawn.drawn("output", (1, 3, 3 if depthwise else 6, channels))
    drawn.operator(name, [drawn.input, *drawn.weights(shape, channels)], [output], options, 3)
    return output


def grouped(drawn: Drawn, name: str) -> int:
    """A convolution whose weights read half of the channels each."""
    output = drawn.drawn("output", (1, 6, 6, 8), 0.2)
    options = schema.Conv2DOptionsT(strideW=1, strideH=1)
    drawn.operator(name, [drawn.input, *drawn.weights((8, 3, 3, 2), 8)], [output], options, 6)
    return output


def fully_connected(drawn: Drawn, name: str) -> int:
    output = drawn.drawn("output", (1, 7), 0.5)
    inputs = [drawn.input, *drawn.weights((7, 144), 7)]
    drawn.operator(name, inputs, [output], schema.FullyConnectedOptionsT(), 4)
    return output


def pool(drawn: Drawn, name: str) -> int:
    output = drawn.like_input((1, 3, 3, 4))
    options = schema.Pool2DOptionsT(strideW=2, strideH=2, filterWidth=3, filterHeight=3)
    drawn.operator(name, [drawn.input], [output], options, 2)
    return output


def mean(drawn: Drawn, name: str) -> int:
    axes = drawn.constant("axes", np.array([1, 2], np.int32))
    output = drawn.drawn("output", (1, 4))
    drawn.operator(name, [drawn.input, axes], [output], schema.ReducerOptionsT(), 2)
    return output


LAYOUTS: dict[str, tuple[list[Any], tuple[int, ...], Any, int]] = {
    "PAD": ([[0, 0], [1, 2], [0, 1], [0, 0]], (1, 9, 7, 4), schema.PadOptionsT, 2),
    "RESHAPE": ([1, 144], (1, 144), schema.ReshapeOptionsT, 1),
    "TRANSPOSE": ([0, 3, 1, 2], (1, 4, 6, 6), schema.TransposeOptionsT, 2),
}
"""What they read beside the input, the shape that they make, and their options and version."""


def layout(drawn: Drawn, name: str) -> int:
    constant, shape, options, version = LAYOUTS[name]
    read, output = drawn.constant("how", np.array(constant, np.int32)), drawn.like_input(shape)
    drawn.operator(name, [drawn.input, read], [output], options(), version)
    return output


def of_two(drawn: Drawn, name: str) -> int:
    """The input and a function of it, so that the model has one input."""
    return combined(drawn, name, _function_of_input(drawn))


def _function_of_input(drawn: Drawn) -> int:
    other = drawn.like_input(SHAPE, "other")  # so that nothing but the operator rounds
    drawn.operator("RELU", [drawn.input], [other], None, 2)
    return other


def joined(drawn: Drawn, name: str) -> int:
    output = drawn.like_input((1, 6, 12, 4))
    inputs = [drawn.input, _function_of_input(drawn)]
    drawn.operator(name, inputs, [output], schema.ConcatenationOptionsT(axis=2), 2)
    return output


def parts(drawn: Drawn, name: str) -> int:
    """Two halves of the input, of which the second is looked at."""
    axis = drawn.constant("axis", np.array(3, np.int32))
    first, second = (drawn.like_input((1, 6, 6, 2), half) for half in ("first", "second"))
    options = schema.SplitOptionsT(numSplits=2)
    drawn.operator(name, [axis, drawn.input], [first, second], options, 2)
    return second


def of_constant(drawn: Drawn, name: str) -> int:
    """The input and a constant, of which every difference to its zero point has to fit."""
    if drawn.dtype == "INT8":
        values = drawn.rng.integers(-128, 128, SHAPE[-1:]).astype(np.int8)
        known = (0.02, int(drawn.rng.choice([-128, 127])))
        return combined(drawn, name, drawn.constant("constant", values, known))
    real = drawn.rng.normal(0, 1, SHAPE[-1:]).astype(np.float32)
    return combined(drawn, name, drawn.constant("constant", real))


def combined(drawn: Drawn, name: str, other: int) -> int:
    output = drawn.drawn("output", SHAPE, 0.12)
    kinds = {"ADD": schema.AddOptionsT, "MUL": schema.MulOptionsT, "SUB": schema.SubOptionsT}
    options = kinds[name]()
    drawn.operator(name, [drawn.input, other], [output], options, 2)
    return output


FIXED = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128), "TANH": (1 / 128, 0)}
"""Scale and zero point of activations whose quantization is fixed."""


def of_one(drawn: Drawn, name: str) -> int:
    """An activation."""
    if name in FIXED and drawn.dtype == "INT8":
        output = drawn.tensor("output", SHAPE, "INT8", FIXED[name])
    else:
        output = drawn.drawn("output", SHAPE)
    options = schema.SoftmaxOptionsT(beta=1.0) if name == "SOFTMAX" else None
    drawn.operator(name, [drawn.input], [output], options, 2 if name != "HARD_SWISH" else 1)
    return output


BUILDERS: dict[str, Callable[[Drawn, str], int]] = {
    "ADD": of_two,
    "AVERAGE_POOL_2D": pool,
    "CONCATENATION": joined,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": convolution,
    "FULLY_CONNECTED": fully_connected,
    "HARD_SWISH": of_one,
    "LOGISTIC": of_one,
    "MAX_POOL_2D": pool,
    "MEAN": mean,
    "MUL": of_two,
    "PAD": layout,
    "RELU": of_one,
    "RELU6": of_one,
    "RESHAPE": layout,
    "SOFTMAX": of_one,
    "SPLIT": parts,
    "SUB": of_two,
    "TANH": of_one,
    "TRANSPOSE": layout,
}

VARIANTS = [
    ("ADD", of_constant),
    ("MUL", of_constant),
    ("SUB", of_constant),
    ("CONV_2D", grouped),
]

ELSEWHERE = {"QUANTIZE", "DEQUANTIZE"}
"""Between two types: these are below."""


def test_all_operators_are_compared() -> None:
    assert BUILDERS.keys() | ELSEWHERE == TRANSLATIONS.keys()


def most_off(content: bytes, output: int, rng: np.random.Generator) -> float:
    """By what multiple of what is allowed the translation is off on two drawn inputs."""
    network = DifferentiableNetwork(Graph(content, "drawn.tflite"))
    given = network.graph.tensors[network.graph.inputs[0]]
    worst = 0.0
    with HostProbe(content, "xnnpack") as probe:
        for _ in range(2):
            row: np.ndarray = rng.normal(0, 2, given.shape).astype(np.float32)
            if given.scales:
                row = rng.integers(-128, 128, given.shape).astype(np.int8)
            translated = network.tensors(row)[output]
            (runtime,) = probe.run([row])
            worst = max(worst, excess(network.graph.tensors[output], translated, runtime))
    return worst


@pytest.mark.parametrize("dtype", ["FLOAT32", "INT8"])
@pytest.mark.parametrize(("name", "build"), [*BUILDERS.items(), *VARIANTS])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=4, deadline=None)
def test_an_operator_is_what_the_runtime_computes(
    name: str, build: Callable[[Drawn, str], int], dtype: str, seed: int
) -> None:
    drawn = Drawn(dtype, seed)
    output = build(drawn, name)
    assert most_off(drawn.content([drawn.input], [output]), output, drawn.rng) <= 1.0


def test_conversions_are_what_the_runtime_computes() -> None:
    writer = GraphWriter()
    x, output = (writer.tensor(name, SHAPE, "FLOAT32") for name in "xy")
    first = writer.tensor("first", SHAPE, "INT8", (0.04, -7))
    second = writer.tensor("second", SHAPE, "INT8", (0.05, 11))
    writer.operator("QUANTIZE", [x], [first], schema.QuantizeOptionsT(), 2)
    writer.operator("QUANTIZE", [first], [second], schema.QuantizeOptionsT(), 2)
    writer.operator("DEQUANTIZE", [second], [output], schema.DequantizeOptionsT(), 2)
    content = writer.content([x], [output])
    assert most_off(content, output, np.random.default_rng(1)) <= 0.05 / 1e-4
