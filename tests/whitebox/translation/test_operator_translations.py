"""Each operator against the runtime, as a model of its own with drawn quantizations and values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
from edgeflare.whitebox.translation.operator_translations import TRANSLATIONS
from edgeflare.whitebox.translation_check import excess
from graph_writer import GraphWriter

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

SHAPE = (1, 6, 6, 4)
RELU6 = 3


class Drawn:
    """A model under construction, with drawn scales, zero points and constants."""

    def __init__(self, dtype: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.writer = GraphWriter()
        self.input = self.tensor("input", SHAPE)

    def tensor(self, name: str, shape: tuple[int, ...], scale: float | None = None) -> int:
        if self.dtype == "FLOAT32":
            return self.writer.tensor(name, shape, "FLOAT32")
        drawn = (scale or float(self.rng.uniform(0.02, 0.1)), int(self.rng.integers(-20, 20)))
        return self.writer.tensor(name, shape, "INT8", drawn)

    def like_input(self, name: str, shape: tuple[int, ...]) -> int:
        """A tensor with the quantization of the input."""
        if self.dtype == "FLOAT32":
            return self.writer.tensor(name, shape, "FLOAT32")
        known = self.writer.graph.tensors[self.input].quantization
        return self.writer.tensor(name, shape, "INT8", (known.scale[0], known.zeroPoint[0]))

    def weights(self, shape: tuple[int, ...], channels: int) -> list[int]:
        if self.dtype == "FLOAT32":
            values = self.rng.normal(0, 0.3, shape).astype(np.float32)
            bias = self.rng.normal(0, 0.3, channels).astype(np.float32)
            return [
                self.writer.tensor("weights", shape, "FLOAT32", data=values),
                self.writer.tensor("bias", (channels,), "FLOAT32", data=bias),
            ]
        values8 = self.rng.integers(-127, 128, shape).astype(np.int8)
        scale = self.writer.graph.tensors[self.input].quantization.scale[0]
        bias32 = self.rng.integers(-900, 900, channels).astype(np.int32)
        return [
            self.writer.tensor("weights", shape, "INT8", (0.003, 0), values8),
            self.writer.tensor("bias", (channels,), "INT32", (scale * 0.003, 0), bias32),
        ]


def windowed(options: Any, **fields: int) -> Any:
    for key, value in {"strideW": 1, "strideH": 1, "padding": 0, **fields}.items():
        setattr(options, key, value)
    return options


def convolution(drawn: Drawn, name: str) -> int:
    depthwise = name == "DEPTHWISE_CONV_2D"
    shape = (1, 3, 3, 4) if depthwise else (5, 3, 3, 4)
    channels = 4 if depthwise else 5
    kind = schema.DepthwiseConv2DOptionsT if depthwise else schema.Conv2DOptionsT
    options = windowed(kind(), strideH=2, dilationWFactor=1, dilationHFactor=1)
    options.fusedActivationFunction = RELU6
    if depthwise:
        options.depthMultiplier = 1
        options.strideW = 2
    rows, columns = 3, 3 if depthwise else 6
    output = drawn.tensor("output", (1, rows, columns, channels))
    drawn.writer.operator(
        name, [drawn.input, *drawn.weights(shape, channels)], [output], options, 3
    )
    return output


def fully_connected(drawn: Drawn, name: str) -> int:
    output = drawn.tensor("output", (1, 7), 0.5)
    inputs = [drawn.input, *drawn.weights((7, 144), 7)]
    drawn.writer.operator(name, inputs, [output], schema.FullyConnectedOptionsT(), 4)
    return output


def pool(drawn: Drawn, name: str) -> int:
    output = drawn.like_input("output", (1, 3, 3, 4))
    options = windowed(schema.Pool2DOptionsT(), strideW=2, strideH=2, filterWidth=3, filterHeight=3)
    drawn.writer.operator(name, [drawn.input], [output], options, 2)
    return output


def mean(drawn: Drawn, name: str) -> int:
    axes = drawn.writer.tensor("axes", (2,), "INT32", data=np.array([1, 2], np.int32))
    output = drawn.tensor("output", (1, 4))
    drawn.writer.operator(name, [drawn.input, axes], [output], schema.ReducerOptionsT(), 2)
    return output


def pad(drawn: Drawn, name: str) -> int:
    widths = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
    constant = drawn.writer.tensor("widths", (4, 2), "INT32", data=widths)
    output = drawn.like_input("output", (1, 9, 7, 4))
    drawn.writer.operator(name, [drawn.input, constant], [output], schema.PadOptionsT(), 2)
    return output


def reshape(drawn: Drawn, name: str) -> int:
    shape = drawn.writer.tensor("shape", (2,), "INT32", data=np.array([1, 144], np.int32))
    output = drawn.like_input("output", (1, 144))
    drawn.writer.operator(name, [drawn.input, shape], [output], schema.ReshapeOptionsT())
    return output


def transpose(drawn: Drawn, name: str) -> int:
    order = drawn.writer.tensor("order", (4,), "INT32", data=np.array([0, 3, 1, 2], np.int32))
    output = drawn.like_input("output", (1, 4, 6, 6))
    drawn.writer.operator(name, [drawn.input, order], [output], schema.TransposeOptionsT(), 2)
    return output


def of_two(drawn: Drawn, name: str) -> int:
    """The input and a function of it, so that the model has one input."""
    other = drawn.like_input("other", SHAPE)  # so that nothing but the operator rounds
    drawn.writer.operator("RELU", [drawn.input], [other], None, 2)
    output = drawn.tensor("output", SHAPE, 0.12)
    options = schema.AddOptionsT() if name == "ADD" else schema.MulOptionsT()
    drawn.writer.operator(name, [drawn.input, other], [output], options, 2)
    return output


def of_constant(drawn: Drawn, name: str) -> int:
    """The input and a constant, of which every difference to its zero point has to fit."""
    values: np.ndarray = drawn.rng.normal(0, 1, SHAPE[-1:]).astype(np.float32)
    quantized = None
    if drawn.dtype == "INT8":
        quantized = (0.02, int(drawn.rng.choice([-128, 127])))
        values = drawn.rng.integers(-128, 128, SHAPE[-1:]).astype(np.int8)
    constant = drawn.writer.tensor("constant", SHAPE[-1:], drawn.dtype, quantized, values)
    output = drawn.tensor("output", SHAPE, 0.12)
    options = schema.AddOptionsT() if name == "ADD" else schema.MulOptionsT()
    drawn.writer.operator(name, [drawn.input, constant], [output], options, 2)
    return output


def grouped(drawn: Drawn, name: str) -> int:
    """A convolution whose weights read half of the channels each."""
    output = drawn.tensor("output", (1, 6, 6, 8), 0.2)
    options = windowed(schema.Conv2DOptionsT(), dilationWFactor=1, dilationHFactor=1)
    inputs = [drawn.input, *drawn.weights((8, 3, 3, 2), 8)]
    drawn.writer.operator(name, inputs, [output], options, 6)
    return output


def of_one(drawn: Drawn, name: str) -> int:
    """An activation; LOGISTIC and SOFTMAX have a fixed quantization."""
    if name in ("LOGISTIC", "SOFTMAX") and drawn.dtype == "INT8":
        output = drawn.writer.tensor("output", SHAPE, "INT8", (1 / 256, -128))
    else:
        output = drawn.tensor("output", SHAPE)
    options = None
    if name == "SOFTMAX":
        options = schema.SoftmaxOptionsT()
        options.beta = 1.0
    drawn.writer.operator(name, [drawn.input], [output], options, 2 if name != "HARD_SWISH" else 1)
    return output


BUILDERS: dict[str, Callable[[Drawn, str], int]] = {
    "ADD": of_two,
    "AVERAGE_POOL_2D": pool,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": convolution,
    "FULLY_CONNECTED": fully_connected,
    "HARD_SWISH": of_one,
    "LOGISTIC": of_one,
    "MAX_POOL_2D": pool,
    "MEAN": mean,
    "MUL": of_two,
    "PAD": pad,
    "RELU": of_one,
    "RELU6": of_one,
    "RESHAPE": reshape,
    "SOFTMAX": of_one,
    "TRANSPOSE": transpose,
}

VARIANTS = [("ADD", of_constant), ("MUL", of_constant), ("CONV_2D", grouped)]

ELSEWHERE = {"QUANTIZE", "DEQUANTIZE"}
"""Between two types: these are below."""


def test_all_operators_are_compared() -> None:
    assert BUILDERS.keys() | ELSEWHERE == TRANSLATIONS.keys()


def most_off(path: Path, output: int, rng: np.random.Generator) -> float:
    """By what multiple of what is allowed the translation is off on two drawn inputs."""
    content = path.read_bytes()
    network = DifferentiableNetwork(Graph(content, path.name))
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
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    build: Callable[[Drawn, str], int],
    dtype: str,
    seed: int,
) -> None:
    drawn = Drawn(dtype, seed)
    output = build(drawn, name)
    path = tmp_path_factory.mktemp("operator") / f"{name}.tflite"
    drawn.writer.save(path, [drawn.input], [output])
    assert most_off(path, output, drawn.rng) <= 1.0


def test_conversions_are_what_the_runtime_computes(tmp_path: Path) -> None:
    writer = GraphWriter()
    given_ = writer.tensor("input", SHAPE, "FLOAT32")
    first = writer.tensor("first", SHAPE, "INT8", (0.04, -7))
    second = writer.tensor("second", SHAPE, "INT8", (0.05, 11))
    output = writer.tensor("output", SHAPE, "FLOAT32")
    writer.operator("QUANTIZE", [given_], [first], schema.QuantizeOptionsT(), 2)
    writer.operator("QUANTIZE", [first], [second], schema.QuantizeOptionsT(), 2)
    writer.operator("DEQUANTIZE", [second], [output], schema.DequantizeOptionsT(), 2)
    path = writer.save(tmp_path / "model.tflite", [given_], [output])
    assert most_off(path, output, np.random.default_rng(1)) <= 0.05 / 1e-4
