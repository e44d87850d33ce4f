"""Where twin and original part by more than quantization explains.

Each operator of the original is given what the twin's operator was given, dequantized, so what its
predecessors lost does not count. Quantization explains what is then left between the two: rounding
of the output, what clipping to the output's range takes away, and the noise of rounded weights and
inputs. And it explains that each constant is rounded, and no more.

Of the layers in which more happened, the one is named that took most of the margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.diagnose.compression_error import CompressionError, LayerCompressionError
from edgeflare.diagnose.constants import compare_constants, with_excess
from edgeflare.diagnose.layer_figures import layer_of
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
"""A sum of that many rounding errors is nowhere near normal in its far tails, and a network has a
million of them."""

_ROUNDING_UNITS = 1.0
"""Of an operator's output: half a unit, and kernels that round twice."""

_TABLE_UNITS = 2.0
"""Of operators without weights, some of which are computed by tables or in fixed point."""

_TABLE_UNITS_OF_16_BITS = 64.0
"""The same where the output has 16 bits: tables have 512 intervals over its range, and half of one
is what reading between their entries may miss. 18 units have been seen."""

_LEAST_SHARE = 0.05
"""Of the margin's error: a layer with less does not account for the deviation. Of 40 faults that
were drawn, each in one layer, the least share was 0.08, and the third 0.3."""

_FLOAT_SHARE = 1e-4
"""Of a float tensor's largest value: what other kernels may differ by."""


class CompressionLocalizer:
    """Finds what compression did; what it opens serves all inputs, until it is closed.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        content: the original's file.
        opens: opens models on the host; True to capture.

    """

    def __init__(
        self, compressed: Graph, original: Graph, content: bytes, opens: OpenProbe
    ) -> None:
        self._compressed = compressed
        self._original = OriginalLayers(original, content, opens)
        self._matched = match_layers(compressed, original)
        self._constants = {
            mine: compare_constants(compressed, mine, original, yours)
            for mine, (yours, _) in self._matched.items()
        }

    def close(self) -> None:
        """Close all that was opened."""
        self._original.close()

    def find(self, twin: State, original_input: Values) -> CompressionError:
        """Find what compression did on an input.

        Args:
            twin: what was seen of the twin, by tensor of its graph.
            original_input: (1, *input shape without its batch dimension), as the original takes it.

        """
        if not self._matched:
            return CompressionError(
                note="no layer of the original is like one of the compressed model"
            )
        pairs = {
            mine: yours
            for mine, (yours, _) in self._matched.items()
            if self._seen(self._compressed.operators[mine], twin)
        }
        if not pairs:
            return CompressionError(note="the twin's layers cannot be seen")
        try:
            return self._found(pairs, twin, self._original.capture(original_input))
        except (ProbeFailed, UserError) as failed:
            return CompressionError(note=f"the original's layers cannot be seen: {failed}")

    def _found(self, pairs: Mapping[int, int], twin: State, seen: State) -> CompressionError:
        wanted = self._fed_as_the_twin(pairs, twin)
        variances = output_variances(
            self._compressed, self._original, pairs, lambda mine: self._feeds(mine, twin)
        )
        noise = {mine: np.sqrt(variances.get(mine, np.zeros(()))) for mine in pairs}
        layers = [
            self._layer_loss(mine, twin, seen.get(self._made(yours)), wanted[mine], noise[mine])
            for mine, yours in pairs.items()
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
                layer_of(self._compressed, one)
                for one in unmatched
                if one.name not in ("QUANTIZE", "DEQUANTIZE")
            ),
        )

    def _layer_loss(
        self,
        mine: int,
        twin: State,
        captured: Values | None,
        wanted: Real,
        noise: Real,
    ) -> LayerCompressionError:
        one = self._compressed.operators[mine]
        yours, by = self._matched[mine]
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
            layer_of(self._compressed, one),
            by,
            total,
            float(residual.ravel()[worst]),
            float(explained.ravel()[worst]),
            self._constants[mine],
            self._other_options(mine, yours),
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
        """Say how much of the margin's error is due to what quantization does not explain.

        That is asked of the outputs, and of the constants, whose errors may hide among the noise
        of outputs and still all go in one direction. What tells more counts.
        """
        if not beyond:
            return None
        asked = [one.layer.operator for one in beyond]
        middle = {}
        for mine, yours in pairs.items():
            tensor = self._compressed.tensors[self._compressed.operators[mine].outputs[0]]
            middle[self._made(yours)] = tensor.real(twin[tensor.index])
        known = {tensor: values.astype(np.float64) for tensor, values in seen.items()}
        outputs = {
            mine: self._healed(mine, middle[self._made(pairs[mine])], wanted[mine], noise[mine])
            for mine in asked
        }
        try:
            constants = self._with_wrong_constants(pairs, twin, beyond)
            by_outputs, by_constants = (
                margin_error(self._original, pairs, middle, known, one)
                for one in (outputs, {**outputs, **constants})
            )
        except (ProbeFailed, UserError):
            return None
        if by_outputs is None or by_constants is None:
            return None
        both = (by_outputs.shares, by_constants.shares)
        shares = {mine: max((of[mine] for of in both), key=abs) for mine in by_outputs.shares}
        return MarginError(by_outputs.size, shares)

    def _healed(self, mine: int, got: Real, wanted: Real, noise: Real) -> tuple[Real, Real]:
        """Return an output without what quantization does not explain of it, and as it is."""
        one = self._compressed.operators[mine]
        tensor = self._compressed.tensors[one.outputs[0]]
        wanted = _clipped(tensor, wanted)
        most = _explained(one, tensor, wanted, noise)
        return wanted + np.clip(got - wanted, -most, most), got

    def _with_wrong_constants(
        self, pairs: Mapping[int, int], twin: State, beyond: Sequence[LayerCompressionError]
    ) -> dict[int, tuple[Real, Real]]:
        """Return what layers put out with the original's constants, and with wrong ones."""
        changed = [
            one.layer.operator
            for one in beyond
            if one.constants is not None and one.constants.beyond
        ]
        if not changed:
            return {}
        sides: tuple[dict[int, Real], dict[int, Real]] = ({}, {})
        for mine in changed:
            both = with_excess(self._compressed, mine, self._original.graph, pairs[mine])
            for side, constants in zip(sides, both, strict=True):
                side.update(constants)
        inputs = [values for mine in changed for values in self._feeds(mine, twin)]
        yours = [pairs[mine] for mine in changed]
        right, wrong = (self._original.altered(yours, inputs, side) for side in sides)
        made = {mine: self._made(pairs[mine]) for mine in changed}
        return {mine: (right[tensor], wrong[tensor]) for mine, tensor in made.items()}

    def _fed_as_the_twin(self, pairs: Mapping[int, int], twin: State) -> dict[int, Real]:
        """Return what the original's operators put out when given what the twin's were."""
        inputs = [values for mine in pairs for values in self._feeds(mine, twin)]
        outputs = self._original.alone(list(pairs.values()), inputs)
        return {mine: outputs[self._made(yours)] for mine, yours in pairs.items()}

    def _seen(self, one: GraphOp, twin: State) -> bool:
        return all(tensor in twin for tensor in (*self._compressed.fed(one), *one.outputs))

    def _feeds(self, mine: int, twin: State) -> list[Real]:
        """Return the real values of what the twin's operator was given."""
        one = self._compressed.operators[mine]
        return [
            self._compressed.tensors[tensor].real(twin[tensor])
            for tensor in self._compressed.fed(one)
        ]

    def _made(self, yours: int) -> int:
        return self._original.graph.operators[yours].outputs[0]

    def _other_options(self, mine: int, yours: int) -> tuple[str, ...]:
        ours, theirs = self._compressed.options(mine), self._original.graph.options(yours)
        return tuple(
            name
            for name in ours.keys() & theirs.keys()
            if name in _GEOMETRY and ours[name] != theirs[name]
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
    """Return the layer that took most of the margin; the first where that is not known."""
    known = [one for one in beyond if one.margin_share is not None]
    if not known:
        return next(iter(beyond), None)
    most = max(known, key=lambda one: abs(one.margin_share or 0.0))
    return most if abs(most.margin_share or 0.0) >= _LEAST_SHARE else None


def _least_units(one: GraphOp, tensor: GraphTensor) -> float:
    """Return by how many units an operator's output may be off, whatever it was given."""
    if one.name in WEIGHTED:
        return _ROUNDING_UNITS
    return _TABLE_UNITS_OF_16_BITS if tensor.dtype == "int16" else _TABLE_UNITS


def _explained(one: GraphOp, tensor: GraphTensor, wanted: Real, noise: Real) -> Real:
    """Return how far quantization brings an operator's outputs, in real values."""
    most = _least_units(one, tensor) * _unit(tensor, wanted) + _SIGMAS * noise
    return np.broadcast_to(most, wanted.shape)


def _unit(tensor: GraphTensor, wanted: Real) -> float:
    """Return what a residual is counted in."""
    if tensor.scales:
        return max(tensor.scales)
    return _FLOAT_SHARE * float(np.abs(wanted).max(initial=0.0)) or 1.0


def _clipped(tensor: GraphTensor, real: Real) -> Real:
    """Return values brought into the range that a tensor can hold."""
    if not tensor.scales:
        return real
    limits = np.iinfo(tensor.dtype)
    low, high = (
        (limit - tensor.zero_points[0]) * tensor.scales[0] for limit in (limits.min, limits.max)
    )
    return np.clip(real, low, high)


def _as_real(tensor: GraphTensor) -> GraphTensor:
    """Return a tensor as it would be if it were not quantized."""
    return GraphTensor(
        tensor.index, tensor.name, tensor.shape, "float64", (), (), 0, constant=False
    )
