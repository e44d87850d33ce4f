"""The rates of a survey: over all, and by condition, severity, cell, class, group and device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Count, CountFromOne, Share
from edgeflare.statistics.multiple_comparisons import simultaneous
from edgeflare.survey.items.survey_facts import (
    Fact,
    Flags,
    Floats,
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
from edgeflare.survey.rates.rate_interval import (
    Rate,
    SignedEstimate,
    mean_distance,
    pooled_rate,
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


@dataclass(frozen=True, slots=True)
class _SlicedItems:
    """Items, and what the slice of them is called."""

    chosen: Flags
    name: str
    condition: str | None = None
    severity: int | None = None
    label: int | None = None
    group: str | None = None
    device: str | None = None


def survey_rates(facts: SurveyFacts, sample: Sample, confidence: float) -> SurveyRates:
    """Return the rates of a survey.

    Args:
        facts: what is known of the items.
        sample: those of the items that the device was asked about.
        confidence: confidence with which an interval holds, and all those of a table together; from
            0 to 1.

    """
    overall = surveyed(facts)

    def table(parts: Iterator[_SlicedItems], estimate: _Estimate = pooled_rate) -> SliceTable:
        some = tuple(parts)
        each = simultaneous(confidence, len(some))
        slices = (_slice(facts, sample, items, estimate, each) for items in some)
        return SliceTable(each, tuple(slices))

    everything = _SlicedItems(overall, "over all")
    return SurveyRates(
        overall=_slice(facts, sample, everything, rate, confidence),
        unchanged=_slice(facts, sample, next(_cells(facts)), pooled_rate, confidence),
        by_condition=table(_conditions(facts)),
        by_severity=table(_severities(facts)),
        by_cell=table(_cells(facts)),
        by_class=table(_classes(facts, overall)),
        # Whether these differ is the question, so what they have in common is not assumed.
        by_group=table(_groups(facts, overall), rate),
        by_device=table(_devices(facts, overall), rate),
    )


def overall_rate(facts: SurveyFacts, sample: Sample, confidence: float) -> Rate:
    """Return the rate over all cells but the inputs unchanged, or over these where no other is."""
    return rate(headline(facts), sample, surveyed(facts), confidence)


def cell_rates(facts: SurveyFacts, sample: Sample) -> NDArray[np.float64]:
    """Return the estimated rate of deviations in each cell: (cells,)."""
    fact, cell = headline(facts), facts.cell
    return np.array([rate(fact, sample, cell == at).value for at in range(len(facts.cells))])


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
    """Return the right decisions of the device, foretold by the twin's."""
    return Fact(facts.twin_right, facts.device_right)


def _conditions(facts: SurveyFacts) -> Iterator[_SlicedItems]:
    for name, chosen in items_by_condition(facts):
        yield _SlicedItems(chosen, name, condition=name)


def _severities(facts: SurveyFacts) -> Iterator[_SlicedItems]:
    for severity in sorted({cell.severity for cell in facts.cells[1:]}):
        cells = [at for at, cell in enumerate(facts.cells) if at and cell.severity == severity]
        chosen = np.isin(facts.cell, cells)
        yield _SlicedItems(chosen, f"severity {severity}", severity=severity)


def _cells(facts: SurveyFacts) -> Iterator[_SlicedItems]:
    for at, cell in enumerate(facts.cells):
        name = f"{cell.condition} {cell.severity}" if at else cell.condition
        yield _SlicedItems(facts.cell == at, name, condition=cell.condition, severity=cell.severity)


def _classes(facts: SurveyFacts, among: Flags) -> Iterator[_SlicedItems]:
    for label in np.unique(facts.classes[facts.classes >= 0]).tolist():
        yield _SlicedItems(among & (facts.classes == label), f"class {label}", label=label)


def _groups(facts: SurveyFacts, among: Flags) -> Iterator[_SlicedItems]:
    for at, name in enumerate(facts.group_names):
        chosen = among & (facts.groups == at)
        if chosen.any():
            yield _SlicedItems(chosen, name, group=name)


def _devices(facts: SurveyFacts, among: Flags) -> Iterator[_SlicedItems]:
    """Yield the part of each of several devices; one device has all."""
    if len(facts.devices) > 1:
        given = facts.device
        for at, name in enumerate(facts.devices[: facts.inputs]):
            yield _SlicedItems(among & (given == at), name, device=name)


_Estimate = Callable[[Fact, Sample, Flags, float], Rate]
"""`rate`, or `pooled_rate`."""


def _slice(
    facts: SurveyFacts,
    sample: Sample,
    part: _SlicedItems,
    estimate: _Estimate,
    confidence: float,
) -> SurveySlice:
    """Return the rates of a part of the items, which has some.

    All that is surveyed has one figure and one interval, whichever table it is a part of.
    """
    if np.array_equal(part.chosen, surveyed(facts)):
        estimate = rate

    def of(measure: Callable[[SurveyFacts], Fact]) -> Rate:
        return estimate(measure(facts), sample, part.chosen, confidence)

    one = SurveySlice(
        *(part.name, part.condition, part.severity, part.label, part.group, part.device),
        items=int(part.chosen.sum()),
        asked=int((part.chosen & sample.asked).sum()),
        deviation=None,
        deviation_strict=None,
        kernel=of(kernel),
        kernel_strict=of(kernel_strict),
        failed=of(failure),
        compression=None,
        compression_strict=None,
        accuracy=_accuracy(facts, sample, part.chosen, estimate, confidence),
        distance=_distance(facts, sample, part.chosen, confidence),
    )
    if not facts.has_original:
        return one
    return replace(
        one,
        deviation=of(deviation),
        deviation_strict=of(deviation_strict),
        compression=_share(facts.compression, part.chosen),
        compression_strict=_share(deviation_strict(facts).foretold, part.chosen),
    )


def _accuracy(
    facts: SurveyFacts, sample: Sample, chosen: Flags, estimate: _Estimate, confidence: float
) -> ArmAccuracy | None:
    labelled = chosen & facts.labelled
    if not labelled.any():
        return None
    # Items without a label are never surprising, so they must not be pooled with the others.
    of = estimate if facts.labelled.all() else rate
    device = of(right_fact(facts), sample, labelled, confidence)
    twin = _share(facts.twin_right, labelled)
    lost, gained = (of(fact(facts), sample, labelled, confidence) for fact in (harmed, helped))
    far = _truth_distance(facts, sample, labelled, confidence)
    if not facts.has_original:
        return ArmAccuracy(None, twin, device, None, lost, gained, far)
    original = _share(facts.original_right, labelled)
    drop = (original.share - value for value in (device.value, device.high, device.low))
    return ArmAccuracy(original, twin, device, SignedEstimate(*drop), lost, gained, far)


def _truth_distance(
    facts: SurveyFacts, sample: Sample, chosen: Flags, confidence: float
) -> TruthDistance | None:
    original, twin = facts.original_truth_distance, facts.twin_truth_distance
    device = facts.device_truth_distance
    if original is None or twin is None or device is None:
        return None
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
    facts: SurveyFacts, sample: Sample, chosen: Flags, confidence: float
) -> ArmDistance | None:
    if facts.device_distance is None:
        return None
    foretold, twin = np.zeros(facts.items), None
    if facts.has_original and facts.twin_distance is not None:
        foretold = facts.twin_distance
        twin = _mean(foretold, chosen)
    found = mean_distance(foretold, facts.device_distance, sample, chosen, confidence)
    return ArmDistance(twin, found)


def _share(flags: Flags, chosen: Flags) -> ExactShare:
    items, count = int(chosen.sum()), int((flags & chosen).sum())
    return ExactShare(count / items, count, items)
