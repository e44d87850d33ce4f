"""Tests of edgeflare.repair.shifts.shift_fitting."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.repair.shifts.shift_effects import ShiftEffects, fold_rows, shift_effects
from edgeflare.repair.shifts.shift_fitting import fit
from edgeflare.repair.shifts.shifts import Shifts
from edgeflare.repair.shifts.training_inputs import TrainingInputs
from repairing import World, shifts


def fitted(training: TrainingInputs) -> Shifts:
    return fit(shift_effects(training), fold_rows(training.folds(0))).shifts


def test_boundaries_that_were_moved_are_found() -> None:
    found = fitted(World(shifts(c01=8, c23=-12)).training()).steps
    assert found[0, 1] == pytest.approx(8, abs=2)
    assert found[2, 3] == pytest.approx(-12, abs=2)
    assert np.count_nonzero(found) == 4


def test_what_was_found_mends_inputs_that_it_was_not_fitted_to() -> None:
    world = World(shifts(c01=8, c23=-12, c02=5), noise=0.02)
    found = fitted(world.training())
    fresh = world.near(3000)
    after = found.apply(fresh.raw, fresh.tensor).argmax(axis=1) != fresh.originals
    assert after.mean() < 0.4 * fresh.deviating.mean()


def test_where_deviations_are_noise_nothing_is_moved() -> None:
    training = World(shifts(), noise=0.1).training()
    found = fit(shift_effects(training), fold_rows(training.folds(0)))
    assert found.pairs == 0
    assert found.strength is None


def test_inputs_as_they_come_hold_back_what_gains_on_the_mixture_alone() -> None:
    # Of inputs whose top is class 0 before 1, three in ten deviate, of others one in ten: half of
    # the mixture does, so a shift gains there; as they come it would make twice as many deviate.
    world = World(shifts(), noise=0.1)
    training = world.training()
    rng = np.random.default_rng(1)
    parts = []
    for part in (world.near(9000), world.near(9000)):
        top = (part.labels == 0) & (part.seconds == 1)
        originals = np.where(top & (rng.random(len(part)) < 0.2), part.seconds, part.originals)
        parts.append(type(part)(part.seed_ids, part.seed_labels, originals, part.raw, part.tensor))
    led, sampled = parts
    deviating = led.take(led.deviating)
    firsts = np.unique(deviating.seed_ids, return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(deviating)), firsts)
    training = TrainingInputs(
        deviating.take(firsts),
        training.seeds,
        led.take(~led.deviating),
        deviating.take(rest),
        sampled,
        training.mixture,
    )
    effects, rows = shift_effects(training), fold_rows(training.folds(0))
    alone = fit(effects.mixture_only, rows[effects.mixed]).shifts
    assert alone.steps[0, 1] < 0
    assert fit(effects, rows).shifts.steps[0, 1] == 0
    assert effects.ceiling > 0.0


def test_a_fold_that_is_held_out_decides_nothing() -> None:
    training = World(shifts(c01=8), noise=0.1).training(near=2000)
    effects, rows = shift_effects(training), fold_rows(training.folds(0))
    changed = effects.gains.copy()
    changed[rows == 2] = -1
    spoiled = ShiftEffects(effects.inputs, effects.pairs, effects.pair, changed, effects.mixed)
    originals = effects.inputs.originals.copy()
    originals[rows == 2] = 3
    spoiled.inputs.originals[:] = originals
    with_it = fit(spoiled, rows, without=2).table
    assert (with_it == fit(shift_effects(training), rows, without=2).table).all()
