"""Find the layers in which twin and original differ by more than quantization explains.

Each operator of the original is given the inputs of the twin's operator, dequantized, so the errors
of earlier layers do not count. The difference of their outputs is the layer's own error.
Quantization explains a part of it: the rounding of the output, clipping to the output's range, and
the noise of rounded weights and inputs. Of a constant's error, it explains the rounding.

Of the layers with a larger error, the one that causes most of the margin's error is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from edgeflare.diagnose.activations_apart import (
    NOT_APART,
    activation_apart,
    activations_behind,
)
from edgeflare.diagnose.arm_probe import OpenProbe, State
from edgeflare.diagnose.coarse_quantization import CoarseSearch
from edgeflare.diagnose.compression_error import (
    LISTED,
    NO_COUNTERPART,
    UNJUDGED,
    CoarseLayer,
    CompressionError,
    CutOff,
    LayerCompressionError,
    LayerShare,
)
from edgeflare.diagnose.constant_error import compare_constants, with_excess
from edgeflare.diagnose.hidden_layers import where_unseen
from edgeflare.diagnose.layer_difference import LayerName, difference, distances, layer_name
from edgeflare.diagnose.layer_matching import MatchedBy, match_layers
from edgeflare.diagnose.margin_error import Altered, Layer, MarginError, ReadOutputs, margin_error
from edgeflare.diagnose.option_differences import option_differences
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.diagnose.output_stage import ModelReader
from edgeflare.diagnose.quantized_places import Observed, counterparts
from edgeflare.diagnose.rounding_noise import (
    SIGMAS,
    WEIGHTED,
    clipped,
    explained_error,
    output_variances,
    rounding_bound,
    rounds_unseen,
    unit_of,
)
from edgeflare.errors import UserError
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.non_finite_values import NonFiniteOnset, non_finite_onset
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor

_LEAST_SHARE = 0.05
"""Least share of the margin's error; a layer with less does not account for the deviation. Of 40
random faults, each in one layer, the smallest share was 0.08, and the third smallest 0.3."""


class CompressionLocalizer:
    """Finds the error of each layer. Models that it opens stay open for further inputs.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        content: the original's file.
        opens: opens models on the host; its second argument is true to capture tensors.
        reader: reads answers from the original's outputs.
        seeds: returns the observed values of the twin, and the original's input, on some seeds.

    """

    def __init__(
        self,
        compressed: Graph,
        original: Graph,
        content: bytes,
        opens: OpenProbe,
        reader: ModelReader,
        seeds: Callable[[], Sequence[tuple[State, Values]]] = list,
    ) -> None:
        self._compressed = compressed
        self._reader = reader
        self._original = OriginalLayers(original, content, opens)
        self._matched = match_layers(compressed, original)
        self._options = {
            op: option_differences(compressed, op, original, original_op)
            for op, (original_op, _) in self._matched.items()
        }
        self._apart = {
            op: activation_apart(compressed, op, original, original_op)
            for op, (original_op, _) in self._matched.items()
        }
        self._seeds = seeds
        standing_for = counterparts(compressed, original, self._pairs_matched)
        self._requantizing = {
            layer.index: standing_for[layer.outputs[0]][1]
            for layer in compressed.layers
            if layer.name == "QUANTIZE" and layer.outputs[0] in standing_for
        }
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
            return CompressionError(note=NO_COUNTERPART)
        pairs = self._pairs(twin)
        unseen = where_unseen(
            self._compressed,
            (self._compressed.operators[op] for op in self._matched if op not in pairs),
        )
        if not pairs:
            return CompressionError(note=unseen)
        try:
            seen = self._original.capture(original_input)
            read = partial(self._reader.answers, original_input)
            original = non_finite_onset(self._original.graph, seen)
            found = self._found(pairs, twin, seen, read, original)
            return replace(found, note="; ".join(filter(None, (found.note, unseen))))
        except (ProbeFailed, UserError) as failed:
            return CompressionError(note=f"the original's layers cannot be seen: {failed}")

    def _found(
        self,
        pairs: Mapping[int, int],
        twin: State,
        seen: State,
        read: ReadOutputs,
        original: NonFiniteOnset | None,
    ) -> CompressionError:
        """Find the error of each layer.

        One from which the twin alone is not finite is named before all others. Where the original
        is not finite, nothing of the compressed model is to blame.
        """
        wanted = self._outputs_on_twin_inputs(pairs, twin)
        variances = output_variances(
            self._compressed, self._original, pairs, lambda op: self._feeds(op, twin)
        )
        pairs = self._with_requantizing(pairs, twin)
        # What a QUANTIZE between layers puts out has to be what it is given.
        wanted |= {op: self._feeds(op, twin)[0] for op in pairs if op in self._requantizing}
        real = self._real(seen)
        noise = {op: self._noise(op, variances, wanted[op]) for op in pairs}
        layers = [
            self._layer_error(op, twin, real.get(self._made(original_op)), wanted[op], noise[op])
            for op, original_op in pairs.items()
        ]
        beyond = [layer for layer in layers if layer.beyond]
        margin, shares = self._margin(pairs, twin, real, read, wanted, noise, beyond)
        layers = [
            replace(layer, margin_share=shares.get(layer.layer.operator_index)) for layer in layers
        ]
        beyond = [layer for layer in layers if layer.beyond]
        most = self._most_to_blame(beyond, twin, original)
        coarse: tuple[CoarseLayer, ...] = ()
        spread: tuple[LayerShare, ...] | None = ()
        if most is None and original is None:
            observed = Observed(twin, real, wanted, read)
            coarse = self._coarse_search.find(
                observed, {layer.layer.operator_index for layer in beyond}
            )
            spread = () if coarse else self._spread(observed, pairs)
        return CompressionError(
            beyond[0].layer if beyond else None,
            most,
            margin,
            tuple(layers),
            self._unmatched,
            UNJUDGED if spread is None else "",
            coarse=coarse,
            spread=spread or (),
            input_cut_off=_cut_off(
                self._compressed.tensors[self._compressed.inputs[0]],
                real.get(self._original.graph.inputs[0]),
            ),
            seen=True,
            original=original,
            judged=spread is not None,
        )

    def _most_to_blame(
        self,
        beyond: Sequence[LayerCompressionError],
        twin: State,
        original: NonFiniteOnset | None,
    ) -> LayerName | None:
        """Return the layer with an error beyond what is explained that causes most; or None."""
        its = non_finite_onset(self._compressed, twin)
        if (
            its is not None
            and its.operator_index is not None
            and (original is None or original.kind != its.kind)
        ):
            return layer_name(self._compressed, self._compressed.operators[its.operator_index])
        if original is not None:
            return None
        largest = _most(beyond)
        return None if largest is None else largest.layer

    @property
    def _unmatched(self) -> tuple[LayerName, ...]:
        """The layers of the compressed model that the original has none like."""
        behind = activations_behind(self._compressed, self._original.graph, self._pairs_matched)
        return tuple(
            layer_name(self._compressed, layer)
            for layer in self._compressed.layers
            if layer.index not in self._matched and layer.index not in behind
            if layer.name not in ("QUANTIZE", "DEQUANTIZE")
        )

    def _noise(self, op: int, variances: Mapping[int, Real], wanted: Real) -> Real:
        """Return the standard deviation of an operator's outputs that rounding causes.

        It is infinite where the operator rounds unseen, so that constants alone count.
        """
        if rounds_unseen(self._compressed, self._compressed.operators[op]):
            return np.asarray(np.inf)
        known = np.sqrt(variances[op]) if op in variances else self._bound(op, wanted) / SIGMAS
        # What is not finite has no noise that could explain anything.
        return np.nan_to_num(known, nan=0.0, posinf=0.0)

    def _bound(self, op: int, wanted: Real) -> Real:
        """Return what rounded constants explain of the outputs of an operator without weights."""
        if op not in self._matched or self._compressed.operators[op].name in WEIGHTED:
            return np.zeros(())
        return rounding_bound(
            self._compressed, op, self._original.graph, self._matched[op][0], wanted
        )

    def _spread(
        self, observed: Observed, pairs: Mapping[int, int]
    ) -> tuple[LayerShare, ...] | None:
        """Return the layers with the largest shares of the margin's error; None: none is known."""
        values = self._compressed_values(pairs, observed.twin)
        outputs = {
            op: (
                self._without_error(op, original_op, observed, values),
                (original_op, self._among(values, op, original_op, observed.twin)),
            )
            for op, original_op in pairs.items()
        }
        found = self._effects(observed, outputs, values)
        if found is None or not found.reached:
            return None
        shares = found.shares
        largest = sorted(shares, key=lambda op: -shares[op])[:LISTED]
        layers = (
            (op, layer_name(self._compressed, self._compressed.operators[op])) for op in largest
        )
        return tuple(
            LayerShare(layer.operator_index, layer.name, layer.tensor, shares[op])
            for op, layer in layers
            if shares[op] > 0
        )

    def _without_error(
        self, op: int, original_op: int, observed: Observed, values: Mapping[int, Real]
    ) -> Altered:
        """Return a layer's output without the error of that layer.

        If the layer is given what the compressed model's layers before put out, the original makes
        it by itself from behind the layer before, whose own output leads there as well.
        """
        fed = self._original.graph.fed(self._original.graph.operators[original_op])
        before = self._original.before(original_op)
        made = self._original.made(before)
        same = (
            made in values
            and op in self._matched
            and all(
                tensor in values and np.array_equal(values[tensor], given)
                for tensor, given in zip(fed, self._feeds(op, observed.twin), strict=False)
            )
        )
        return (before, values[made]) if same else (original_op, observed.wanted[op])

    def _among(self, values: Mapping[int, Real], op: int, original_op: int, twin: State) -> Real:
        """Return a layer's output; the array in `values` if that is equal, so that it runs once."""
        output, known = self._output(op, twin), values[self._made(original_op)]
        return known if np.array_equal(output, known) else output

    @property
    def _pairs_matched(self) -> dict[int, int]:
        return {op: original_op for op, (original_op, _) in self._matched.items()}

    @cached_property
    def _coarse_search(self) -> CoarseSearch:
        seen = (self._observed(*seed) for seed in self._seeds() if self._pairs(seed[0]))
        return CoarseSearch(
            self._compressed,
            self._original,
            self._pairs_matched,
            self._effects,
            [layer for layer in seen if layer is not None],
        )

    def _observed(self, twin: State, original_input: Values) -> Observed | None:
        """Return what is observed on an input; None where the original crashes on it."""
        try:
            return Observed(
                twin,
                self._real(self._original.capture(original_input)),
                self._outputs_on_twin_inputs(self._pairs(twin), twin),
                partial(self._reader.answers, original_input),
            )
        except (ProbeFailed, UserError):
            return None

    def _effects(
        self,
        observed: Observed,
        outputs: Mapping[Layer, Sequence[Altered]],
        values: Mapping[int, Real] | None = None,
    ) -> MarginError[Layer] | None:
        """Return what alternative outputs do to the margin; None where that is not known.

        Args:
            observed: on the input.
            outputs: see `margin_error`.
            values: those of the compressed model, by the original's tensor; None to take them from
                what was observed.

        """
        if values is None:
            pairs = self._with_requantizing(self._pairs(observed.twin), observed.twin)
            values = self._compressed_values(pairs, observed.twin)
        try:
            return margin_error(self._original, observed.read, values, observed.original, outputs)
        except (ProbeFailed, UserError):
            return None

    def _pairs(self, twin: State) -> dict[int, int]:
        """Return the original's operators, by the compressed model's that the twin shows."""
        return {
            op: original_op
            for op, original_op in self._pairs_matched.items()
            if self._seen(self._compressed.operators[op], twin)
            and not self._original.unreadable(original_op)
        }

    def _with_requantizing(self, pairs: Mapping[int, int], twin: State) -> dict[int, int]:
        """Add each QUANTIZE that the twin shows, and the operator whose values it hands on."""
        added = {
            op: behind
            for op, behind in self._requantizing.items()
            if self._seen(self._compressed.operators[op], twin)
        }
        return dict(sorted({**pairs, **added}.items()))

    def _compressed_values(self, pairs: Mapping[int, int], twin: State) -> dict[int, Real]:
        """Return the outputs of the compressed model's layers, by the original's tensor."""
        values = {}
        for op, original_op in pairs.items():
            values[self._made(original_op)] = self._output(op, twin)
        return values

    def _output(self, op: int, twin: State) -> Real:
        tensor = self._compressed.tensors[self._compressed.operators[op].outputs[0]]
        return self._apart.get(op, NOT_APART).of_compressed(tensor.real(twin[tensor.index]))

    def _layer_error(
        self,
        op: int,
        twin: State,
        captured: Real | None,
        wanted: Real,
        noise: Real,
    ) -> LayerCompressionError:
        one = self._compressed.operators[op]
        by: MatchedBy = "conversion" if op in self._requantizing else self._matched[op][1]
        tensor = self._compressed.tensors[one.outputs[0]]
        got = self._output(op, twin)
        if captured is not None:
            captured = self._apart.get(op, NOT_APART).of_original(captured)
        unit = unit_of(tensor, wanted)
        residual = distances(self._reachable(op, wanted), got) / unit
        explained = explained_error(one, tensor, wanted, noise) / unit
        largest, most = _farthest_beyond(residual, explained)
        total = None
        if captured is not None and captured.shape == got.shape:
            total = difference(_as_real(tensor), captured, got)
        return LayerCompressionError(
            layer_name(self._compressed, one),
            by,
            total,
            largest,
            most,
            self._constants.get(op),
            self._options.get(op, ()),
            cut_off=_cut_off(tensor, captured),
        )

    def _margin(
        self,
        pairs: Mapping[int, int],
        twin: State,
        known: Mapping[int, Real],
        read: ReadOutputs,
        wanted: Mapping[int, Real],
        noise: Mapping[int, Real],
        beyond: Sequence[LayerCompressionError],
    ) -> tuple[float | None, Mapping[int, float]]:
        """Return the margin's error, and the shares in it of what quantization does not explain.

        It is computed from the outputs, and from the constants, whose errors may be smaller than
        the noise of outputs and still all go in one direction. Of a layer's two shares, the larger
        one counts, and one that causes the error before one that makes it smaller.
        """
        if not beyond:
            return None, {}
        asked = [layer.layer.operator_index for layer in beyond]
        compressed_values = self._compressed_values(pairs, twin)
        outputs = {
            op: self._without_excess(op, self._output(op, twin), wanted[op], noise[op])
            for op in asked
        }
        try:
            constants = self._with_wrong_constants(pairs, twin, beyond)
            by_outputs, by_constants = (
                margin_error(
                    self._original,
                    read,
                    compressed_values,
                    known,
                    {op: [(pairs[op], values) for values in both] for op, both in asked_of.items()},
                )
                for asked_of in (outputs, {**outputs, **constants})
            )
        except (ProbeFailed, UserError):
            return None, {}
        if by_outputs is None or by_constants is None:
            return None, {}
        both_shares = (by_outputs.shares, by_constants.shares)
        by_layer = {op: [of[op] for of in both_shares if op in of] for op in asked}
        larger = {op: max(of) if max(of) > 0 else min(of) for op, of in by_layer.items() if of}
        return by_outputs.size, larger

    def _without_excess(self, op: int, got: Real, wanted: Real, noise: Real) -> tuple[Real, Real]:
        """Return an output with its error cut to what quantization explains, and as it is."""
        one = self._compressed.operators[op]
        tensor = self._compressed.tensors[one.outputs[0]]
        wanted = self._reachable(op, wanted)
        most = explained_error(one, tensor, wanted, noise)
        with np.errstate(invalid="ignore"):
            off = np.nan_to_num(got - wanted, nan=0.0)
        return wanted + np.clip(off, -most, most), got

    def _reachable(self, op: int, wanted: Real) -> Real:
        """Return what an operator's output would be if it were not rounded.

        It is clipped to the range of the output, unless another activation decides on that.
        """
        if any(
            option_difference.name == "fused_activation_function"
            for option_difference in self._options.get(op, ())
        ):
            return wanted
        tensor = self._compressed.tensors[self._compressed.operators[op].outputs[0]]
        return clipped(tensor, wanted)

    def _with_wrong_constants(
        self, pairs: Mapping[int, int], twin: State, beyond: Sequence[LayerCompressionError]
    ) -> dict[int, tuple[Real, Real]]:
        """Return the outputs of layers with the original's constants, and with wrong ones."""
        changed = [
            layer.layer.operator_index
            for layer in beyond
            if layer.constants is not None and layer.constants.beyond
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
        return {
            op: self._apart[op].of_original(outputs[self._made(original_op)])
            for op, original_op in pairs.items()
        }

    def _seen(self, operator: GraphOp, twin: State) -> bool:
        return all(
            tensor in twin for tensor in (*self._compressed.fed(operator), *operator.outputs)
        )

    def _feeds(self, op: int, twin: State) -> list[Real]:
        """Return the real values of the inputs of the twin's operator."""
        one = self._compressed.operators[op]
        return [
            self._compressed.tensors[tensor].real(twin[tensor])
            for tensor in self._compressed.fed(one)
        ]

    def _made(self, original_op: int) -> int:
        return self._original.made(original_op)

    def _real(self, seen: State) -> dict[int, Real]:
        """Return the real values of the original's tensors."""
        tensors = self._original.graph.tensors
        return {tensor: tensors[tensor].real(values) for tensor, values in seen.items()}


def _most(beyond: Sequence[LayerCompressionError]) -> LayerCompressionError | None:
    """Return the layer that causes most of the margin's error; the first if no share is known.

    A layer whose share is negative makes the margin's error smaller, so it is not the cause.
    """
    known = [(layer.margin_share, layer) for layer in beyond if layer.margin_share is not None]
    if not known:
        return next(iter(beyond), None)
    share, most = max(known, key=lambda pair: pair[0])
    return most if share >= _LEAST_SHARE else None


def _farthest_beyond(residual: Real, explained: Real) -> tuple[float, float]:
    """Return the residual that exceeds by most what is explained, and that; zeros of no values."""
    if not residual.size:
        return 0.0, 0.0
    known = np.isfinite(explained).all()
    worst = int((residual - explained if known else residual).argmax())
    return float(residual.flat[worst]), float(explained.flat[worst])


def _cut_off(tensor: GraphTensor, original: Real | None) -> CutOff | None:
    known = range_of(tensor)
    return None if known is None or original is None else CutOff(*known.beyond(original))


def _as_real(tensor: GraphTensor) -> GraphTensor:
    """Return the tensor without its quantization."""
    return GraphTensor(
        tensor.index, tensor.name, tensor.shape, "float64", (), (), 0, constant=False
    )
