"""Tests of edgeflare.survey.rates.baseline: pairs of the same items, and what must be the same."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constructed_surveys import (
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    without_original,
)
from edgeflare.errors import UserError
from edgeflare.run.sign_test import sign_test
from edgeflare.survey.estimate.sampling_design import SamplingDesign
from edgeflare.survey.items.survey_facts import Cell, SurveyFacts
from edgeflare.survey.rates.baseline import compare, require_same_items
from survey_results import facts_of


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


def test_changes_are_counted_over_all_and_by_condition(
    before: SurveyFacts, after: SurveyFacts
) -> None:
    found = compare(after, constructed_document(after), constructed_baseline(before))
    old = before.deviates & ~before.deviates_tied
    new = after.deviates & ~after.deviates_tied
    only_now = int((new & ~old & (before.cell > 0)).sum())
    assert found.run == "before"
    assert found.overall.both == before.items - before.inputs
    assert (found.overall.only_now, found.overall.only_before) == (only_now, 0)
    assert found.overall.test == "mcnemar"
    assert found.overall.p == found.overall.p_corrected == sign_test(0, only_now) < 1e-6
    assert found.overall.difference.estimate == pytest.approx(only_now / found.overall.both)
    fog, dark = found.by_condition
    assert (fog.condition, fog.only_now, fog.p_corrected) == ("fog", only_now, 2 * fog.p)
    assert (dark.condition, dark.only_now, dark.p, dark.p_corrected) == ("dark", 0, 1.0, 1.0)
    assert fog.difference.estimate == pytest.approx(only_now / fog.both)


def test_only_items_asked_in_both_are_pairs(before: SurveyFacts, after: SurveyFacts) -> None:
    one, other = drawn_sample(before, 0.3, 1), drawn_sample(before, 0.3, 2)
    document = constructed_document(after, one)
    found = compare(as_asked(after, one), document, constructed_baseline(before, other))
    both = one.asked & other.asked & (before.cell > 0)
    assert found.overall.both == int(both.sum()) == sum(row.both for row in found.by_condition)
    old = before.deviates & ~before.deviates_tied
    new = after.deviates & ~after.deviates_tied
    assert found.overall.only_now == int((new & ~old & both).sum()) > 0
    assert found.overall.difference.low < found.overall.difference.estimate


def test_builds_that_deviate_as_often_differ_in_nothing_however_often_each_was_asked() -> None:
    """The pairs alone would say that the one that was asked more is worse."""
    cells, inputs = (Cell("unchanged", 0),), 4_000
    small = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        surveys = []
        for queries in (1600, 400):
            margin = rng.exponential(1.0, inputs)
            kernel = rng.random(inputs) < 0.5 * np.exp(-8.0 * margin)
            no = np.zeros(inputs, bool)
            design = SamplingDesign(margin, no, no, np.random.default_rng(seed))
            while len(design.draws.items) < queries:
                items = design.draw(min(design.round_size, queries - len(design.draws.items)))
                design.tell(items, kernel[items])
            asked = no.copy()
            asked[design.draws.items] = True
            facts = facts_of(cells, inputs, margin=margin, asked=asked, kernel=kernel & asked,
                             deviates=kernel & asked)  # fmt: skip
            surveys.append((facts, design.sample_of(asked)))
        (before, sample), (after, drawn) = surveys
        document = constructed_document(after, drawn)
        found = compare(after, document, constructed_baseline(before, sample)).overall
        small += found.p < 0.05
    assert small <= 4


def test_the_same_survey_twice_differs_in_nothing(before: SurveyFacts) -> None:
    found = compare(before, constructed_document(before), constructed_baseline(before))
    for row in (found.overall, *found.by_condition):
        assert (row.only_now, row.only_before, row.p) == (0, 0, 1.0)
        assert row.difference.estimate == 0.0


def test_without_an_original_kernels_are_compared(before: SurveyFacts) -> None:
    alone = without_original(before)
    other = replace(alone, kernel=alone.kernel & (alone.cell != 2))
    found = compare(alone, constructed_document(alone), constructed_baseline(other))
    assert found.overall.only_now == int((alone.kernel & (alone.cell == 2)).sum()) > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"inputs": {"path": None, "sha256": 64 * "b", "count": 60}}, "has other inputs"),
        ({"rng_seed": 5}, "give --rng-seed 0"),
        ({"confidence": 0.9}, "give --confidence 0.95"),
    ],
)
def test_a_survey_of_other_items_is_refused(
    before: SurveyFacts, change: dict[str, Any], says: str
) -> None:
    plan = deepcopy(about_survey()["plan"]) | change
    baseline = constructed_baseline(before)
    with pytest.raises(UserError, match=says):
        require_same_items(plan, before.cells, has_original=True, baseline=baseline)


def test_other_cells_and_another_kind_of_pair_are_refused(before: SurveyFacts) -> None:
    plan, baseline = about_survey()["plan"], constructed_baseline(before)
    with pytest.raises(UserError, match="rain 1 is not in it"):
        require_same_items(
            plan, [*before.cells, Cell("rain", 1)], has_original=True, baseline=baseline
        )
    with pytest.raises(UserError, match="dark 5 is only in it"):
        require_same_items(plan, before.cells[:-1], has_original=True, baseline=baseline)
    with pytest.raises(UserError, match="has an original, and the pair has none"):
        require_same_items(plan, before.cells, has_original=False, baseline=baseline)
    require_same_items(plan, before.cells, has_original=True, baseline=baseline)
