"""The layers whose quantization is far from the best one that has as many bits.

At each place the original's values are quantized as the file does it and better, from the values
that the compressed model has before it. The original's later layers turn both into an error of the
margin. The coarse layers are the fewest, taken greedily, whose better quantization takes away half
of the error that the compressed model has. Errors are means of absolute ones over the input and
some seeds: on a single input any rounding may happen to be the largest, and no single one decides.
Only places that matter on the seeds are looked into on each input.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgeflare.diagnose.arm_probe import State
from edgeflare.diagnose.compression_error import CoarseLayer, Kind, coarse_layer
from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.margin_error import Altered, MarginError
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.diagnose.quantized_places import (
    BetterQuantization,
    Observed,
    QuantizedPlace,
    channel_maxima,
    cuts_off,
    most_steps,
    quantiles,
    quantized_places,
    stored_weights,
)
from edgeflare.diagnose.tensor_ties import joined_by
from edgeflare.models.quantized_range import QuantizedRange, range_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import significant

_HALF = 0.5
"""Share of the margin's error that the coarse layers together have to take away."""

_TENTH = 0.1
"""Share of the margin's error that each of them has to take away."""

_FAR = {"weights": 1.5, "output": 2.0}
"""Times as large as with the better quantization the error of the margin is that a coarse layer
causes. Ranges are taken from few values, and those of healthy files may be half as wide again."""

_ENOUGH = 8
"""Seeds that show what values occur. With fewer, only values that are cut off tell something: the
largest values need not be among those that were seen, and one rounding may be the largest."""

Effects = Callable[
    [Observed, Mapping[QuantizedPlace, Sequence[Altered]]], MarginError[QuantizedPlace] | None
]
"""Returns what alternative outputs do to the margin; see `margin_error`."""


@dataclass(frozen=True, slots=True)
class _Effect:
    """The error of the margin on one input, and how much of it places cause.

    Attributes:
        size: the error.
        caused: the part that the quantization of each place causes, by place.
        taken: the part that its better quantization takes away, by place.

    """

    size: float
    caused: Mapping[QuantizedPlace, float]
    taken: Mapping[QuantizedPlace, float]


@dataclass(frozen=True, slots=True)
class _Judged:
    """What some inputs show.

    Attributes:
        values: quantiles of the exact values at each activation, by place.
        better: the places with a better quantization that may matter.
        effects: what these do, for each of the inputs where the error of the margin is known.

    """

    values: Mapping[QuantizedPlace, Real]
    better: BetterQuantization
    effects: tuple[_Effect, ...]


class CoarseSearch:
    """Searches a compressed model for layers that are quantized coarsely."""

    def __init__(
        self,
        compressed: Graph,
        original: OriginalLayers,
        matched: Mapping[int, int],
        effects: Effects,
        seeds: Sequence[Observed],
    ) -> None:
        """Learn from seeds which values occur, and where better quantizations would matter.

        Args:
            compressed: the graph of the compressed model.
            original: runs the original's layers.
            matched: position of the original's operator, by that of the compressed model's.
            effects: says how much of the margin's error errors of outputs cause.
            seeds: what was observed on some.

        """
        self._compressed, self._original, self._effects = compressed, original, effects
        self._places = tuple(quantized_places(compressed, original.graph, matched))
        self._few_seeds = seeds if len(seeds) < _ENOUGH else ()
        self._on_seeds = self._judged(seeds) if len(seeds) >= _ENOUGH else None

    def find(self, observed: Observed, faulty: Collection[int]) -> tuple[CoarseLayer, ...]:
        """Return the coarse layers, in the order of their shares, largest first.

        Args:
            observed: on the input.
            faulty: operators with errors that no quantization explains; none of them is coarse.

        """
        judged = self._on_seeds or self._judged([*self._few_seeds, observed])
        places = [
            candidate for candidate in judged.better.places if candidate.operator not in faulty
        ]
        own = self._effect(observed, judged.better) if places else None
        if own is None:
            return ()
        effects = [*judged.effects, own] if judged is self._on_seeds else judged.effects
        kinds = _CoarseKinds(self._compressed, self._original.graph, judged.values)
        merged: dict[int, CoarseLayer] = {}
        for place, share in _fewest(effects, places):
            if place.operator not in merged:
                name, (kind, why) = place.name(self._compressed), kinds.of(place, observed.twin)
                merged[place.operator] = coarse_layer(name, place.part, kind, why, share)
        return tuple(merged.values())

    def _judged(self, inputs: Sequence[Observed]) -> _Judged:
        values = {
            place: np.concatenate(known)
            for place in self._places
            if place.part == "output"
            and (
                known := [
                    quantiles(exact)
                    for input_ in inputs
                    if (exact := input_.exact(place, self._compressed)) is not None
                ]
            )
        }
        better = BetterQuantization(
            self._compressed,
            self._original,
            values,
            [place for place in self._places if place.part == "weights"],
            few=len(inputs) < _ENOUGH,
        )
        if not better.places:
            return _Judged(values, better, ())
        known_effects = (self._effect(input_, better) for input_ in inputs)
        effects = tuple(effect for effect in known_effects if effect is not None)
        better.keep(_that_matter(effects))
        return _Judged(values, better, effects)

    def _effect(self, observed: Observed, better: BetterQuantization) -> _Effect | None:
        """Return what the places with a better quantization do on an input; None if not known."""
        found = self._effects(
            observed,
            {
                place: [(place.behind, values) for values in (of.exact, of.better, of.file)]
                for place, of in better.on(observed).items()
            },
        )
        if found is None:
            return None
        return _Effect(
            found.size,
            {place: file - exact for place, (exact, _, file) in found.reached.items()},
            {place: file - best for place, (_, best, file) in found.reached.items()},
        )


def _fewest(
    effects: Sequence[_Effect], places: Collection[QuantizedPlace]
) -> list[tuple[QuantizedPlace, float]]:
    """Return the fewest places that half of the error is due to, each with its share of it."""
    left = np.array([effect.size for effect in effects])
    size = _mean(left)
    chosen: list[tuple[QuantizedPlace, float]] = []
    taken = {place: _of_place(effects, "taken", place) for place in places}
    waiting = [place for place in places if _far(effects, place)]
    while size and waiting and _mean(left) > (1 - _HALF) * size:
        best = min(waiting, key=lambda place: _mean(left - taken[place]))
        share = (_mean(left) - _mean(left - taken[best])) / size
        if share < _TENTH:
            return []
        chosen.append((best, share))
        left = left - taken[best]
        waiting.remove(best)
    return chosen if _mean(left) <= (1 - _HALF) * size else []


def _that_matter(effects: Sequence[_Effect]) -> list[QuantizedPlace]:
    """Return the places that are far from the best, and change the error enough to be chosen."""
    least = _TENTH * _mean(np.array([effect.size for effect in effects])) if effects else 0.0
    places = dict.fromkeys(place for effect in effects for place in effect.taken)
    return [
        place
        for place in places
        if _far(effects, place) and _mean(_of_place(effects, "taken", place)) >= least
    ]


def _far(effects: Sequence[_Effect], place: QuantizedPlace) -> bool:
    caused, taken = (_of_place(effects, "caused", place), _of_place(effects, "taken", place))
    return _mean(caused) >= _FAR[place.part] * _mean(caused - taken)


def _of_place(
    effects: Sequence[_Effect], which: Literal["caused", "taken"], place: QuantizedPlace
) -> Real:
    """Return what a place does on all inputs, nothing where it was not looked into."""
    return np.array([getattr(effect, which).get(place, 0.0) for effect in effects])


def _mean(errors: Real) -> float:
    return float(np.abs(errors).mean())


@dataclass(frozen=True, slots=True)
class _CoarseKinds:
    """Tells kinds apart.

    Attributes:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        values: exact values that occur at each activation, or their quantiles, by place.

    """

    compressed: Graph
    original: Graph
    values: Mapping[QuantizedPlace, Real]

    def of(self, place: QuantizedPlace, twin: State) -> tuple[Kind, str]:
        """Return the kind, and a sentence with figures without its full stop.

        Args:
            place: one that is quantized coarsely.
            twin: the observed values of the compressed model on an input.

        """
        return self._of_weights(place) if place.part == "weights" else self._of_output(place, twin)

    def _of_weights(self, place: QuantizedPlace) -> tuple[Kind, str]:
        tensor, file, real, axis = stored_weights(self.compressed, self.original, place)
        maxima, held = (channel_maxima(values, axis).ravel() for values in (real, file))
        step = max(tensor.scales)
        if bool((maxima > held + 1.5 * step).any()):
            worst = int((maxima - held).argmax())
            return (
                "saturated",
                f"its weights are cut off, {significant(maxima[worst])} to"
                f" {significant(held[worst])}",
            )
        needed = float(maxima.max()) / most_steps(tensor)
        if len(tensor.scales) > 1 or step >= 2 * needed:
            times = f"{significant(step / needed)} times as large as they need be"
            return "range-too-wide", f"the steps of its weights are {times}"
        used = maxima[maxima > 0]
        return (
            "one-scale-for-unlike-channels",
            "its weights have one scale, and the largest weight of a channel is"
            f" {significant(used.min(), 2)} to {significant(used.max(), 2)}",
        )

    def _of_output(self, place: QuantizedPlace, twin: State) -> tuple[Kind, str]:
        known = range_of(self.compressed.tensors[place.tensor])
        assert known is not None  # noqa: S101 - of places, those without one are left out
        values = self.values[place]
        low, high = float(values.min()), float(values.max())
        ranges = (
            f"its range is {significant(known.low)} to {significant(known.high)}, the values"
            f" {significant(low)} to {significant(high)}"
        )
        if cuts_off(known, values):
            below, above = known.beyond(values)
            return "saturated", f"{ranges}; {100 * (below + above):.3g}% of them are cut off"
        levels = max(1, round((high - low) / known.step)) + 1
        few = f"{ranges}, which leaves {levels} levels"
        if shared := self._shared(place, known, twin):
            return "one-scale-for-unlike-things", f"{shared}; {few}"
        return "range-too-wide", few

    def _shared(self, place: QuantizedPlace, known: QuantizedRange, twin: State) -> str | None:
        """Say what makes a place share a scale that something else needs; None where nothing."""
        graph = self.compressed
        wide = (known.high - known.low) / 2
        for joins in joined_by(graph, place.tensor):
            values = twin.get(joins.outputs[0])
            if values is not None and np.ptp(graph.tensors[joins.outputs[0]].real(values)) > wide:
                return f"{layer_name(graph, joins)} asks for one scale for all that it joins"
        for other, values in self.values.items():
            alike = other != place and range_of(graph.tensors[other.tensor]) == known
            if alike and np.ptp(values) > wide:
                return f"it has the scale of {other.name(graph)}"
        return None
