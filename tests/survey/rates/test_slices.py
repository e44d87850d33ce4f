"""Tests of edgeflare.survey.rates.slices: counts, intervals where some were asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

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
from edgeflare.survey.estimate.rate import Rate
from edgeflare.survey.items.survey_facts import Flags, SurveyFacts
from edgeflare.survey.rates.slices import Share, SurveyRates, SurveySlice, survey_rates


@pytest.fixture(scope="module")
def facts() -> SurveyFacts:
    return constructed_facts()


@pytest.fixture(scope="module")
def rates(facts: SurveyFacts) -> SurveyRates:
    return survey_rates(facts, whole_sample(facts), 0.95)


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
    for one in slices:
        chosen = items_of(facts, one)
        items = int(chosen.sum())
        assert one.items == one.asked == items > 0
        for name, seen in flags.items():
            count = int((seen & chosen).sum())
            share = count / items
            found = getattr(one, name)
            assert (found.items, found.asked, found.seen) == (items, items, count)
            assert (found.estimate, found.low, found.high) == pytest.approx((share,) * 3)
        count = int((facts.compression & chosen).sum())
        assert one.compression == Share(count / items, count, items)
        count = int((facts.compression & ~facts.compression_tied & chosen).sum())
        assert one.compression_strict == Share(count / items, count, items)


def test_accuracy_is_that_of_the_labelled_inputs(facts: SurveyFacts, rates: SurveyRates) -> None:
    for one in all_slices(rates):
        chosen = items_of(facts, one) & facts.labelled
        items = int(chosen.sum())
        accuracy = one.accuracy
        assert accuracy is not None
        assert accuracy.original is not None
        assert accuracy.drop is not None
        assert accuracy.original.items == accuracy.twin.items == accuracy.device.items == items
        right = [facts.original_right, facts.twin_right, facts.device_right]
        original, twin, device = (float(flags[chosen].mean()) for flags in right)
        assert accuracy.original.share == pytest.approx(original)
        assert accuracy.twin.share == pytest.approx(twin)
        assert accuracy.device.estimate == pytest.approx(device)
        lost = int((facts.original_right & ~facts.device_right & chosen).sum())
        gained = int((facts.device_right & ~facts.original_right & chosen).sum())
        assert (accuracy.harmed.seen, accuracy.helped.seen) == (lost, gained)
        change = accuracy.harmed.estimate - accuracy.helped.estimate
        assert accuracy.drop.estimate == pytest.approx(change)
        assert accuracy.drop.estimate == pytest.approx(original - device)


def test_the_slices_are_named_for_readers(rates: SurveyRates) -> None:
    assert rates.overall.name == "over all"
    assert [one.name for one in rates.by_condition.slices] == list(CONDITIONS)
    assert [one.name for one in rates.by_severity.slices] == [f"severity {n}" for n in SEVERITIES]
    names = [one.name for one in rates.by_cell.slices]
    assert names == ["unchanged", *(f"{name} {n}" for name in CONDITIONS for n in SEVERITIES)]
    assert [one.label for one in rates.by_class.slices] == list(range(CLASSES))
    assert [one.name for one in rates.by_group.slices] == ["old", "young"]


def test_of_several_devices_each_has_its_own_inputs() -> None:
    facts = constructed_facts(devices=("phone", "board"))
    rates = survey_rates(facts, whole_sample(facts), 0.95)
    assert [one.device for one in rates.by_device.slices] == ["phone", "board"]
    deviates = facts.deviates & (facts.cell > 0)
    for at, one in enumerate(rates.by_device.slices):
        mine = facts.input % 2 == at
        assert one.deviation is not None
        assert one.deviation.seen == int((deviates & mine).sum())
        assert one.items == int(((facts.cell > 0) & mine).sum())


def test_one_device_is_no_table_of_devices(rates: SurveyRates) -> None:
    assert rates.by_device.slices == ()


def test_over_all_leaves_the_unchanged_inputs_out(facts: SurveyFacts, rates: SurveyRates) -> None:
    assert rates.overall.items == facts.items - facts.inputs
    assert rates.unchanged.items == facts.inputs


def test_inputs_that_are_surveyed_unchanged_only_are_all_there_is() -> None:
    facts = constructed_facts(conditions=())
    rates = survey_rates(facts, whole_sample(facts), 0.95)
    assert rates.overall.deviation is not None
    assert rates.unchanged.deviation is not None
    assert replace(rates.unchanged.deviation, alone=None) == rates.overall.deviation
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
            assert found.low <= exact.estimate <= found.high
            assert found.low < found.high
        assert one.compression == truth.compression
        assert one.asked == int((items_of(facts, one) & sample.asked).sum()) < one.items
        assert one.accuracy is not None
        assert one.accuracy.drop is not None
        assert one.accuracy.device.high - one.accuracy.device.low == pytest.approx(
            one.accuracy.drop.high - one.accuracy.drop.low
        )


def test_the_twin_foretells_compression_and_no_kernels(facts: SurveyFacts) -> None:
    """A device that decides as its twin does is foretold, so its interval is that of kernels."""
    quiet = replace(
        facts,
        deviates=facts.compression,
        deviates_tied=facts.compression_tied,
        kernel=np.zeros(facts.items, bool),
        kernel_tied=np.zeros(facts.items, bool),
        failed=np.zeros(facts.items, bool),
        device_right=facts.twin_right,
    )
    sample = drawn_sample(quiet, 0.3)
    one = survey_rates(as_asked(quiet, sample), sample, 0.95).overall
    assert one.compression is not None
    assert one.deviation is not None
    assert one.deviation.estimate == one.compression.share
    assert one.kernel.estimate == one.kernel.low == 0.0 < one.kernel.high
    assert one.accuracy is not None
    assert one.accuracy.device.estimate == pytest.approx(one.accuracy.twin.share)


def test_what_a_device_harms_the_other_way_round_is_helped(
    facts: SurveyFacts, rates: SurveyRates
) -> None:
    swapped = replace(facts, original_right=facts.device_right, device_right=facts.original_right)
    now = survey_rates(swapped, whole_sample(facts), 0.95).overall.accuracy
    before = rates.overall.accuracy
    assert now is not None
    assert before is not None
    assert now.helped.seen == before.harmed.seen > 0
    assert now.harmed.seen == before.helped.seen


def test_without_an_original_kernels_alone_are_judged(facts: SurveyFacts) -> None:
    alone = without_original(facts)
    one = survey_rates(alone, whole_sample(alone), 0.95).overall
    assert one.deviation is one.deviation_strict is None
    assert one.compression is one.compression_strict is None
    assert isinstance(one.kernel, Rate)
    assert one.accuracy is not None
    assert (one.accuracy.original, one.accuracy.drop) == (None, None)
    assert 0.0 < one.accuracy.device.estimate < one.accuracy.twin.share
    lost = one.accuracy.twin.share - one.accuracy.device.estimate
    assert one.accuracy.harmed.estimate - one.accuracy.helped.estimate == pytest.approx(lost)


def test_a_task_that_measures_distances_has_their_means(facts: SurveyFacts) -> None:
    measured = with_distances(facts)
    rates = survey_rates(measured, whole_sample(measured), 0.95)
    assert rates.by_class.slices == ()
    assert measured.twin_distance is not None
    assert measured.device_distance is not None
    for one in all_slices(rates):
        chosen = items_of(measured, one)
        assert one.accuracy is None
        assert one.distance is not None
        assert one.distance.device is not None
        assert one.distance.twin == pytest.approx(measured.twin_distance[chosen].mean())
    whole = replace(measured, failed=np.zeros(measured.items, bool))
    assert rates.overall.distance is not None
    lone = survey_rates(without_original(whole), whole_sample(whole), 0.95).overall.distance
    assert lone is not None
    assert lone.twin is None
    assert lone.device is not None
    assert lone.device.estimate == pytest.approx(
        np.nanmean(measured.device_distance[measured.cell > 0])
    )


def test_distances_from_targets_are_means_over_the_items_that_have_them() -> None:
    facts = with_targets(constructed_facts())
    overall = survey_rates(facts, whole_sample(facts), 0.95).overall
    assert overall.accuracy is not None
    far = overall.accuracy.distance
    assert far is not None
    chosen = items_of(facts, overall) & facts.labelled
    for mean, values in (
        (far.original, facts.original_truth_distance),
        (far.twin, facts.twin_truth_distance),
    ):
        assert values is not None
        assert mean == pytest.approx(values[chosen].mean())
    drawn = drawn_sample(facts, 0.4, rng_seed=1)
    some = survey_rates(as_asked(facts, drawn), drawn, 0.95).overall.accuracy
    assert some is not None
    assert some.distance is not None
    assert some.distance.twin == far.twin
    assert far.device is not None
    assert some.distance.device is not None
    assert some.distance.device.low < far.device.estimate < some.distance.device.high
