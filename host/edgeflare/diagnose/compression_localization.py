"""Find the layers in which twin and original differ by more than quantization explains.

Each operator of the original is given the inputs of the twin's operator, dequantized, so the errors
of earlier layers do not count. The difference of their outputs is the layer's own error.
Quantization explains a part of it: the rounding of the output, clipping to the output's range, and
the noise of rounded weights and inputs. Of a constant's error, it explains the rounding.

Of the layers with a larger error, the one that causes most of the margin's error is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.diagnose.compression_error import CompressionError, LayerCompressionError
from edgeflare.diagnose.constant_error import compare_constants, with_excess
from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.margin_error import MarginError, margin_error
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.diagnose.probed_arm import OpenProbe, State
from edgeflare.diagnose.rounding_noise import WEIGHTED, output_variances
from edgeflare.diagnose.tensor_difference import difference
from edgeflare.errors import UserError
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor

_SIGMAS = 7.0
"""Standard deviations of rounding noise that are explained. The far tails of such a sum are not
those of a normal distribution, and a network has a million outputs."""

_ROUNDING_UNITS = 1.0
"""Units of an operator's output that rounding explains; some kernels round twice."""

_TABLE_UNITS = 2.0
"""The same of operators without weights, some of which use tables or fixed-point arithmetic."""

_TABLE_UNITS_OF_16_BITS = 64.0
"""The same for outputs of 16 bits: tables have 512 intervals over their range, and interpolation
between their entries may be off by half an interval. 18 units have been observed."""

_LEAST_SHARE = 0.05
"""Of the margin's error: a layer with less does not account for the deviation. Of 40 random faults,
each in one layer, the smallest share was 0.08, and the third smallest 0.3."""

_FLOAT_SHARE = 1e-4
"""Share of a float tensor's largest value by which kernels may differ."""


class CompressionLocalizer:
    """Finds the error of each layer. Models that it opens stay open for further inputs.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        content: the original's file.
        opens: opens models on the host; its second argument is true to capture tensors.

    """

    def __init__(
        self, compressed: Graph, original: Graph, content: bytes, opens: OpenProbe
    ) -> None:
        self._compressed = compressed
        self._original = OriginalLayers(original, content, opens)
        self._matched = match_layers(compressed, original)
        self._constants = {
            op: compare_constants(compressed, op, original, original_op)
            for op, (original_op, _) in self._matched.items()
        }

    def close(self) -> None:
        """Close all that was opened."""
        self._original.close()

    def find(self, twin: State, original_input: Values) -> CompressionError:
        """Find the error of each layer on an input.

        Args:
            twin: the observed values of the twin, by tensor of its graph.
            original_input: (1, *input shape without its batch dimension), as the original takes it.

        """
        if not self._matched:
            return CompressionError(
                note="no layer of the original is like one of the compressed model"
            )
        pairs = {
            op: original_op
            for op, (original_op, _) in self._matched.items()
            if self._seen(self._compressed.operators[op], twin)
        }
        if not pairs:
            return CompressionError(note="the twin's layers cannot be seen")
        try:
            return self._found(pairs, twin, self._original.capture(original_input))
        except (ProbeFailed, UserError) as failed:
            return CompressionError(note=f"the original's layers cannot be seen: {failed}")

    def _found(self, pairs: Mapping[int, int], twin: State, seen: State) -> CompressionError:
        wanted = self._outputs_on_twin_inputs(pairs, twin)
        variances = output_variances(
            self._compressed, self._original, pairs, lambda op: self._feeds(op, twin)
        )
        noise = {op: np.sqrt(variances.get(op, np.zeros(()))) for op in pairs}
        layers = [
            self._layer_error(op, twin, seen.get(self._made(original_op)), wanted[op], noise[op])
            for op, original_op in pairs.items()
        ]
        margin = self._margin(
            pairs, twin, seen, wanted, noise, [one for one in layers if one.beyond]
        )
        shares = {} if margin is None else margin.shares
        layers = [replace(one, margin_share=shares.get(one.layer.operator)) for one in layers]
        of_those = [one for one in layers if one.beyond]
        most = _most(of_those)
        unmatched = [one for one in self._compressed.layers if one.index not in self._matched]
        return CompressionError(
            of_those[0].layer if of_those else None,
            None if most is None else most.layer,
            None if margin is None else margin.size,
            tuple(layers),
            tuple(
                layer_name(self._compressed, one)
                for one in unmatched
                if one.name not in ("QUANTIZE", "DEQUANTIZE")
            ),
        )

    def _layer_error(
        self,
        op: int,
        twin: State,
        captured: Values | None,
        wanted: Real,
        noise: Real,
    ) -> LayerCompressionError:
        one = self._compressed.operators[op]
        original_op, by = self._matched[op]
        tensor = self._compressed.tensors[one.outputs[0]]
        got = tensor.real(twin[tensor.index])
        unit = _unit(tensor, wanted)
        residual = np.abs(got - _clipped(tensor, wanted)) / unit
        explained = _explained(one, tensor, wanted, noise) / unit
        worst = int((residual - explained).argmax())
        total = None
        if captured is not None and captured.shape == got.shape:
            total = difference(_as_real(tensor), captured.astype(np.float64), got)
        return LayerCompressionError(
            layer_name(self._compressed, one),
            by,
            total,
            float(residual.ravel()[worst]),
            float(explained.ravel()[worst]),
            self._constants[op],
            self._other_options(op, original_op),
        )

    def _margin(
        self,
        pairs: Mapping[int, int],
        twin: State,
        seen: State,
        wanted: Mapping[int, Real],
        noise: Mapping[int, Real],
        beyond: Sequence[LayerCompressionError],
    ) -> MarginError | None:
        """Return how much of the margin's error is due to what quantization does not explain.

        It is computed from the outputs, and from the constants, whose errors may be smaller than
        the noise of outputs and still all go in one direction. Of a layer's two shares, the larger
        one counts.
        """
        if not beyond:
            return None
        asked = [one.layer.operator for one in beyond]
        compressed_values = {}
        for op, original_op in pairs.items():
            tensor = self._compressed.tensors[self._compressed.operators[op].outputs[0]]
            compressed_values[self._made(original_op)] = tensor.real(twin[tensor.index])
        known = {tensor: values.astype(np.float64) for tensor, values in seen.items()}
        outputs = {
            op: self._without_excess(
                op, compressed_values[self._made(pairs[op])], wanted[op], noise[op]
            )
            for op in asked
        }
        try:
            constants = self._with_wrong_constants(pairs, twin, beyond)
            by_outputs, by_constants = (
                margin_error(self._original, pairs, compressed_values, known, one)
                for one in (outputs, {**outputs, **constants})
            )
        except (ProbeFailed, UserError):
            return None
        if by_outputs is None or by_constants is None:
            return None
        both = (by_outputs.shares, by_constants.shares)
        shares = {op: max((of[op] for of in both), key=abs) for op in by_outputs.shares}
        return MarginError(by_outputs.size, shares)

    def _without_excess(self, op: int, got: Real, wanted: Real, noise: Real) -> tuple[Real, Real]:
        """Return an output with its error cut to what quantization explains, and as it is."""
        one = self._compressed.operators[op]
        tensor = self._compressed.tensors[one.outputs[0]]
        wanted = _clipped(tensor, wanted)
        most = _explained(one, tensor, wanted, noise)
        return wanted + np.clip(got - wanted, -most, most), got

    def _with_wrong_constants(
        self, pairs: Mapping[int, int], twin: State, beyond: Sequence[LayerCompressionError]
    ) -> dict[int, tuple[Real, Real]]:
        """Return the outputs of layers with the original's constants, and with wrong ones."""
        changed = [
            one.layer.operator
            for one in beyond
            if one.constants is not None and one.constants.beyond
        ]
        if not changed:
            return {}
        sides: tuple[dict[int, Real], dict[int, Real]] = ({}, {})
        for op in changed:
            both = with_excess(self._compressed, op, self._original.graph, pairs[op])
            for side, constants in zip(sides, both, strict=True):
                side.update(constants)
        inputs = [values for op in changed for values in self._feeds(op, twin)]
        original_op = [pairs[op] for op in changed]
        right, wrong = (self._original.altered(original_op, inputs, side) for side in sides)
        made = {op: self._made(pairs[op]) for op in changed}
        return {op: (right[tensor], wrong[tensor]) for op, tensor in made.items()}

    def _outputs_on_twin_inputs(self, pairs: Mapping[int, int], twin: State) -> dict[int, Real]:
        """Return the outputs of the original's operators on the inputs of the twin's."""
        inputs = [values for op in pairs for values in self._feeds(op, twin)]
        outputs = self._original.alone(list(pairs.values()), inputs)
        return {op: outputs[self._made(original_op)] for op, original_op in pairs.items()}

    def _seen(self, one: GraphOp, twin: State) -> bool:
        return all(tensor in twin for tensor in (*self._compressed.fed(one), *one.outputs))

    def _feeds(self, op: int, twin: State) -> list[Real]:
        """Return the real values of the inputs of the twin's operator."""
        one = self._compressed.operators[op]
        return [
            self._compressed.tensors[tensor].real(twin[tensor])
            for tensor in self._compressed.fed(one)
        ]

    def _made(self, original_op: int) -> int:
        return self._original.graph.operators[original_op].outputs[0]

    def _other_options(self, op: int, original_op: int) -> tuple[str, ...]:
        options, original_options = (
            self._compressed.options(op),
            self._original.graph.options(original_op),
        )
        return tuple(
            name
            for name in options.keys() & original_options.keys()
            if name in _GEOMETRY and options[name] != original_options[name]
        )


_GEOMETRY = frozenset(
    {
        "padding",
        "strideW",
        "strideH",
        "dilationWFactor",
        "dilationHFactor",
        "depthMultiplier",
        "filterWidth",
        "filterHeight",
        "fusedActivationFunction",
        "axis",
        "keepDims",
        "beta",
    }
)
"""Options that compression has no reason to change."""


def _most(beyond: Sequence[LayerCompressionError]) -> LayerCompressionError | None:
    """Return the layer with the largest share of the margin's error; the first if none is known."""
    known = [one for one in beyond if one.margin_share is not None]
    if not known:
        return next(iter(beyond), None)
    most = max(known, key=lambda one: abs(one.margin_share or 0.0))
    return most if abs(most.margin_share or 0.0) >= _LEAST_SHARE else None


def _least_units(one: GraphOp, tensor: GraphTensor) -> float:
    """Return the error of an operator's output, in units, that is explained for any input."""
    if one.name in WEIGHTED:
        return _ROUNDING_UNITS
    return _TABLE_UNITS_OF_16_BITS if tensor.dtype == "int16" else _TABLE_UNITS


def _explained(one: GraphOp, tensor: GraphTensor, wanted: Real, noise: Real) -> Real:
    """Return the error of an operator's outputs that quantization explains, in real values."""
    most = _least_units(one, tensor) * _unit(tensor, wanted) + _SIGMAS * noise
    return np.broadcast_to(most, wanted.shape)


def _unit(tensor: GraphTensor, wanted: Real) -> float:
    """Return the unit in which residuals are counted, as a real value."""
    if tensor.scales:
        return max(tensor.scales)
    return _FLOAT_SHARE * float(np.abs(wanted).max(initial=0.0)) or 1.0


def _clipped(tensor: GraphTensor, real: Real) -> Real:
    """Return values clipped to the range of a tensor."""
    if not tensor.scales:
        return real
    limits = np.iinfo(tensor.dtype)
    low, high = (
        (limit - tensor.zero_points[0]) * tensor.scales[0] for limit in (limits.min, limits.max)
    )
    return np.clip(real, low, high)


def _as_real(tensor: GraphTensor) -> GraphTensor:
    """Return the tensor without its quantization."""
    return GraphTensor(
        tensor.index, tensor.name, tensor.shape, "float64", (), (), 0, constant=False
    )
