"""Rates side by side: against a baseline of the same items, and of groups among each other."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from changed_documents import changed
from constructed_surveys import (
    CLASSES,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    facts_of,
    whole_sample,
    with_distances,
    without_original,
)
from edgeflare.errors import UserError
from edgeflare.statistics.binomial import sign_test
from edgeflare.survey.baseline import AskedItems, BaselineSurvey, compare, require_same_items
from edgeflare.survey.items.survey_facts import Cell, Numbers, Sample, SurveyFacts
from edgeflare.survey.rates.group_differences import (
    COMPARED_GROUPS,
    GroupDifferences,
    group_differences,
)
from edgeflare.survey.rates.slices import overall_rate
from edgeflare.survey.record.survey_document import SurveyComparison, SurveyDocument
from edgeflare.survey.sampling_design import SamplingDesign


@pytest.fixture(scope="module")
def before() -> SurveyFacts:
    return constructed_facts()


@pytest.fixture(scope="module")
def after(before: SurveyFacts) -> SurveyFacts:
    """A build that deviates under fog wherever the one before did, and on each seventh item."""
    fog = np.isin(before.cell, [1, 2, 3])
    worse = before.deviates | (fog & (np.arange(before.items) % 7 == 0))
    tied = before.deviates_tied & (worse == before.deviates)
    return replace(before, deviates=worse, deviates_tied=tied)


def only_now(before: SurveyFacts, after: SurveyFacts) -> np.ndarray:
    """The items on which only the later of two builds deviates by no tie."""
    old, new = (one.deviates & ~one.deviates_tied for one in (before, after))
    return new & ~old & (before.cell > 0)


def compared(
    after: SurveyFacts,
    before: SurveyFacts,
    drawn: Sample | None = None,
    drawn_before: Sample | None = None,
) -> SurveyComparison:
    known = after if drawn is None else as_asked(after, drawn)
    document = constructed_document(after, drawn)
    sample = whole_sample(after) if drawn is None else drawn
    return compare(known, sample, document, constructed_baseline(before, drawn_before))


def test_changes_are_counted_over_all_and_by_condition(
    before: SurveyFacts, after: SurveyFacts
) -> None:
    found = compared(after, before)
    count = int(only_now(before, after).sum())
    assert found.run == "before"
    assert found.overall.both == before.items - before.inputs
    assert (found.overall.only_now, found.overall.only_before) == (count, 0)
    # Each input changes in one cell at most here, so it is the sign test.
    assert found.overall.p == found.overall.p_corrected == pytest.approx(sign_test(0, count))
    assert found.overall.difference.value == pytest.approx(count / found.overall.both)
    fog, dark = found.by_condition
    assert (fog.condition, fog.only_now, fog.p_corrected) == ("fog", count, 2 * fog.p)
    assert (dark.condition, dark.only_now, dark.p, dark.p_corrected) == ("dark", 0, 1.0, 1.0)
    assert fog.difference.value == pytest.approx(count / fog.both)


def test_inputs_that_change_under_all_conditions_are_no_more_than_inputs() -> None:
    """Three inputs that deviate only now, and one only before, say nothing in any number of cells.

    By items it would be 30 of 40, with a p of .002.
    """
    cells = (Cell("unchanged", 0), *(Cell("fog", at) for at in range(1, 11)))
    now, before = [facts_of_inputs(cells, 60, some) for some in ((0, 1, 2), (3,))]
    row = compared(now, before).overall
    assert (row.only_now, row.only_before) == (30, 10)
    assert row.p == pytest.approx(0.625)


def facts_of_inputs(
    cells: tuple[Cell, ...], inputs: int, deviating: tuple[int, ...]
) -> SurveyFacts:
    """Facts of a build that deviates on some inputs, in whatever cell."""
    deviates = np.tile(np.isin(np.arange(inputs), deviating), len(cells))
    asked = np.ones(len(deviates), bool)
    return facts_of(cells, inputs, asked=asked, kernel=deviates, deviates=deviates)


def test_only_items_asked_in_both_are_pairs(before: SurveyFacts, after: SurveyFacts) -> None:
    one, other = drawn_sample(before, 0.3, 1), drawn_sample(before, 0.3, 2)
    found = compared(after, before, one, other)
    both = one.asked & other.asked & (before.cell > 0)
    assert found.overall.both == int(both.sum()) == sum(row.both for row in found.by_condition)
    assert found.overall.only_now == int((only_now(before, after) & both).sum()) > 0
    assert found.overall.difference.low < found.overall.difference.value


def sampled(inputs: int, queries: int, rng: np.random.Generator, seed: int) -> Any:
    """Facts of a build whose kernels deviate at small margins, and the sample that was drawn."""
    margin = rng.exponential(1.0, inputs)
    kernel = rng.random(inputs) < 0.5 * np.exp(-8.0 * margin)
    no = np.zeros(inputs, bool)
    design = SamplingDesign(margin, no, no, np.random.default_rng(seed))
    while len(design.draws.items) < queries:
        items = design.draw(min(design.round_size, queries - len(design.draws.items)))
        design.tell(items, kernel[items])
    asked = no.copy()
    asked[design.draws.items] = True
    seen = kernel & asked
    cells = (Cell("unchanged", 0),)
    facts = facts_of(cells, inputs, margin=margin, asked=asked, kernel=seen, deviates=seen)
    return facts, design.sample_of(asked)


@pytest.fixture(scope="module")
def document() -> SurveyDocument:
    return constructed_document()


def overall_alone(document: SurveyDocument, facts: SurveyFacts, sample: Sample) -> SurveyDocument:
    """A survey's document, in which only what a comparison over all looks at is of the facts."""
    rate = overall_rate(facts, sample, 0.95)
    return changed(document, overall__deviation=rate, by_condition__slices=())


@pytest.mark.parametrize(("inputs", "queries"), [(4000, (1600, 400)), (400, (390, 380))])
def test_builds_that_deviate_as_often_differ_in_nothing_however_often_each_was_asked(
    document: SurveyDocument, inputs: int, queries: tuple[int, int]
) -> None:
    """The pairs alone would say that the one that was asked more is worse.

    The limits of the two rates would say of most builds that they differ, where nearly all inputs
    were asked.
    """
    small = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        (before, sample), (after, drawn) = (sampled(inputs, n, rng, seed) for n in queries)
        baseline = BaselineSurvey("before", overall_alone(document, before, sample), before, sample)
        now = overall_alone(document, after, drawn)
        small += compare(after, drawn, now, baseline).overall.p < 0.05
    assert small <= 4


def test_the_same_survey_twice_differs_in_nothing(before: SurveyFacts) -> None:
    found = compared(before, before)
    for row in (found.overall, *found.by_condition):
        assert (row.only_now, row.only_before, row.p) == (0, 0, 1.0)
        assert row.difference.value == 0.0


def test_without_an_original_kernels_are_compared(before: SurveyFacts) -> None:
    alone = without_original(before)
    other = replace(alone, kernel=alone.kernel & (alone.cell != 2))
    found = compared(alone, other)
    assert found.overall.only_now == int((alone.kernel & (alone.cell == 2)).sum()) > 0


@pytest.mark.parametrize(
    ("asked", "left_out", "more", "has_original", "says"),
    [
        ({"sha256": 64 * "b"}, 0, (), True, "other inputs"),
        ({"rng_seed": 5}, 0, (), True, "give --rng-seed 0"),
        ({"confidence": 0.9}, 0, (), True, "give --confidence 0.95"),
        ({}, 0, (Cell("rain", 1),), True, "rain 1 is not in it"),
        ({}, 1, (), True, "dark 5 is only in it"),
        ({}, 0, (), False, "has an original, and the pair has none"),
    ],
)
def test_a_survey_of_other_items_is_refused(
    before: SurveyFacts,
    asked: dict[str, Any],
    left_out: int,
    more: tuple[Cell, ...],
    has_original: bool,
    says: str,
) -> None:
    own, baseline = AskedItems(64 * "a", 0, 0.95), constructed_baseline(before)
    require_same_items(own, before.cells, has_original=True, baseline=baseline)
    cells = [*before.cells[: len(before.cells) - left_out], *more]
    with pytest.raises(UserError, match=says):
        require_same_items(
            replace(own, **asked), cells, has_original=has_original, baseline=baseline
        )


@pytest.fixture(scope="module")
def facts() -> SurveyFacts:
    return constructed_facts(groups=("a", "b", "c"))


def differences(facts: SurveyFacts, sample: Sample | None = None) -> GroupDifferences:
    """Return the differences between groups where all items were asked, or a sample."""
    known = facts if sample is None else as_asked(facts, sample)
    found = group_differences(known, sample or whole_sample(facts), 0.95)
    assert found is not None
    return found


def apart(decisions: Numbers, label: int, *groups: np.ndarray) -> float:
    """How much more often a class is decided in one group than in another."""
    one, other = (float((decisions[group] == label).mean()) for group in groups)
    return one - other


def test_where_all_were_asked_differences_are_exact(facts: SurveyFacts) -> None:
    found = differences(facts)
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert found.confidence**3 == pytest.approx(0.95)
    arms = (facts.original_decision, facts.twin_decision, facts.device_decision)
    for pair in found.pairs:
        groups = (facts.group_names.index(name) for name in (pair.first, pair.second))
        sides = [(facts.cell > 0) & (facts.groups == group) for group in groups]
        a, b = (float(facts.deviates[side].mean()) for side in sides)
        assert pair.deviation.value == pytest.approx(a - b)
        assert pair.deviation.low == pytest.approx(pair.deviation.high)
        drops = [
            float(facts.original_right[known].mean() - facts.device_right[known].mean())
            for known in (side & facts.labelled for side in sides)
        ]
        assert pair.accuracy_drop is not None
        assert pair.accuracy_drop.value == pytest.approx(drops[0] - drops[1])
        for arm, decisions in zip(("original", "twin", "device"), arms, strict=True):
            assert decisions is not None
            spd, aaod, eod = (getattr(one, arm) for one in (pair.spd, pair.aaod, pair.eod))
            decided = [apart(decisions, label, *sides) for label in range(CLASSES)]
            assert abs(spd.value) == pytest.approx(max(map(abs, decided)))
            assert spd.value == pytest.approx(decided[spd.label])
            assert spd.low == pytest.approx(spd.high)
            true, false = (
                [
                    apart(decisions, label, *(side & facts.labelled & among for side in sides))
                    for label, among in enumerate(every)
                ]
                for every in (
                    [facts.classes == label for label in range(CLASSES)],
                    [facts.classes != label for label in range(CLASSES)],
                )
            )
            assert eod.value == pytest.approx(true[eod.label])
            assert abs(eod.value) == pytest.approx(max(map(abs, true)))
            both = [(abs(one) + abs(other)) / 2 for one, other in zip(true, false, strict=True)]
            assert aaod.value == pytest.approx(max(both))
            assert aaod.value == pytest.approx(both[aaod.label])


def test_only_the_odds_count_false_positives(facts: SurveyFacts) -> None:
    """Where each label is met as often in all groups, and missed for another class in one."""
    first = facts.groups == facts.group_names.index("a")
    decisions = np.where(facts.classes == 2, np.where(first, 0, 1), facts.classes)
    among = facts.labelled & (facts.cell > 0)
    for pair in differences(replace(facts, original_decision=decisions)).pairs[:2]:
        other = facts.groups == facts.group_names.index(pair.second)
        falsely = [
            float((facts.classes[among & group & (facts.classes != label)] == 2).mean())
            for group, label in ((first, 0), (other, 1))
        ]
        assert pair.aaod is not None
        assert pair.aaod.original is not None
        assert pair.aaod.original.value == pytest.approx(max(falsely) / 2)
        assert pair.aaod.original.label == falsely.index(max(falsely))
        assert pair.eod is not None
        assert pair.eod.original is not None
        assert pair.eod.original.value == 0.0


def test_numbers_of_classes_say_nothing(facts: SurveyFacts) -> None:
    """Those of joint decisions may be as large as 64 bits hold."""
    names = ("classes", "original_decision", "twin_decision", "device_decision")

    def renumbered(classes: Numbers) -> Numbers:
        return np.where(classes >= 0, classes * 10**18 + 7, -1)

    changes: dict[str, Any] = {name: renumbered(getattr(facts, name)) for name in names}
    far = replace(facts, **changes)
    for pair, same in zip(differences(facts).pairs, differences(far).pairs, strict=True):
        for gaps, theirs in zip((pair.spd, pair.aaod), (same.spd, same.aaod), strict=True):
            assert gaps is not None
            assert gaps.twin is not None
            label = gaps.twin.label * 10**18 + 7
            assert theirs is not None
            assert theirs.twin == replace(gaps.twin, label=label)


def test_of_two_classes_it_is_the_second_whose_difference_has_a_sign(facts: SurveyFacts) -> None:
    """So it is that of the favourable class, 1, as the measures are defined."""
    first = facts.groups == facts.group_names.index("a")
    more = np.where(first & (facts.input % 2 == 0), 1, 0)
    (pair, *_) = differences(replace(facts, original_decision=more, twin_decision=more)).pairs
    assert pair.spd is not None
    assert pair.spd.original is not None
    assert pair.spd.original.label == 1
    assert pair.spd.original.value > 0.0


def test_a_sample_gives_intervals_around_the_truth(facts: SurveyFacts) -> None:
    found = differences(facts, drawn_sample(facts, 0.3))
    for pair, exact in zip(found.pairs, differences(facts).pairs, strict=True):
        assert pair.deviation.low <= exact.deviation.value <= pair.deviation.high
        assert pair.accuracy_drop is not None
        assert exact.accuracy_drop is not None
        assert pair.accuracy_drop.low <= exact.accuracy_drop.value <= pair.accuracy_drop.high
        measured = (pair.spd, pair.aaod, pair.eod), (exact.spd, exact.aaod, exact.eod)
        for gaps, exactly in zip(*measured, strict=True):
            assert gaps is not None
            assert exactly is not None
            assert gaps.original == exactly.original
            assert gaps.device is not None
            assert exactly.device is not None
            assert -1.0 <= gaps.device.low < gaps.device.high <= 1.0
            if gaps.device.label == exactly.device.label:
                assert gaps.device.low <= exactly.device.value <= gaps.device.high


def test_groups_beyond_ten_are_left_out_the_smallest_first() -> None:
    facts = constructed_facts(groups=tuple("abcdefghijkl"))
    few = np.where(facts.groups == 3, 4, facts.groups)
    few[facts.input == 3] = 3
    found = differences(replace(facts, groups=few))
    assert found.left_out == 2
    assert len(found.pairs) == COMPARED_GROUPS * (COMPARED_GROUPS - 1) // 2
    assert not any("d" in (pair.first, pair.second) for pair in found.pairs)


@pytest.mark.slow
def test_a_thousand_classes_take_no_thousand_times_the_memory() -> None:
    items, classes = 40_000, 1_000
    label = np.arange(items) % classes
    facts = facts_of(
        (Cell("unchanged", 0),),
        items,
        **dict.fromkeys(
            ("classes", "original_decision", "twin_decision", "device_decision"), label
        ),
        labelled=np.ones(items, bool),
        groups=np.arange(items) % 3,
        group_names=("a", "b", "c"),
    )
    tracemalloc.start()
    found = group_differences(facts, whole_sample(facts), 0.95)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    assert taken < classes * items / 2  # a byte of each item for each class, twice over


@pytest.mark.parametrize("groups", [(), ("all",)])
def test_one_group_or_none_has_no_differences(groups: tuple[str, ...]) -> None:
    facts = constructed_facts(groups=groups)
    assert group_differences(facts, whole_sample(facts), 0.95) is None


def test_what_cannot_be_computed_is_none(facts: SurveyFacts) -> None:
    for pair in differences(with_distances(facts)).pairs:
        assert [pair.spd, pair.aaod, pair.eod, pair.accuracy_drop] == [None] * 4
    unlabelled = replace(facts, labelled=np.zeros(facts.items, bool))
    for pair in differences(unlabelled).pairs:
        assert [pair.aaod, pair.eod] == [None, None]
        assert pair.spd is not None
    for pair in differences(without_original(facts)).pairs:
        assert pair.accuracy_drop is None
        assert pair.spd is not None
        assert pair.spd.original is None
        assert None not in (pair.spd.twin, pair.spd.device)
