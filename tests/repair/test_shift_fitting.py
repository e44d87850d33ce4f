"""Tests of edgeflare.repair.shift_fitting."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.repair.shift_effects import ShiftEffects, fold_rows, shift_effects
from edgeflare.repair.shift_fitting import fit
from edgeflare.repair.shifts import Shifts
from edgeflare.repair.training_inputs import TrainingInputs
from repairing import World, shifts


def fitted(material: TrainingInputs) -> Shifts:
    return fit(shift_effects(material), fold_rows(material.folds(0))).shifts


def test_boundaries_that_were_moved_are_found() -> None:
    found = fitted(World(shifts(c01=8, c23=-12)).material()).steps
    assert found[0, 1] == pytest.approx(8, abs=2)
    assert found[2, 3] == pytest.approx(-12, abs=2)
    assert np.count_nonzero(found) == 4


def test_what_was_found_mends_inputs_that_it_was_not_fitted_to() -> None:
    world = World(shifts(c01=8, c23=-12, c02=5), noise=0.02)
    found = fitted(world.material())
    fresh = world.near(3000)
    after = found.apply(fresh.raw, fresh.tensor).argmax(axis=1) != fresh.originals
    assert after.mean() < 0.4 * fresh.deviating.mean()


def test_where_deviations_are_noise_nothing_is_moved() -> None:
    material = World(shifts(), noise=0.1).material()
    found = fit(shift_effects(material), fold_rows(material.folds(0)))
    assert found.pairs == 0
    assert found.strength is None


def test_inputs_as_they_come_hold_back_what_gains_on_the_mixture_alone() -> None:
    # Of inputs whose top is class 0 before 1, three in ten deviate, of others one in ten: half of
    # the mixture does, so a shift gains there; as they come it would make twice as many deviate.
    world = World(shifts(), noise=0.1)
    material = world.material()
    rng = np.random.default_rng(1)
    parts = []
    for part in (world.near(9000), world.near(9000)):
        top = (part.labels == 0) & (part.seconds == 1)
        originals = np.where(top & (rng.random(len(part)) < 0.2), part.seconds, part.originals)
        parts.append(type(part)(part.seed_ids, part.seed_labels, originals, part.raw, part.tensor))
    led, unled = parts
    deviating = led.take(led.deviating)
    firsts = np.unique(deviating.seed_ids, return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(deviating)), firsts)
    material = TrainingInputs(
        deviating.take(firsts),
        material.seeds,
        led.take(~led.deviating),
        deviating.take(rest),
        unled,
        material.mixture,
    )
    gains, rows = shift_effects(material), fold_rows(material.folds(0))
    alone = fit(gains.mixture_only, rows[gains.mixed]).shifts
    assert alone.steps[0, 1] < 0
    assert fit(gains, rows).shifts.steps[0, 1] == 0
    assert gains.ceiling > 0.0


def test_a_fold_that_is_held_out_decides_nothing() -> None:
    material = World(shifts(c01=8), noise=0.1).material(near=2000)
    gains, rows = shift_effects(material), fold_rows(material.folds(0))
    changed = gains.gains.copy()
    changed[rows == 2] = -1
    spoiled = ShiftEffects(gains.inputs, gains.pairs, gains.pair, changed, gains.mixed)
    originals = gains.inputs.originals.copy()
    originals[rows == 2] = 3
    spoiled.inputs.originals[:] = originals
    with_it = fit(spoiled, rows, without=2).table
    assert (with_it == fit(shift_effects(material), rows, without=2).table).all()
