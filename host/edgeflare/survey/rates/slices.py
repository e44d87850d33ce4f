"""The rates of a survey: over all, and by condition, severity, cell, class, group and device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Count, CountFromOne, Share
from edgeflare.statistics.multiple_comparisons import simultaneous
from edgeflare.survey.items.survey_facts import (
    Fact,
    Flags,
    Floats,
    Numbers,
    Sample,
    SurveyFacts,
    deviation,
    deviation_strict,
    failure,
    harmed,
    headline,
    helped,
    kernel,
    kernel_strict,
)
from edgeflare.survey.rates.divisions import (
    Division,
    SliceName,
    divided_by_cell,
    divided_by_class,
    divided_by_condition,
    divided_by_device,
    divided_by_group,
    divided_by_severity,
)
from edgeflare.survey.rates.rate_interval import (
    Rate,
    SignedEstimate,
    SlicedFact,
    mean_distance,
    rate,
)


@dataclass(frozen=True, slots=True)
class ExactShare:
    """A share that needs no interval, since the host answered all items.

    Attributes:
        share: the share, from 0 to 1.
        count: items that it counts.
        items: all items that it is about.

    """

    share: Share
    count: Count
    items: CountFromOne


@dataclass(frozen=True, slots=True)
class TruthDistance:
    """How far each arm is from the targets on average, as the task measures it.

    Attributes:
        original: null without an original, and where it answered nothing.
        twin: exact, as the original's; null where it answered nothing.
        device: estimated; null where too few items were asked.

    """

    original: float | None
    twin: float | None
    device: SignedEstimate | None


@dataclass(frozen=True, slots=True)
class ArmAccuracy:
    """How often each arm is right, of the items for which that is known.

    Attributes:
        original: null without an original.
        twin: exact, as the original's.
        device: estimated.
        drop: the original's accuracy less the device's; null without an original.
        harmed: how often the device is wrong where the original, or without one the twin, is right.
        helped: how often the device is right where that arm is wrong.
        distance: mean distances from the targets; null without targets.

    """

    original: ExactShare | None
    twin: ExactShare
    device: Rate
    drop: SignedEstimate | None
    harmed: Rate
    helped: Rate
    distance: TruthDistance | None = None


@dataclass(frozen=True, slots=True)
class ArmDistance:
    """How far answers are apart on average, of tasks that measure a distance.

    Attributes:
        twin: distance from original to twin; null without an original.
        device: distance from original to device, without an original from twin to device; null
            where too few items were asked.

    """

    twin: float | None
    device: SignedEstimate | None


@dataclass(frozen=True, slots=True)
class SurveySlice:
    """The rates of some of the items; they count what hangs on a tie, but for those `_strict`.

    Attributes:
        name: the slice's name, for readers.
        condition: condition that the slice is restricted to; null where it varies, likewise the
            next four.
        severity: 0 for the inputs unchanged.
        label: the class of the input.
        group: the input's group.
        device: the device that was given the input.
        items: number of its items.
        asked: items among them that the device was asked about.
        deviation: original and device decide differently, or the device failed; null without an
            original.
        deviation_strict, kernel_strict, compression_strict: the same without what hangs on a tie.
        kernel: twin and device decide differently, or the device failed and the twin did not fail
            likewise.
        failed: the device crashed, hung, or gave invalid outputs.
        compression: original and twin decide differently; null without an original.
        accuracy: how often each arm is right; null where no label or target is known.
        distance: mean distances; null for tasks that measure none.

    """

    name: str
    condition: str | None
    severity: Count | None
    label: Count | None
    group: str | None
    device: str | None
    items: CountFromOne
    asked: Count
    deviation: Rate | None
    deviation_strict: Rate | None
    kernel: Rate
    kernel_strict: Rate
    failed: Rate
    compression: ExactShare | None
    compression_strict: ExactShare | None
    accuracy: ArmAccuracy | None
    distance: ArmDistance | None

    @property
    def rate(self) -> Rate:
        """The rate that a survey is about: of deviations; without an original, of kernels."""
        return self.kernel if self.deviation is None else self.deviation

    @property
    def rate_strict(self) -> Rate:
        """The rate of deviations, or kernels, without what hangs on a tie."""
        return self.kernel_strict if self.deviation_strict is None else self.deviation_strict


@dataclass(frozen=True, slots=True)
class SliceTable:
    """Slices that are compared with one another.

    Attributes:
        confidence: confidence of each interval, so that all of the table hold together, for each
            rate.
        slices: what is compared.

    """

    confidence: Share
    slices: tuple[SurveySlice, ...]


@dataclass(frozen=True, slots=True)
class SurveyRates:
    """All rates of a survey.

    Attributes:
        overall: over all cells but the unchanged one, unless that is the only one.
        unchanged: over the inputs as they are.
        by_condition, by_severity, by_class, by_group, by_device: what `overall` is made of.
        by_cell: rates of all cells, the unchanged one first.

    """

    overall: SurveySlice
    unchanged: SurveySlice
    by_condition: SliceTable
    by_severity: SliceTable
    by_cell: SliceTable
    by_class: SliceTable
    by_group: SliceTable
    by_device: SliceTable


def survey_rates(facts: SurveyFacts, sample: Sample, confidence: float) -> SurveyRates:
    """Return the rates of a survey.

    Args:
        facts: what is known of the items.
        sample: those of the items that the device was asked about.
        confidence: confidence with which an interval holds, and all those of a table together; from
            0 to 1.

    """
    overall = surveyed(facts)

    def table(division: Division, estimate: _Estimate = SlicedFact.pooled_rate) -> SliceTable:
        each = simultaneous(confidence, len(division.names))
        return SliceTable(each, tuple(_slices(facts, sample, division, estimate, each)))

    def alone(chosen: Flags, name: SliceName) -> SurveySlice:
        division = Division(np.where(chosen, 0, -1), (name,))
        (one,) = _slices(facts, sample, division, SlicedFact.pooled_rate, confidence)
        return one

    cells = divided_by_cell(facts)
    return SurveyRates(
        overall=alone(overall, SliceName("over all")),
        unchanged=alone(facts.cell == 0, cells.names[0]),
        by_condition=table(divided_by_condition(facts)),
        by_severity=table(divided_by_severity(facts)),
        by_cell=table(cells),
        by_class=table(divided_by_class(facts, overall)),
        # Whether these differ is the question, so what they have in common is not assumed.
        by_group=table(divided_by_group(facts, overall), SlicedFact.rate),
        by_device=table(divided_by_device(facts, overall), SlicedFact.rate),
    )


def overall_rate(facts: SurveyFacts, sample: Sample, confidence: float) -> Rate:
    """Return the rate over all cells but the inputs unchanged, or over these where no other is."""
    return rate(headline(facts), sample, surveyed(facts), confidence)


def cell_rates(facts: SurveyFacts, sample: Sample) -> NDArray[np.float64]:
    """Return the estimated rate of deviations in each cell: (cells,)."""
    found = SlicedFact.of(headline(facts), sample, facts.cell, len(facts.cells))
    return np.array([found.rate(at, 0.95).value for at in range(len(facts.cells))])


def surveyed(facts: SurveyFacts) -> Flags:
    """Return the items that rates over all are of, (items,) bool.

    The unchanged inputs are among them only where nothing else is surveyed.
    """
    return np.asarray(facts.cell > 0) if len(facts.cells) > 1 else np.ones(facts.items, bool)


def items_by_condition(facts: SurveyFacts) -> Iterator[tuple[str, Flags]]:
    """Yield each condition with its items, (items,) bool."""
    for name in dict.fromkeys(cell.condition for cell in facts.cells[1:]):
        cells = [at for at, cell in enumerate(facts.cells) if at and cell.condition == name]
        yield name, np.isin(facts.cell, cells)


def right_fact(facts: SurveyFacts) -> Fact:
    """Return the right decisions of the device, foretold by the twin's; of labelled items."""
    return Fact(facts.twin_right, facts.device_right, facts.labelled)


_Estimate = Callable[[SlicedFact, int, float], Rate]
"""`SlicedFact.rate`, or `SlicedFact.pooled_rate`."""


def _slices(
    facts: SurveyFacts,
    sample: Sample,
    division: Division,
    estimate: _Estimate,
    confidence: float,
) -> Iterator[SurveySlice]:
    """Yield the rates of each slice of a division.

    All that is surveyed has one figure and one interval, whichever table it is a part of.
    """
    of, count = division.of, len(division.names)
    every = surveyed(facts)
    first = of[np.argmax(every)]
    whole = first if np.array_equal(of == first, every) else -1

    def estimated(found: SlicedFact, at: int, confidence: float) -> Rate:
        return (SlicedFact.rate if at == whole else estimate)(found, at, confidence)

    def rates(measure: Callable[[SurveyFacts], Fact]) -> list[Rate]:
        found = SlicedFact.of(measure(facts), sample, of, count)
        return [estimated(found, at, confidence) for at in range(count)]

    measures = [kernel, kernel_strict, failure]
    measures += [deviation, deviation_strict] if facts.has_original else []
    by_measure = {measure: rates(measure) for measure in measures}
    shares = {}
    if facts.has_original:
        shares = {
            deviation: _shares(facts.compression, of, count),
            deviation_strict: _shares(deviation_strict(facts).foretold, of, count),
        }
    accuracies = _accuracies(facts, sample, division, estimated, confidence)
    for at, name in enumerate(division.names):
        rate_of = {measure: found[at] for measure, found in by_measure.items()}
        share_of = {measure: found[at] for measure, found in shares.items()}
        yield SurveySlice(
            *(name.name, name.condition, name.severity, name.label, name.group, name.device),
            items=rate_of[kernel].items,
            asked=rate_of[kernel].asked,
            deviation=rate_of.get(deviation),
            deviation_strict=rate_of.get(deviation_strict),
            kernel=rate_of[kernel],
            kernel_strict=rate_of[kernel_strict],
            failed=rate_of[failure],
            compression=share_of.get(deviation),
            compression_strict=share_of.get(deviation_strict),
            accuracy=accuracies[at],
            distance=_distance(facts, sample, of, at, confidence),
        )


def _accuracies(
    facts: SurveyFacts,
    sample: Sample,
    division: Division,
    estimate: _Estimate,
    confidence: float,
) -> list[ArmAccuracy | None]:
    """Return how often each arm is right in each slice; None where no label is known."""
    of, count = np.where(facts.labelled, division.of, -1), len(division.names)
    device, lost, gained = (
        SlicedFact.of(fact(facts), sample, of, count) for fact in (right_fact, harmed, helped)
    )
    original = _shares(facts.original_right, of, count)
    twin = _shares(facts.twin_right, of, count)

    def accuracy(at: int) -> ArmAccuracy | None:
        if (twin_right := twin[at]) is None:
            return None
        right = estimate(device, at, confidence)
        before = original[at] if facts.has_original else None
        drop = None
        if before is not None:
            ends = (right.value, right.high, right.low)
            drop = SignedEstimate(*(before.share - value for value in ends))
        return ArmAccuracy(
            original=before,
            twin=twin_right,
            device=right,
            drop=drop,
            harmed=estimate(lost, at, confidence),
            helped=estimate(gained, at, confidence),
            distance=_truth_distance(facts, sample, of, at, confidence),
        )

    return [accuracy(at) for at in range(count)]


def _truth_distance(
    facts: SurveyFacts, sample: Sample, of: Numbers, at: int, confidence: float
) -> TruthDistance | None:
    original, twin = facts.original_truth_distance, facts.twin_truth_distance
    device = facts.device_truth_distance
    if original is None or twin is None or device is None:
        return None
    chosen = of == at
    return TruthDistance(
        _mean(original, chosen),
        _mean(twin, chosen),
        mean_distance(twin, device, sample, chosen, confidence),
    )


def _mean(values: Floats, chosen: Flags) -> float | None:
    """Return the mean of those that are known; None where none is."""
    known = values[chosen & np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _distance(
    facts: SurveyFacts, sample: Sample, of: Numbers, at: int, confidence: float
) -> ArmDistance | None:
    if facts.device_distance is None:
        return None
    chosen = of == at
    foretold, twin = np.zeros(facts.items), None
    if facts.has_original and facts.twin_distance is not None:
        foretold = facts.twin_distance
        twin = _mean(foretold, chosen)
    found = mean_distance(foretold, facts.device_distance, sample, chosen, confidence)
    return ArmDistance(twin, found)


def _shares(flags: Flags, of: Numbers, count: int) -> list[ExactShare | None]:
    """Return which share of each slice has a flag; None where it has no items."""
    numbers = np.bincount(2 * of[of >= 0] + flags[of >= 0], minlength=2 * count).reshape(-1, 2)
    return [
        ExactShare(seen / (seen + others), seen, seen + others) if seen + others else None
        for others, seen in numbers.tolist()
    ]
