"""Tests of edgeflare.repair.cross_validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from edgeflare.repair.cross_validation import REPAIRERS, JudgedRepairer, evaluate
from edgeflare.repair.folds import FOLDS, SPLITS
from edgeflare.repair.shift_effects import shift_effects
from edgeflare.repair.training_inputs import TrainingInputs
from repairing import World, shifts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def material() -> TrainingInputs:
    return World(shifts(c01=10, c23=-10), noise=0.03).material(near=3000)


@pytest.fixture(scope="module")
def columns(material: TrainingInputs) -> Mapping[str, JudgedRepairer]:
    told: list[tuple[int, int]] = []
    found = evaluate(material, shift_effects(material), lambda *far: told.append(far))
    assert told[-1] == (SPLITS * FOLDS, SPLITS * FOLDS)
    return found


def test_counts_and_ratios_are_those_of_the_paper(
    material: TrainingInputs, columns: Mapping[str, JudgedRepairer]
) -> None:
    in_fold = len(material.triggers) / FOLDS
    assert tuple(columns) == REPAIRERS
    for column in columns.values():
        assert column.repair_count == pytest.approx(column.repair_ratio * in_fold)
        assert column.inducing_count == pytest.approx(column.inducing_ratio * in_fold)
        assert column.improvement_ratio == pytest.approx(
            column.repair_ratio - column.inducing_ratio
        )
        assert column.net.value == pytest.approx(
            (column.repair_ratio - column.induced_agreeing - column.inducing_ratio) / 3
        )


def test_always_answering_with_the_second_class_repairs_all_and_breaks_all(
    material: TrainingInputs, columns: Mapping[str, JudgedRepairer]
) -> None:
    second = columns["second-class"]
    assert second.repair_ratio > 0.95
    assert second.inducing_ratio == second.induced_agreeing == 1.0
    assert second.net.high < 0.0
    assert second.unled_ratio is not None
    assert second.unled_ratio > 1.0
    before = material.unled.deviating
    assert second.unled_broken == (~before).sum()
    assert 0.9 * before.sum() < second.unled_mended <= before.sum()


def test_shifts_do_better_than_the_papers_design(columns: Mapping[str, JudgedRepairer]) -> None:
    shifted, paper = columns["shifts"], columns["perceptron"]
    assert shifted.net.low > 0.0
    assert shifted.net.value > paper.net.value
    assert shifted.unled_ratio is not None
    assert shifted.unled_ratio < 1.0


def test_inputs_as_they_come_are_counted_where_none_deviated_before(
    material: TrainingInputs,
) -> None:
    unled = material.unled
    agreeing = replace(material, unled=unled.take(~unled.deviating))
    column = evaluate(agreeing, shift_effects(agreeing), lambda *_: None)["second-class"]
    assert column.unled_ratio is None
    assert column.unled_mended == 0.0
    assert column.unled_broken == len(agreeing.unled)
