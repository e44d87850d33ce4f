"""Tests of edgeflare.repair.shifts.cross_validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from edgeflare.repair.shifts.cross_validation import REPAIRERS, JudgedRepairer, evaluate
from edgeflare.repair.shifts.fold_assignment import FOLDS, SPLITS
from edgeflare.repair.shifts.shift_effects import shift_effects
from edgeflare.repair.shifts.training_inputs import TrainingInputs
from repairing import World, shifts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inputs() -> TrainingInputs:
    return World(shifts(c01=10, c23=-10), noise=0.03).training(near=3000)


@pytest.fixture(scope="module")
def repairers(inputs: TrainingInputs) -> Mapping[str, JudgedRepairer]:
    told: list[tuple[int, int]] = []
    found = evaluate(inputs, shift_effects(inputs), lambda *far: told.append(far))
    assert told[-1] == (SPLITS * FOLDS, SPLITS * FOLDS)
    return found


def test_counts_and_ratios_are_those_of_the_paper(
    inputs: TrainingInputs, repairers: Mapping[str, JudgedRepairer]
) -> None:
    in_fold = len(inputs.triggers) / FOLDS
    assert tuple(repairers) == REPAIRERS
    for judged in repairers.values():
        assert judged.repair_count == pytest.approx(judged.repair_ratio * in_fold)
        assert judged.inducing_count == pytest.approx(judged.inducing_ratio * in_fold)
        assert judged.improvement_ratio == pytest.approx(
            judged.repair_ratio - judged.inducing_ratio
        )
        assert judged.net.value == pytest.approx(
            (judged.repair_ratio - judged.induced_agreeing - judged.inducing_ratio) / 3
        )


def test_always_answering_with_the_second_class_repairs_all_and_breaks_all(
    inputs: TrainingInputs, repairers: Mapping[str, JudgedRepairer]
) -> None:
    second = repairers["second-class"]
    assert second.repair_ratio > 0.95
    assert second.inducing_ratio == second.induced_agreeing == 1.0
    assert second.net.high < 0.0
    assert second.sampled_ratio is not None
    assert second.sampled_ratio > 1.0
    before = inputs.sampled.deviating
    assert second.sampled_induced == (~before).sum()
    assert 0.9 * before.sum() < second.sampled_repaired <= before.sum()


def test_shifts_do_better_than_the_papers_design(repairers: Mapping[str, JudgedRepairer]) -> None:
    shifted, paper = repairers["shifts"], repairers["perceptron"]
    assert shifted.net.low > 0.0
    assert shifted.net.value > paper.net.value
    assert shifted.sampled_ratio is not None
    assert shifted.sampled_ratio < 1.0


def test_inputs_as_they_come_are_counted_where_none_deviated_before(
    inputs: TrainingInputs,
) -> None:
    sampled = inputs.sampled
    agreeing = replace(inputs, sampled=sampled.take(~sampled.deviating))
    judged = evaluate(agreeing, shift_effects(agreeing), lambda *_: None)["second-class"]
    assert judged.sampled_ratio is None
    assert judged.sampled_repaired == 0.0
    assert judged.sampled_induced == len(agreeing.sampled)
