"""Figures of a layer over many inputs, as tools for quantization define them.

Of one input the cosine, the mean squared error and the signal-to-noise ratio are those of
litert-quantizer's `validation_utils`. Over inputs, cosines are averaged, and squares are summed up
before a root or a quotient is taken, so that the SQNR is that of all inputs together. What could
not be seen of an input is noted beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.layer_difference import LayerName, cosine, decibels, distances
from edgeflare.diagnose.layer_matching import MatchedBy
from edgeflare.models.quantized_range import QuantizedRange
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import shortened
from edgeflare.record.json_types import Amount, Count, Share

Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayerError:
    """How far a layer's output is off, over many inputs.

    Attributes:
        inputs: how many inputs it was seen on with both sides finite.
        not_finite: how many inputs gave NaN or infinity on one side alone; no other figure counts
            them.
        cosine: mean over the inputs of the cosine of the two outputs as vectors; null without
            inputs.
        snr_db: signal to quantization noise in decibels; null where nothing is off.
        rmse: root of the mean squared error, in real values.
        max_error: the largest error of a value.
        max_error_steps: the largest error in steps of the compressed model's output; null where it
            has none.
        not_finite_here: how many of these gave it on the side that is judged, and not on the one
            that it is held against.

    """

    inputs: Count
    not_finite: Count
    cosine: Annotated[float, msgspec.Meta(ge=-1, le=1)] | None
    snr_db: float | None
    rmse: Amount
    max_error: Amount
    max_error_steps: Amount | None
    not_finite_here: Count = 0

    @property
    def off(self) -> bool:
        """Whether the two outputs are not the same everywhere."""
        return bool(self.max_error or self.not_finite)


class ErrorSums:
    """The error of a layer, input by input.

    Args:
        step: step of the compressed model's output in real values; None where it is not quantized,
            or each channel has its own.

    """

    def __init__(self, step: float | None = None) -> None:
        self._step = step
        self._inputs = self._not_finite = self._not_finite_here = self._values = 0
        self._cosines = self._squares = self._signal = self._largest = 0.0

    def add(self, wanted: Real, got: Real) -> None:
        """Count an input.

        Args:
            wanted: real values of the output as it should be.
            got: likewise as it is, in the same shape.

        """
        apart = distances(wanted, got)
        lost = np.isinf(apart)
        if lost.any():
            self._not_finite += 1
            here = np.isfinite(wanted) & ~np.isfinite(got) | np.isnan(got)
            self._not_finite_here += bool((lost & here).any())
            return
        finite = np.isfinite(wanted)
        wanted, got, apart = wanted[finite], got[finite], apart[finite]
        self._inputs += 1
        self._values += wanted.size
        self._cosines += cosine(wanted, got) if apart.any() else 1.0
        self._squares += float(np.square(apart).sum())
        self._signal += float(np.square(wanted).sum())
        self._largest = max(self._largest, float(apart.max(initial=0.0)))

    def figures(self) -> LayerError | None:
        """Return what was counted; None where no input was."""
        if not (self._inputs or self._not_finite):
            return None
        return LayerError(
            self._inputs,
            self._not_finite,
            self._cosines / self._inputs if self._inputs else None,
            decibels(self._signal, self._squares),
            sqrt(self._squares / self._values) if self._values else 0.0,
            self._largest,
            self._largest / self._step if self._step else None,
            self._not_finite_here,
        )


def error_sums(graph: Graph) -> dict[int, ErrorSums]:
    """Return sums of what each layer of a compressed model puts out first, with nothing counted."""
    sums = {}
    for layer in graph.layers:
        scales = graph.tensors[layer.outputs[0]].scales if layer.outputs else ()
        sums[layer.index] = ErrorSums(scales[0] if len(scales) == 1 else None)
    return sums


@dataclass(frozen=True, slots=True)
class RangeUse:
    """How the range of a layer's output goes with what the original puts out.

    Attributes:
        low: the least value of the range.
        high: the largest value of the range.
        below: share of the original's values that lie below the range by more than a step.
        above: share of the original's values that lie above the range by more than a step.
        used: share of the range between the least and the largest value of the original.

    """

    low: float
    high: float
    below: Share
    above: Share
    used: Share


class RangeSums:
    """The values of the original in a layer's range, input by input.

    Args:
        known: the range of the compressed model's output.

    """

    def __init__(self, known: QuantizedRange) -> None:
        self._known = known
        self._values = self._below = self._above = 0
        self._least, self._most = np.inf, -np.inf

    def add(self, wanted: Real) -> None:
        """Count the original's output on an input; what is not finite counts as nothing."""
        values = wanted[np.isfinite(wanted)]
        if not values.size:
            return
        known = self._known
        self._values += values.size
        self._below += int((values < known.low - known.step).sum())
        self._above += int((values > known.high + known.step).sum())
        self._least = min(self._least, float(values.min()))
        self._most = max(self._most, float(values.max()))

    def figures(self) -> RangeUse | None:
        """Return what was counted; None where nothing was."""
        if not self._values:
            return None
        known = self._known
        least, most = np.clip([self._least, self._most], known.low, known.high).tolist()
        return RangeUse(
            known.low,
            known.high,
            self._below / self._values,
            self._above / self._values,
            (most - least) / (known.high - known.low),
        )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What a layer alone does to the original's decisions, if it is computed as the twin does.

    Attributes:
        inputs: how many inputs it was measured on.
        margin: mean over them of by how much the decision's margin changes, in scores; of values,
            of the distance.
        standard_error: the standard error of that mean; null of one input.
        changed: how many of these inputs have their decision changed.

    """

    inputs: Count
    margin: Amount
    standard_error: Amount | None
    changed: Count

    @property
    def half_width(self) -> float:
        """Half of what the 95 % interval of the mean spans; infinite of one input."""
        return inf if self.standard_error is None else _student(self.inputs) * self.standard_error


_STUDENT: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""The 97.5 % quantiles of Student's distribution with 1 to 20 degrees of freedom."""

_NORMAL: Final = 1.96


def _student(inputs: int) -> float:
    """Return the standard errors to each side of a mean of two inputs or more."""
    degrees = inputs - 1
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * degrees)  # Abramowitz and Stegun, 26.7.5


@dataclass(frozen=True, slots=True)
class LayerConstants:
    """How far the constants of a layer are off from the original's, whatever the input.

    Attributes:
        steps: the largest error of weights or bias in steps of its own; null where the compressed
            model's alone are not finite.
        explained: how large an error rounding explains, in the same steps.
        overflows: whether the type of the constant cannot hold the original's value, so that it
            wrapped around or was cut off.
        pruned: whether all that is off are values that are 0 now and were the smallest, as after
            pruning by magnitude.

    """

    steps: Amount | None
    explained: Amount
    overflows: bool
    pruned: bool = False

    @property
    def beyond(self) -> bool:
        """Whether they are off by more than rounding explains."""
        return self.steps is None or self.steps > self.explained


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFigures:
    """What is known of a layer of the compressed model.

    Attributes:
        layer: the name of the layer.
        original_index: position of the original's operator that it was made from; null where that
            is not known.
        matched_by: what told which operator of the original that is; null where none is known.
        constants: how far its constants are off; null where none can be compared.
        entire: original against twin, with the errors of the layers before.
        single: original against twin, each operator by itself and given the same: the original's
            values, rounded as the twin's operator reads them.
        range: how its range goes with the original's values; null where it has none.
        sensitivity: what it does to the margin by itself; null where that was not measured.
        device_entire: twin against device, with the differences of the layers before; null without
            a device that captures.
        device_single: twin against device, given the same.

    """

    layer: LayerName
    original_index: Count | None = None
    matched_by: MatchedBy | None = None
    constants: LayerConstants | None = None
    entire: LayerError | None = None
    single: LayerError | None = None
    range: RangeUse | None = None
    sensitivity: Sensitivity | None = None
    device_entire: LayerError | None = None
    device_single: LayerError | None = None


_MOST_NAMED: Final = 3
"""Layers that are named in a sentence."""

_LONGEST: Final = 200
"""Characters of a note: runtimes say again what they said of earlier inputs."""


class ComparisonNotes:
    """Notes on what could not be seen, one for each reason, with the inputs that it held for."""

    def __init__(self) -> None:
        """Begin without any."""
        self._said: dict[str, str] = {}
        self._inputs: dict[str, int] = {}

    def add(self, reason: str, said: str) -> None:
        """Note what could not be seen.

        Args:
            reason: tells it from others; of one reason the first note is kept.
            said: a sentence without its full stop.

        """
        self._said.setdefault(reason, shortened(said, _LONGEST))
        self._inputs[reason] = self._inputs.get(reason, 0) + 1

    def lines(self) -> list[str]:
        """Return each note, with how often it was made where that was more than once."""
        return [
            f"{said} ({self._inputs[reason]} times)" if self._inputs[reason] > 1 else said
            for reason, said in self._said.items()
        ]


def listed(names: Iterable[str]) -> str:
    """Return names in a row, of many the first."""
    given = list(names)
    more = len(given) - _MOST_NAMED
    return ", ".join(given[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
