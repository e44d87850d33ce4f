"""In which way a place is quantized coarsely, and the figures that show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edgeflare.diagnose.better_quantization import (
    channel_maxima,
    cuts_off,
    most_steps,
    stored_weights,
)
from edgeflare.diagnose.compression_error import Kind
from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.original_layers import Real
from edgeflare.diagnose.probed_arm import State
from edgeflare.diagnose.quantized_places import QuantizedPlace
from edgeflare.diagnose.tied_tensors import joined_by
from edgeflare.models.quantized_range import QuantizedRange, range_of
from edgeflare.models.tflite_graph import Graph


@dataclass(frozen=True, slots=True)
class CoarseKinds:
    """Tells kinds apart.

    Attributes:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        values: of activations, by place: the exact values that occur there, or their quantiles.

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
        maxima, held = (channel_maxima(one, axis).ravel() for one in (real, file))
        step = max(tensor.scales)
        if bool((maxima > held + 1.5 * step).any()):
            worst = int((maxima - held).argmax())
            return (
                "saturated",
                f"its weights are cut off, {maxima[worst]:.3g} to {held[worst]:.3g}",
            )
        needed = float(maxima.max()) / most_steps(tensor)
        if len(tensor.scales) > 1 or step >= 2 * needed:
            times = f"{step / needed:.3g} times as large as they need be"
            return "range too wide", f"the steps of its weights are {times}"
        used = maxima[maxima > 0]
        return (
            "one scale for unlike channels",
            "its weights have one scale, and the largest weight of a channel is"
            f" {used.min():.2g} to {used.max():.2g}",
        )

    def _of_output(self, place: QuantizedPlace, twin: State) -> tuple[Kind, str]:
        known = range_of(self.compressed.tensors[place.tensor])
        assert known is not None  # noqa: S101 - of places, those without one are left out
        values = self.values[place]
        low, high = float(values.min()), float(values.max())
        ranges = (
            f"its range is {known.low:.3g} to {known.high:.3g}, the values {low:.3g} to {high:.3g}"
        )
        if cuts_off(known, values):
            below, above = known.beyond(values)
            return "saturated", f"{ranges}; {100 * (below + above):.3g}% of them are cut off"
        levels = max(1, round((high - low) / known.step)) + 1
        few = f"{ranges}, which leaves {levels} levels"
        if shared := self._shared(place, known, twin):
            return "one scale for unlike things", f"{shared}; {few}"
        return "range too wide", few

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
