"""Tests of edgeflare.survey.rates.group_differences: exact, and never too sure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from constructed_surveys import (
    CLASSES,
    as_asked,
    constructed_facts,
    drawn_sample,
    whole_sample,
    with_distances,
    without_original,
)
from edgeflare.survey.items.survey_facts import Numbers, SurveyFacts
from edgeflare.survey.rates.group_differences import COMPARED_GROUPS, group_differences


@pytest.fixture(scope="module")
def facts() -> SurveyFacts:
    return constructed_facts(groups=("a", "b", "c"))


def largest_gap(facts: SurveyFacts, decisions: Numbers, one: int, other: int) -> float:
    """The statistical parity difference, counted one class after the other."""
    among = facts.cell > 0
    shares = [
        [(decisions[among & (facts.groups == group)] == label).mean() for label in range(CLASSES)]
        for group in (one, other)
    ]
    return float(np.abs(np.array(shares[0]) - np.array(shares[1])).max())


def largest_odds(facts: SurveyFacts, decisions: Numbers, one: int, other: int) -> float:
    """The equal odds difference, counted one class after the other."""
    known = (facts.cell > 0) & facts.labelled
    gaps = []
    for label in range(CLASSES):
        for among in (known & (facts.classes == label), known & (facts.classes != label)):
            a, b = ((decisions[among & (facts.groups == g)] == label).mean() for g in (one, other))
            gaps.append(abs(a - b))
    return float(max(gaps))


def test_where_all_were_asked_differences_are_exact(facts: SurveyFacts) -> None:
    found = group_differences(facts, whole_sample(facts), 0.95)
    assert found is not None
    assert [(pair.one, pair.other) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.confidence**3 == pytest.approx(0.95)
    arms = (facts.original_decision, facts.twin_decision, facts.device_decision)
    for pair in found.pairs:
        one, other = (facts.group_names.index(name) for name in (pair.one, pair.other))
        sides = [(facts.cell > 0) & (facts.groups == group) for group in (one, other)]
        a, b = (float(facts.deviates[side].mean()) for side in sides)
        assert pair.deviation.estimate == pytest.approx(a - b)
        assert pair.deviation.low == pytest.approx(pair.deviation.high)
        drops = [
            float(facts.original_right[known].mean() - facts.device_right[known].mean())
            for known in (side & facts.labelled for side in sides)
        ]
        assert pair.accuracy_drop is not None
        assert pair.accuracy_drop.estimate == pytest.approx(drops[0] - drops[1])
        assert pair.parity is not None
        assert pair.odds is not None
        for arm, decisions in zip(("original", "twin", "device"), arms, strict=True):
            assert decisions is not None
            parity = largest_gap(facts, decisions, one, other)
            assert pair.parity[arm].estimate == pytest.approx(parity)
            assert pair.odds[arm].estimate == pytest.approx(
                largest_odds(facts, decisions, one, other)
            )
            assert pair.parity[arm].low == pytest.approx(pair.parity[arm].high)


def test_equal_odds_are_of_false_positives_too(facts: SurveyFacts) -> None:
    """Where each label is met as often in all groups, and missed for another class in one."""
    first = facts.groups == facts.group_names.index("a")
    decisions = np.where(facts.classes == 2, np.where(first, 0, 1), facts.classes)
    found = group_differences(
        replace(facts, original_decision=decisions), whole_sample(facts), 0.95
    )
    assert found is not None
    among = facts.labelled & (facts.cell > 0)
    for pair in found.pairs[:2]:
        other = facts.groups == facts.group_names.index(pair.other)
        falsely = [
            float((facts.classes[among & group & (facts.classes != label)] == 2).mean())
            for group, label in ((first, 0), (other, 1))
        ]
        assert pair.odds is not None
        assert pair.odds["original"].estimate == pytest.approx(max(falsely))
        assert pair.odds["original"].label == falsely.index(max(falsely))


def test_a_sample_gives_intervals_around_the_truth(facts: SurveyFacts) -> None:
    truth = group_differences(facts, whole_sample(facts), 0.95)
    sample = drawn_sample(facts, 0.3)
    found = group_differences(as_asked(facts, sample), sample, 0.95)
    assert found is not None
    assert truth is not None
    for pair, exact in zip(found.pairs, truth.pairs, strict=True):
        assert pair.deviation.low <= exact.deviation.estimate <= pair.deviation.high
        assert pair.accuracy_drop is not None
        assert exact.accuracy_drop is not None
        assert pair.accuracy_drop.low <= exact.accuracy_drop.estimate <= pair.accuracy_drop.high
        for gaps, exactly in ((pair.parity, exact.parity), (pair.odds, exact.odds)):
            assert gaps is not None
            assert exactly is not None
            assert gaps["original"] == exactly["original"]
            device = gaps["device"]
            assert 0.0 <= device.low <= exactly["device"].estimate <= device.high <= 1.0
            assert device.low < device.high


def test_groups_beyond_ten_are_left_out_the_smallest_first() -> None:
    names = tuple("abcdefghijkl")
    facts = constructed_facts(groups=names)
    few = np.where(facts.groups == 3, 4, facts.groups)
    few[facts.input == 3] = 3
    facts = replace(facts, groups=few)
    found = group_differences(facts, whole_sample(facts), 0.95)
    assert found is not None
    assert found.left_out == 2
    assert len(found.pairs) == COMPARED_GROUPS * (COMPARED_GROUPS - 1) // 2
    assert not any("d" in (pair.one, pair.other) for pair in found.pairs)


@pytest.mark.parametrize("groups", [(), ("all",)])
def test_one_group_or_none_has_no_differences(groups: tuple[str, ...]) -> None:
    facts = constructed_facts(groups=groups)
    assert group_differences(facts, whole_sample(facts), 0.95) is None


def test_what_cannot_be_computed_is_none(facts: SurveyFacts) -> None:
    measured = group_differences(with_distances(facts), whole_sample(facts), 0.95)
    assert measured is not None
    for pair in measured.pairs:
        assert (pair.parity, pair.odds, pair.accuracy_drop) == (None, None, None)
    unlabelled = replace(facts, labelled=np.zeros(facts.items, bool))
    found = group_differences(unlabelled, whole_sample(facts), 0.95)
    assert found is not None
    assert all(pair.odds is None and pair.parity for pair in found.pairs)
    alone = group_differences(without_original(facts), whole_sample(facts), 0.95)
    assert alone is not None
    for pair in alone.pairs:
        assert pair.accuracy_drop is None
        assert pair.parity is not None
        assert set(pair.parity) == {"twin", "device"}
