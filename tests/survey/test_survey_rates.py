"""The rates of a survey by slices: counts, intervals where some were asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from changed_documents import known
from constructed_surveys import (
    CLASSES,
    CONDITIONS,
    SEVERITIES,
    as_asked,
    constructed_facts,
    drawn_sample,
    whole_sample,
    with_distances,
    with_targets,
    without_original,
)
from edgeflare.survey.items.survey_facts import Flags, SurveyFacts
from edgeflare.survey.rates.slices import (
    ArmAccuracy,
    ExactShare,
    SurveyRates,
    SurveySlice,
    items_by_condition,
    survey_rates,
    surveyed,
)


def whole(facts: SurveyFacts) -> SurveyRates:
    return survey_rates(facts, whole_sample(facts), 0.95)


def accuracy_of(rates: SurveyRates) -> ArmAccuracy:
    return known(rates.overall.accuracy)


@pytest.fixture(scope="module")
def facts() -> SurveyFacts:
    return constructed_facts()


@pytest.fixture(scope="module")
def rates(facts: SurveyFacts) -> SurveyRates:
    return whole(facts)


def all_slices(rates: SurveyRates) -> Iterator[SurveySlice]:
    yield from (rates.overall, rates.unchanged)
    for table in (rates.by_condition, rates.by_severity, rates.by_cell, rates.by_class):
        yield from table.slices
    yield from rates.by_group.slices


def items_of(facts: SurveyFacts, one: SurveySlice) -> Flags:
    """The items of a slice by what it says of itself; severity 0 is the inputs unchanged."""
    cells = [
        at
        for at, cell in enumerate(facts.cells)
        if (at > 0 or one.severity == 0)
        and one.condition in (None, cell.condition)
        and one.severity in (None, cell.severity)
    ]
    chosen = np.isin(facts.cell, cells)
    if one.label is not None:
        chosen &= facts.classes == one.label
    if one.group is not None:
        chosen &= facts.groups == facts.group_names.index(one.group)
    return chosen


def test_conditions_divide_what_is_surveyed(facts: SurveyFacts) -> None:
    parts = dict(items_by_condition(facts))
    assert list(parts) == list(CONDITIONS)
    assert np.array_equal(sum(parts.values()), surveyed(facts))
    assert not surveyed(facts)[facts.cell == 0].any()
    unchanged_alone = constructed_facts(inputs=10, conditions=())
    assert surveyed(unchanged_alone).tolist() == 10 * [True]
    assert not list(items_by_condition(unchanged_alone))


def test_where_all_were_asked_rates_are_counts(facts: SurveyFacts, rates: SurveyRates) -> None:
    flags = {
        "deviation": facts.deviates,
        "deviation_strict": facts.deviates & ~facts.deviates_tied,
        "kernel": facts.kernel,
        "kernel_strict": facts.kernel & ~facts.kernel_tied,
        "failed": facts.failed,
    }
    slices = list(all_slices(rates))
    assert len(slices) == 2 + 2 + 3 + 7 + CLASSES + 2
    assert rates.overall.items == facts.items - facts.inputs
    assert rates.unchanged.items == facts.inputs
    for slice_ in slices:
        chosen = items_of(facts, slice_)
        items = int(chosen.sum())
        assert slice_.items == slice_.asked == items > 0
        for name, seen in flags.items():
            count = int((seen & chosen).sum())
            found = getattr(slice_, name)
            assert (found.items, found.asked, found.seen) == (items, items, count)
            assert (found.value, found.low, found.high) == pytest.approx((count / items,) * 3)
        strict = facts.compression & ~facts.compression_tied
        for share, seen in (
            (slice_.compression, facts.compression),
            (slice_.compression_strict, strict),
        ):
            count = int((seen & chosen).sum())
            assert share == ExactShare(count / items, count, items)


def test_accuracy_is_that_of_the_labelled_inputs(facts: SurveyFacts, rates: SurveyRates) -> None:
    for slice_ in all_slices(rates):
        chosen = items_of(facts, slice_) & facts.labelled
        accuracy = known(slice_.accuracy)
        arms = (known(accuracy.original), accuracy.twin, accuracy.device)
        assert {arm.items for arm in arms} == {int(chosen.sum())}
        right = [facts.original_right, facts.twin_right, facts.device_right]
        original, twin, device = (float(flags[chosen].mean()) for flags in right)
        assert known(accuracy.original).share == pytest.approx(original)
        assert accuracy.twin.share == pytest.approx(twin)
        assert accuracy.device.value == pytest.approx(device)
        lost = int((facts.original_right & ~facts.device_right & chosen).sum())
        gained = int((facts.device_right & ~facts.original_right & chosen).sum())
        assert (accuracy.harmed.seen, accuracy.helped.seen) == (lost, gained)
        change = accuracy.harmed.value - accuracy.helped.value
        assert known(accuracy.drop).value == pytest.approx(change)
        assert change == pytest.approx(original - device)


def test_the_slices_are_named_for_readers(rates: SurveyRates) -> None:
    assert rates.overall.name == "over all"
    assert [slice_.name for slice_ in rates.by_condition.slices] == list(CONDITIONS)
    assert [slice_.name for slice_ in rates.by_severity.slices] == [
        f"severity {n}" for n in SEVERITIES
    ]
    names = [slice_.name for slice_ in rates.by_cell.slices]
    assert names == ["unchanged", *(f"{name} {n}" for name in CONDITIONS for n in SEVERITIES)]
    assert [slice_.label for slice_ in rates.by_class.slices] == list(range(CLASSES))
    assert [slice_.name for slice_ in rates.by_group.slices] == ["old", "young"]
    assert rates.by_device.slices == (), "there is one device"


def test_of_several_devices_each_has_its_own_inputs() -> None:
    facts = constructed_facts(devices=("phone", "board"))
    slices = whole(facts).by_device.slices
    assert [slice_.device for slice_ in slices] == ["phone", "board"]
    for at, one in enumerate(slices):
        mine = (facts.input % 2 == at) & (facts.cell > 0)
        assert known(one.deviation).seen == int((facts.deviates & mine).sum())
        assert one.items == int(mine.sum())


def test_inputs_that_are_surveyed_unchanged_only_are_all_there_is() -> None:
    rates = whole(constructed_facts(conditions=()))
    assert replace(known(rates.unchanged.deviation), alone=None) == rates.overall.deviation
    assert rates.by_condition.slices == rates.by_severity.slices == ()
    assert len(rates.by_cell.slices) == 1


@pytest.mark.parametrize("conditions", [(), CONDITIONS[:1]])
def test_a_part_that_is_all_there_is_has_the_interval_of_all(conditions: tuple[str, ...]) -> None:
    facts = constructed_facts(conditions=conditions)
    sample = drawn_sample(facts, 0.3)
    rates = survey_rates(as_asked(facts, sample), sample, 0.95)
    one = rates.by_condition.slices[0] if conditions else rates.unchanged
    assert one.items == rates.overall.items
    assert one.deviation == rates.overall.deviation
    assert one.accuracy == rates.overall.accuracy


def test_a_cell_that_is_all_there_is_beside_the_unchanged_inputs_has_the_figure_of_all() -> None:
    facts = constructed_facts(300, CONDITIONS[:1], severities=SEVERITIES[:1])
    sample = drawn_sample(facts, 0.3)
    rates = survey_rates(as_asked(facts, sample), sample, 0.95)
    _, changed = rates.by_cell.slices
    assert known(changed.deviation).value == known(rates.overall.deviation).value
    assert known(changed.accuracy).device.value == known(rates.overall.accuracy).device.value


def test_intervals_of_a_table_hold_together(rates: SurveyRates) -> None:
    tables = (rates.by_condition, rates.by_severity, rates.by_cell, rates.by_class, rates.by_group)
    for table in tables:
        assert table.confidence ** len(table.slices) == pytest.approx(0.95)


def test_a_sample_gives_intervals_around_the_truth(facts: SurveyFacts, rates: SurveyRates) -> None:
    sample = drawn_sample(facts, 0.3)
    drawn = survey_rates(as_asked(facts, sample), sample, 0.95)
    for one, truth in zip(all_slices(drawn), all_slices(rates), strict=True):
        for name in ("deviation", "kernel", "failed"):
            found, exact = getattr(one, name), getattr(truth, name)
            assert found.low <= exact.value <= found.high
            assert found.low < found.high
        assert one.compression == truth.compression
        assert one.asked == int((items_of(facts, one) & sample.asked).sum()) < one.items
        accuracy = known(one.accuracy)
        drop = known(accuracy.drop)
        width = accuracy.device.high - accuracy.device.low
        assert width == pytest.approx(drop.high - drop.low)


def test_the_twin_foretells_compression_and_no_kernels(facts: SurveyFacts) -> None:
    """A device that decides as its twin does is foretold, so its interval is that of kernels."""
    never = np.zeros(facts.items, bool)
    quiet = replace(
        facts,
        deviates=facts.compression,
        deviates_tied=facts.compression_tied,
        kernel=never,
        kernel_tied=never,
        failed=never,
        device_right=facts.twin_right,
    )
    sample = drawn_sample(quiet, 0.3)
    one = survey_rates(as_asked(quiet, sample), sample, 0.95).overall
    assert known(one.deviation).value == known(one.compression).share
    assert one.kernel.value == one.kernel.low == 0.0 < one.kernel.high
    accuracy = known(one.accuracy)
    assert accuracy.device.value == pytest.approx(accuracy.twin.share)


def test_what_a_device_harms_the_other_way_round_is_helped(
    facts: SurveyFacts, rates: SurveyRates
) -> None:
    swapped = replace(facts, original_right=facts.device_right, device_right=facts.original_right)
    now, before = accuracy_of(whole(swapped)), accuracy_of(rates)
    assert now.helped.seen == before.harmed.seen > 0
    assert now.harmed.seen == before.helped.seen


def test_nobody_is_harmed_where_the_original_is_wrong(facts: SurveyFacts) -> None:
    """Classes pool what the device says, and of all but the first the original knows nothing."""
    right = facts.labelled & (facts.classes == 0)
    device_right = right & (np.arange(facts.items) % 4 > 0)
    one_sided = replace(facts, original_right=right, twin_right=right, device_right=device_right)
    sample = drawn_sample(one_sided, 0.3)
    rates = survey_rates(as_asked(one_sided, sample), sample, 0.95)
    first, *others = (known(slice_.accuracy) for slice_ in rates.by_class.slices)
    chosen = items_of(facts, rates.by_class.slices[0]) & facts.labelled
    assert first.harmed.low < 1.0 - device_right[chosen].mean() < first.harmed.high
    alone = known(first.harmed.alone)
    assert alone.low < first.harmed.low < first.harmed.high < alone.high
    assert {(one.harmed.value, one.harmed.high) for one in others} == {(0.0, 0.0)}
    assert (first.helped.value, first.helped.high) == (0.0, 0.0)


def test_without_an_original_kernels_alone_are_judged(facts: SurveyFacts) -> None:
    rates = whole(without_original(facts))
    one, accuracy = rates.overall, accuracy_of(rates)
    assert one.deviation is one.deviation_strict is None
    assert one.compression is one.compression_strict is None
    assert one.kernel.value > 0.0
    assert (accuracy.original, accuracy.drop) == (None, None)
    assert 0.0 < accuracy.device.value < accuracy.twin.share
    lost = accuracy.twin.share - accuracy.device.value
    assert accuracy.harmed.value - accuracy.helped.value == pytest.approx(lost)


def test_a_task_that_measures_distances_has_their_means(facts: SurveyFacts) -> None:
    measured = with_distances(facts)
    rates = whole(measured)
    assert rates.by_class.slices == ()
    for slice_ in all_slices(rates):
        assert slice_.accuracy is None
        distance = known(slice_.distance)
        assert distance.device is not None
        chosen = items_of(measured, slice_)
        assert distance.twin == pytest.approx(known(measured.twin_distance)[chosen].mean())
    unfailed = replace(measured, failed=np.zeros(measured.items, bool))
    lone = known(whole(without_original(unfailed)).overall.distance)
    assert lone.twin is None
    surveyed_alone = known(measured.device_distance)[measured.cell > 0]
    assert known(lone.device).value == pytest.approx(np.nanmean(surveyed_alone))


def test_distances_from_targets_are_means_over_the_items_that_have_them() -> None:
    facts = with_targets(constructed_facts())
    rates = whole(facts)
    far = known(accuracy_of(rates).distance)
    chosen = items_of(facts, rates.overall) & facts.labelled
    original, twin = facts.original_truth_distance, facts.twin_truth_distance
    assert far.original == pytest.approx(known(original)[chosen].mean())
    assert far.twin == pytest.approx(known(twin)[chosen].mean())
    sample = drawn_sample(facts, 0.4, rng_seed=1)
    some = known(accuracy_of(survey_rates(as_asked(facts, sample), sample, 0.95)).distance)
    assert some.twin == far.twin
    device = known(some.device)
    assert device.low < known(far.device).value < device.high
