"""What rounding explains of a constant: what converters do, and no step more."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.diagnose.constant_error import ConstantError, compare_constants
from edgeflare.models.graph_parts import extract
from edgeflare.models.tflite_graph import Graph
from requantizing import CONVERTERS, Converter, requantized
from tampering import COMPRESSED, ORIGINAL, constant_of, edited, with_constant

LAYER = 0
CONTENT, FLOAT = (
    extract(Graph(path.read_bytes()), LAYER, LAYER).content for path in (COMPRESSED, ORIGINAL)
)
"""The first layer alone, a convolution."""
ORIGINAL_BIAS = Graph(FLOAT).operators[LAYER].inputs[2]
CHANNELS = Graph(FLOAT).tensors[ORIGINAL_BIAS].shape[0]


def compared(compressed: bytes, original: bytes) -> ConstantError:
    found = compare_constants(Graph(compressed), LAYER, Graph(original), LAYER)
    assert found is not None
    return found


def with_bias(values: NDArray[np.float32]) -> bytes:
    """The original, with another bias in its first layer."""
    return with_constant(FLOAT, constant_of(FLOAT, LAYER, 2), lambda _: values)


def _set_first(value: np.int64, raw: NDArray[Any]) -> NDArray[Any]:
    """The lowest bits of a value in the place of the first one."""
    return np.concatenate([[value.astype(raw.dtype)], raw[1:]])


def test_a_bias_that_its_integers_cannot_hold_overflows() -> None:
    """Whether a converter clips it or lets it wrap; one that just fits does not."""
    graph = Graph(CONTENT)
    step = graph.tensors[graph.operators[LAYER].inputs[2]].scales[0]
    name = constant_of(CONTENT, LAYER, 2)
    bias = np.zeros(CHANNELS, np.float32)
    for steps, overflows in ((2.0e9, False), (1.0e10, True)):
        bias[0] = steps * step
        original = with_bias(bias)
        clipped = requantized(original, CONTENT, Converter())
        wrapped = with_constant(clipped, name, partial(_set_first, np.int64(steps)))
        for file in (clipped, wrapped):
            found = compared(file, original)
            assert (found.beyond, found.overflows) == (overflows, overflows)


@pytest.mark.slow
@pytest.mark.parametrize("converter", CONVERTERS.values(), ids=CONVERTERS)
@settings(max_examples=20)
@given(
    steps=st.lists(
        st.floats(-1e9, 1e9, width=32) | st.floats(-1e5, 1e5, width=32),
        min_size=CHANNELS,
        max_size=CHANNELS,
    )
)
def test_what_a_converter_rounds_is_explained_and_a_step_more_is_not(
    converter: Converter, steps: list[float]
) -> None:
    """Biases of any number of steps: of many, float32 arithmetic loses whole ones."""
    graph = Graph(CONTENT)
    scales = graph.tensors[graph.operators[LAYER].inputs[2]].scales
    bias = (np.array(steps) * np.array(scales)).astype(np.float32)
    original = with_bias(bias)
    compressed = requantized(original, CONTENT, converter)
    assert not compared(compressed, original).beyond
    if np.abs(steps).max() < 1e5:
        wrong = with_constant(compressed, constant_of(CONTENT, LAYER, 2), lambda raw: raw + 2)
        assert compared(wrong, original).beyond


def test_a_bias_that_float32_brought_over_half_a_step_is_explained() -> None:
    """As in a published int8 ResNet-8: .50157 steps, where its last place is .0053 of them."""
    graph = Graph(CONTENT)
    step = graph.tensors[graph.operators[LAYER].inputs[2]].scales[0]
    bias = np.zeros(CHANNELS, np.float32)
    bias[0] = np.float32(60_000.5 * step) * np.float32(1 + 2**-22)
    below = np.zeros(CHANNELS, np.int32)
    below[0] = 60_000
    compressed = with_constant(CONTENT, constant_of(CONTENT, LAYER, 2), lambda _: below)
    assert 0.501 < float(bias[0]) / step - 60_000 < 0.52
    assert not compared(compressed, with_bias(bias)).beyond
    below[0] -= 1
    compressed = with_constant(CONTENT, constant_of(CONTENT, LAYER, 2), lambda _: below)
    assert compared(compressed, with_bias(bias)).steps > 1.5


def test_weights_beyond_the_largest_step_are_cut_off_to_it() -> None:
    """Scales that are chosen by least error, not by the largest weight, cut the largest off."""
    name = constant_of(FLOAT, LAYER)

    def larger(weights: Any) -> Any:
        changed = weights.copy()
        at = np.abs(weights[0]).argmax()
        changed[0].flat[at] *= 1.2
        return changed

    assert not compared(CONTENT, with_constant(FLOAT, name, larger)).beyond
    assert compared(CONTENT, with_constant(FLOAT, name, lambda weights: weights * 1.2)).beyond


def test_an_original_that_is_quantized_itself_may_be_off_by_half_its_steps_too() -> None:
    """Both were rounded from weights that neither has."""
    coarse, fine = Converter(per_tensor=True), Converter()
    one, other = (requantized(FLOAT, CONTENT, how) for how in (fine, coarse))
    found = compared(one, other)
    assert 0.5 < found.steps <= found.explained
    moved = with_constant(one, constant_of(one, LAYER), lambda raw: np.roll(raw, 1, axis=1))
    assert compared(moved, other).beyond


def test_constants_that_are_dequantized_as_the_model_runs_have_the_steps_they_are_stored_in() -> (
    None
):
    def prepared(model: Any) -> None:
        """Store the first layer's weights as int8 behind a DEQUANTIZE, as weight-only files do."""
        from ai_edge_litert import schema_py_generated as schema  # noqa: PLC0415

        graph = model.subgraphs[0]
        operator = graph.operators[LAYER]
        int8 = Graph(requantized(FLOAT, CONTENT, Converter()))
        weights = int8.operators[LAYER].inputs[1]
        tensor, buffer = schema.TensorT(), schema.BufferT()
        buffer.data = np.frombuffer(int8.values(weights).tobytes(), np.uint8)
        model.buffers.append(buffer)
        tensor.name, tensor.shape = b"stored", list(int8.tensors[weights].shape)
        tensor.type, tensor.buffer = schema.TensorType.INT8, len(model.buffers) - 1
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = np.array(int8.tensors[weights].scales, np.float32)
        tensor.quantization.zeroPoint = np.zeros(len(int8.tensors[weights].scales), np.int64)
        real = schema.TensorT()
        real.name, real.shape, real.buffer = b"real", tensor.shape, 0
        real.type = schema.TensorType.FLOAT32
        graph.tensors += [tensor, real]
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEQUANTIZE
        code.version = 2
        model.operatorCodes.append(code)
        dequantize = schema.OperatorT()
        dequantize.opcodeIndex = len(model.operatorCodes) - 1
        dequantize.inputs, dequantize.outputs = [len(graph.tensors) - 2], [len(graph.tensors) - 1]
        operator.inputs = [int(operator.inputs[0]), len(graph.tensors) - 1, int(operator.inputs[2])]
        graph.operators.insert(LAYER, dequantize)

    weight_only = Graph(edited(FLOAT, prepared))
    found = compare_constants(weight_only, LAYER + 1, Graph(FLOAT), LAYER)
    assert found is not None
    assert 0.4 < found.steps <= 0.5
    assert not found.beyond
