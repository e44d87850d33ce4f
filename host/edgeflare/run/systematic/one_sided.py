"""What goes one way on most seeds: classes lose inputs, scores are lower, outputs are clipped.

An output is clipped where the original gives what the device cannot, since its tensor ends before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Confusion
from edgeflare.core.joint_answer import JointAnswer
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import Tensor, dequantize, unpack_tensor
from edgeflare.statistics.binomial import median_interval, sign_test
from edgeflare.statistics.multiple_comparisons import holm

FLOW_CHANCE: Final = 0.01
"""Greatest p of a class's flow, corrected for the number of classes of all heads."""

SHIFT_CHANCE: Final = 0.05
"""Greatest p of a shift, corrected for the number of scores of all heads. It has to be worth a word
besides."""

LEAST_EFFECT: Final = 0.5
"""Least median of a shift over the standard deviation of the changes, by their quartiles: a medium
effect, by Cohen. A sign test over many seeds finds far smaller ones."""

LEAST_OF_LEAD: Final = 0.1
"""Least median of a shift of a class's probability, over how far that leads on the median seed."""

_LEAST_FLOW: Final = 0.05
"""Share of a class's places by which they have to change in a seed for it to count: the outlines of
masks nearly always move by a few pixels."""


class Flow(NamedTuple):
    """A class that many seeds leave, or come to, and few the other way.

    Attributes:
        label: the class; -1 is no class, such as no object.
        left: seeds in which it has fewer places on the second arm.
        came: those in which it has more.
        p: p-value of the sign test, after Holm's correction for the classes of all heads.

    """

    label: int
    left: int
    came: int
    p: float


class Shift(NamedTuple):
    """How much higher the second arm scores what is decided.

    Attributes:
        place: position of the score in an answer, such as that of a value.
        lower: seeds on which the second arm's is lower.
        higher: seeds on which it is higher.
        median: median of the differences, the second's less the first's.
        low: lower end of the median's interval of 95 %.
        high: upper end.
        p: p-value of the sign test, after Holm's correction for the scores of all heads.

    """

    place: int
    lower: int
    higher: int
    median: float
    low: float
    high: float
    p: float


def class_flows(confusions: Sequence[Confusion], classes: int) -> list[Flow]:
    """Return the classes whose flow is one-sided by a sign test, the least probable first.

    Args:
        confusions: `Confusion` of each seed.
        classes: how many are tested together, those of other heads too; 0 where only those that
            are seen are known.

    """
    left: dict[int, int] = {}
    came: dict[int, int] = {}
    for confusion in confusions:
        for label in np.unique(confusion[confusion[:, 0] != confusion[:, 1], :2]).tolist():
            before, after = (int(confusion[confusion[:, arm] == label, 2].sum()) for arm in (0, 1))
            if abs(after - before) >= max(1.0, _LEAST_FLOW * max(before, after)):
                side = came if after > before else left
                side[label] = side.get(label, 0) + 1
    labels = sorted({*left, *came} - {-1})
    tests = [sign_test(came.get(label, 0), left.get(label, 0)) for label in labels]
    corrected = holm([*tests, *[1.0] * (classes - len(tests))])
    flows = [
        Flow(label, left.get(label, 0), came.get(label, 0), p)
        for label, p in zip(labels, corrected, strict=False)
        if p < FLOW_CHANCE
    ]
    return sorted(flows, key=lambda flow: flow.p)


def score_shifts(first: Sequence[Answer], second: Sequence[Answer], scores: int = 1) -> list[Shift]:
    """Return the scores of decisions that the second arm gives lower, or higher.

    A shift counts if a sign test shows one side and the effect is large enough: the median is worth
    a word (see `Answer.support_words`), not small against how much the changes vary, nor against
    the lead of the decisions. Over all outputs the sign test alone would find one side nearly
    everywhere.

    Args:
        first: answers of the first arm.
        second: those of the second to the same seeds.
        scores: how many are tested together, those of other heads too.

    """
    pairs = list(zip(first, second, strict=True))
    if not pairs:
        return []
    change = _changes(pairs)
    shifts = [_shift(place, column) for place, column in enumerate(change.T)]
    known = [shift for shift in shifts if shift is not None]
    tests = [own.p for own in known]
    corrected = holm([*tests, *[1.0] * (scores - len(tests))])
    least = max(first[0].support_words()[1], LEAST_OF_LEAD * _lead(first))
    spreads = [_spread(change[:, own.place]) for own in known]
    return [
        shift._replace(p=p)
        for shift, p, spread in zip(known, corrected, spreads, strict=False)
        if p < SHIFT_CHANCE
        and abs(shift.median) >= max(least, LEAST_EFFECT * spread)
        and shift.low * shift.high > 0.0
    ]


class ScoreChange(NamedTuple):
    """How much higher the second arm scores what is decided, significantly or not.

    Attributes:
        inputs: on how many it is known.
        median: median of the differences, the second's less the first's.
        low: lower end of the median's interval of 95 %.
        high: upper end.
        effect: the median over the standard deviation of the differences, by their quartiles; None
            where they do not vary.

    """

    inputs: int
    median: float
    low: float
    high: float
    effect: float | None


def score_change(first: Sequence[Answer], second: Sequence[Answer]) -> ScoreChange | None:
    """Return how the score of decisions changes; of several that which changes most.

    Args:
        first: answers of the first arm.
        second: those of the second to the same inputs.

    Returns:
        The change; None where the task has no score of a decision, or nothing was answered.

    """
    pairs = [
        (answer, other)
        for answer, other in zip(first, second, strict=True)
        if answer.failure is None and other.failure is None
    ]
    if not pairs:
        return None
    change = _changes(pairs)
    found = [
        ScoreChange(len(known), float(np.median(known)), *median_interval(known.tolist()), effect)
        for column in change.T
        if len(known := column[np.isfinite(column)])
        for spread in [_spread(known)]
        for effect in [float(np.median(known)) / spread if spread else None]
    ]
    return max(found, key=lambda shift: abs(shift.median), default=None)


def _lead(answers: Sequence[Answer]) -> float:
    """Return the median lead of decisions whose support is a probability; 0 where it is not."""
    leads = [
        answer.lead()
        for answer in answers
        if type(answer.parts[0] if isinstance(answer, JointAnswer) else answer) is Answer
        and len(answer.probabilities) > 1
    ]
    return float(np.median(leads)) if leads else 0.0


def _spread(changes: NDArray[np.float64]) -> float:
    """Return the standard deviation of changes as a normal distribution of their quartiles has."""
    low, high = np.nanquantile(changes, (0.25, 0.75))
    return float(high - low) / 1.349


def _changes(pairs: Sequence[tuple[Answer, Answer]]) -> NDArray[np.float64]:
    """Return by how much second arms score decisions higher: (pairs, scores), NaN where unknown.

    It is the mean over both arms' decisions. A decision is the highest score of its own arm, so any
    noise would make it lower on the other arm: the two decisions do so in opposite ways. Where one
    arm decides nothing, as where an object vanished, that of the other counts alone.
    """
    both = np.array(
        [
            [second.support(home) - first.support(home) for home in (first, second)]
            for first, second in pairs
        ]
    )
    known = np.isfinite(both)
    total = np.where(known, both, 0.0).sum(axis=1)
    counts = known.sum(axis=1)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


def _shift(place: int, change: NDArray[np.float64]) -> Shift | None:
    known = change[np.isfinite(change)]
    if not len(known):
        return None
    lower, higher = int((known < 0.0).sum()), int((known > 0.0).sum())
    return Shift(
        place,
        lower,
        higher,
        float(np.median(known)),
        *median_interval(known.tolist()),
        sign_test(higher, lower),
    )


LEAST_SHARE: Final = 0.01
"""Share of an output's values from which on a side is worth a word. Where calibration leaves out
the rarest values, a few in a thousand lie beyond."""

_BEYOND: Final = 1.01
"""Steps beyond the end of the range from which on a value is cut off: one step more, such as the 1
of a softmax whose largest number is 255/256, is rounding."""

_AT_THE_END: Final = 0.5
"""Share of the values beyond the range where the device has to give its end."""

_MOST_STEPS: Final = 2**16
"""Steps of a range at most, for the numbers of an output to be those of a quantized tensor."""


class Saturation(NamedTuple):
    """A side of an output on which values are cut off.

    Attributes:
        output: name of the output.
        side: "low" or "high".
        end: the end of the device's range.
        share: share of the original's values that lie beyond it by more than a step.
        values: positions in the output that are beyond on at least half of the seeds.
        positions: positions in all.

    """

    output: str
    side: str
    end: float
    share: float
    values: int
    positions: int


def saturations(
    decoder: Decoder, rows: NDArray[np.generic], other: Decoder, its_rows: NDArray[np.generic]
) -> list[Saturation]:
    """Return the sides of the outputs that are read on which many values are cut off.

    Of scores the high side alone counts: how far those lie below that are not decided matters to no
    decision, and detectors are often made so that most of theirs are cut off there.

    Args:
        decoder: decoder of the original.
        rows: (seeds, *row), its raw outputs on the seeds, of which none failed.
        other: decoder of the device.
        its_rows: the device's on the same seeds.

    """
    found = []
    scores = {head.tensor for head in decoder.heads or (decoder,) if head.chooses}
    for at, its in zip(decoder.read_at, other.read_at, strict=False):
        tensor = decoder.outputs[at]
        wanted = dequantize(unpack_tensor(decoder.outputs, rows, at), tensor)
        given = dequantize(unpack_tensor(other.outputs, its_rows, its), other.outputs[its])
        wanted, given = wanted.reshape(len(rows), -1), given.reshape(len(rows), -1)
        ends = _range(other.outputs[its], given)
        if ends is None or wanted.shape != given.shape:
            continue
        low, high, step = ends
        sides = {
            "low": (low, wanted < low - _BEYOND * step),
            "high": (high, wanted > high + _BEYOND * step),
        }
        for side, (end, beyond) in sides.items():
            if side == "low" and tensor in scores:
                continue
            if not beyond.any() or (given[beyond] == end).mean() < _AT_THE_END:
                continue  # a lower score, but no end of the range
            share, values = float(beyond.mean()), int((beyond.mean(axis=0) >= 0.5).sum())
            if share >= LEAST_SHARE or values:
                found.append(
                    Saturation(other.outputs[its].name, side, end, share, values, beyond.shape[1])
                )
    return found


def _range(tensor: Tensor, given: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the ends of what an output can hold, and its step; None where it has no end.

    A float32 output may hold what a quantized tensor before it held. Its numbers are then multiples
    of a step, and the ends are the least and the greatest that are given several times.
    """
    if not tensor.dtype.startswith("float"):
        return None if tensor.range is None else (*tensor.range, tensor.scale)
    numbers, counts = np.unique(given, return_counts=True)
    if len(numbers) < 3 or (step := float(np.diff(numbers).min())) * _MOST_STEPS < np.ptp(numbers):
        return None
    low = float(numbers[0]) if counts[0] > 1 else -np.inf
    high = float(numbers[-1]) if counts[-1] > 1 else np.inf
    return low, high, step
