"""The answers of all arms to one model, measured: how far from the exact ones, on which side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailureKind
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.verdict.kernel_judgement import Unit
from edgeflare.conform.verdict.right_values import RightValues, same_bits

DEVICE, TWIN = "device", "xnnpack"
"""Names of arms: what is judged, and the host's default kernels."""

_NEARLY_WRONG = 0.8
"""Share of the allowed error above which a value is nearly wrong; sound kernels of 8 bits mostly
stay within .75 of a step."""

_ENOUGH = 1000
"""Values whose mean is taken as it is."""

_DEVIATIONS = 4.0
"""Standard errors by which the mean of fewer values has to exceed the limit. One value a step
above and one a step below are counted in: few values that agree by chance prove little. So
truncation is seen in 40 values or more."""

_VAGUE = 0.1
"""Steps of slack from which a value says nothing of rounding."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """The errors of the device and of the kernel sets of the host that answered.

    Attributes:
        ruler: what they are measured by.
        outputs: the answers, by the arms' names.
        device: errors of the device.
        hosts: errors of the kernel sets, by their names.
        lost: kernel sets that crashed, hung or answered in another shape, and which.
        same: where the twin answers as the device does, to the bit, (values); nowhere if it
            does not answer.

    """

    ruler: Ruler
    outputs: Mapping[str, tuple[Values, ...]]
    device: ArmErrors
    hosts: Mapping[str, ArmErrors]
    lost: Mapping[str, RunFailureKind]
    same: NDArray[np.bool_]

    @classmethod
    def of(cls, ruler: Ruler, answers: Mapping[str, ModelAnswer]) -> ArmComparison:
        """Measure the answers of "device" and of kernel sets of the host."""
        outputs = {
            name: answer.outputs for name, answer in answers.items() if answer.failure is None
        }
        errors = {name: ruler.measured(output) for name, output in outputs.items()}
        lost: dict[str, RunFailureKind] = {
            name: answer.failure.kind
            for name, answer in answers.items()
            if answer.failure is not None and answer.failure.kind in ("crash", "hang", "misshapen")
        }
        same = np.zeros(ruler.judged.shape, np.bool_)
        if TWIN in outputs:
            same = ruler.same(outputs[DEVICE], outputs[TWIN])
        device = errors.pop(DEVICE)
        return cls(ruler, outputs, device, errors, lost, same)

    def is_wrong(self, arm: ArmErrors) -> bool:
        """Whether an arm is wrong where it counts."""
        return arm.mean != 0 or bool((arm.wrong & self.ruler.judged).any())

    @property
    def is_doubtful(self) -> bool:
        """Whether the device is right, but only just where the twin gives another answer.

        A fault of one step is within what is allowed where the exact answer is a whole step.
        """
        near = self.device.offences > _NEARLY_WRONG
        return bool((near & self.ruler.judged & ~self.same).any())

    @property
    def right(self) -> tuple[str, ...]:
        """The kernel sets of the host that are right."""
        return tuple(name for name, host in self.hosts.items() if not self.is_wrong(host))

    @property
    def wrong(self) -> tuple[str, ...]:
        """The kernel sets of the host that are wrong."""
        return tuple(name for name, host in self.hosts.items() if self.is_wrong(host))


@dataclass(frozen=True, slots=True)
class ArmErrors:
    """The errors of one arm. Values of all results lie one behind the other, (values).

    Attributes:
        errors: error of each value, in the unit of its result.
        offences: likewise, by what is allowed: above 1 a value is wrong.
        mean: the largest mean error of a result in steps that is a bias, else 0.

    """

    errors: NDArray[np.float64]
    offences: NDArray[np.float64]
    mean: float

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """The values that are wrong, those that are judged apart included."""
        return self.offences > 1


@dataclass(frozen=True, slots=True)
class Ruler:
    """What answers are measured by.

    Attributes:
        results: what is right for each result.
        judged: the values that count, (values); the others are judged apart.
        limits: limits of the mean error of each result; None where it says nothing.

    """

    results: tuple[RightValues, ...]
    judged: NDArray[np.bool_]
    limits: tuple[MeanLimits | None, ...]

    @classmethod
    def of(cls, results: Sequence[RightValues], usual: NDArray[np.bool_]) -> Ruler:
        """Return what the answers to a model are measured by.

        Args:
            results: what is right for each.
            usual: the rows whose operands are usual numbers, (rows).

        """
        counted = [
            right.finite & usual.reshape(-1, *[1] * len(right.value.shape)) for right in results
        ]
        limits = [
            MeanLimits.of(right, some) if right.exact.kind == "steps" else None
            for right, some in zip(results, counted, strict=True)
        ]
        return cls(tuple(results), _flat(counted), tuple(limits))

    def measured(self, outputs: Sequence[Values]) -> ArmErrors:
        """Return the errors of answers, one (rows, *shape) for each result."""
        errors = [right.errors(output) for right, output in zip(self.results, outputs, strict=True)]
        offences = [right.offences(e) for right, e in zip(self.results, errors, strict=True)]
        means = [
            limits.mean(output)
            for limits, output in zip(self.limits, outputs, strict=True)
            if limits is not None
        ]
        return ArmErrors(_flat(errors), _flat(offences), max(means, key=abs, default=0.0))

    @property
    def telling(self) -> int:
        """How many different values could show that a kernel is wrong."""
        if any(limits is not None for limits in self.limits):
            return sum(limits.chosen.size for limits in self.limits if limits is not None)
        if any(right.exact.kind == "steps" for right in self.results):
            return 0
        return int(np.count_nonzero(self.judged))

    def unit(self, at: int) -> Unit:
        """Return the unit of the error of one of all values."""
        ends = np.cumsum([right.exact.values.size for right in self.results])
        return self.results[int(np.searchsorted(ends, at, "right"))].unit

    def worst(self, arm: ArmErrors, among: NDArray[np.bool_]) -> tuple[float, Unit]:
        """Return the largest finite error among some values that are wrong, and its unit.

        Of values that have to be equal, it is the share that is not, of all that count.
        """
        places = np.flatnonzero(among)
        if not places.size:
            return 0.0, ""
        unit = self.unit(int(places[np.argmax(arm.offences[places])]))
        if unit == "":
            return places.size / among.size, unit
        errors = arm.errors[places]
        return float(np.max(errors, where=np.isfinite(errors), initial=0.0)), unit

    def same(self, one: Sequence[Values], other: Sequence[Values]) -> NDArray[np.bool_]:
        """Return where two answers agree to the bit, (values)."""
        return _flat([same_bits(*both) for both in zip(one, other, strict=True)])

    def alike(self, one: Sequence[Values], other: Sequence[Values]) -> NDArray[np.bool_]:
        """Return where two answers are one, but for the rounding of kernels, (values)."""
        both = zip(self.results, one, other, strict=True)
        return _flat([right.alike(a, b) for right, a, b in both])

    def difference(self, one: Sequence[Values], other: Sequence[Values]) -> tuple[float, Unit]:
        """Return the largest difference of two answers where they count, and its unit."""
        both = zip(self.results, one, other, strict=True)
        apart = _flat([right.differences(a, b) for right, a, b in both])
        apart = np.where(self.judged, apart, 0.0)
        at = int(np.argmax(apart))
        return float(apart[at]), self.unit(at)


def _flat(several: Sequence[Values]) -> Values:
    return np.concatenate([array.ravel() for array in several])


@dataclass(frozen=True, slots=True)
class MeanSide:
    """One way in which values may be off to one side.

    Attributes:
        signs: direction that is counted as positive for each chosen value: -1, 0 or 1.
        down: the least mean error, in steps, that is no bias.
        up: the greatest one.

    """

    signs: NDArray[np.float64]
    down: float
    up: float

    def mean(self, errors: NDArray[np.float64]) -> float:
        """Return the mean of errors in steps if that is a bias, else 0."""
        along = errors * self.signs
        if along.size >= _ENOUGH:
            mean, noise = float(np.mean(along)), 0.0
        else:
            count = along.size + 2
            mean = float(np.sum(along)) / count
            deviation = sqrt((float(np.sum(along * along)) + 2) / count - mean * mean)
            noise = _DEVIATIONS * deviation / sqrt(count)
        return mean if mean - noise > self.up or mean + noise < self.down else 0.0


@dataclass(frozen=True, slots=True)
class MeanLimits:
    """What the mean error of one result may be.

    Attributes:
        chosen: indexes of the flattened values that say something of rounding: each exact value
            once, none that is saturated, none that is not known to a tenth of a step.
        nearest: their nearest steps.
        sides: up, away from the raw zero, and away from the zero point: what truncates does so
            in one of these.

    """

    chosen: NDArray[np.intp]
    nearest: NDArray[np.float64]
    sides: tuple[MeanSide, ...]

    @classmethod
    def of(cls, right: RightValues, judged: NDArray[np.bool_]) -> MeanLimits | None:
        """Return the limits of a quantized result; None where no value says anything.

        Args:
            right: the values that are right.
            judged: those of them that count, (rows, *shape).

        """
        known = np.iinfo(right.value.dtype)
        steps, slack = right.in_steps.ravel(), right.slack_in_steps.ravel()
        clear = judged.ravel() & (steps > known.min) & (steps < known.max) & (slack < _VAGUE)
        places = np.flatnonzero(clear)
        if not places.size:
            return None
        distinct, first = np.unique(steps[places], return_index=True)
        chosen = places[first]
        nearest = np.rint(distinct)
        shift = right.allowance.mean + slack[chosen]
        signs = [np.ones(chosen.size), np.sign(nearest), np.sign(nearest - right.zero_point)]
        wanted = signs if known.min < 0 else (signs[0], signs[2])
        sides = [_side(distinct, place, shift, right.allowance.mean) for place in wanted]
        return cls(chosen, nearest, tuple(sides))

    def mean(self, answer: Values) -> float:
        """Return an answer's mean error in steps to the worst side if that is a bias, else 0."""
        errors = answer.ravel()[self.chosen] - self.nearest
        if not errors.any():
            return 0.0
        return max((side.mean(errors) for side in self.sides), key=abs)


def _side(
    exact: NDArray[np.float64],
    signs: NDArray[np.float64],
    shift: NDArray[np.float64],
    least: float,
) -> MeanSide:
    """Return the limits to one side.

    A kernel may shift its answers by a tenth of a step before it rounds them. Where exact values
    crowd at the middle between two steps, that moves more than a tenth of them.
    """
    nearest = np.rint(exact)
    up = float(np.mean((np.rint(exact + shift * signs) - nearest) * signs))
    down = float(np.mean((np.rint(exact - shift * signs) - nearest) * signs))
    return MeanSide(signs, min(down, -least), max(up, least))
