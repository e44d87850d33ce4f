"""Tests of edgeflare.repair.shifts.shift_effects."""

from __future__ import annotations

import numpy as np

from edgeflare.repair.shifts.repair_samples import together
from edgeflare.repair.shifts.shift_effects import GRID, shift_effects
from edgeflare.repair.shifts.shifts import STEP, Shifts
from repairing import CLASSES, World, shifts


def test_gains_are_what_the_shifts_do() -> None:
    training = World(shifts(c01=8, c23=-12), noise=0.1).training(near=300)
    effects = shift_effects(training)
    kinds = (training.deviating, training.agreeing, training.seeds, training.sampled)
    samples = together(kinds)
    for place in range(0, len(GRID), 7):
        for at, (a, b) in enumerate(effects.pairs.tolist()):
            table = np.zeros((CLASSES, CLASSES), np.int8)
            table[a, b] = round(GRID[place] / STEP)
            table[b, a] = -table[a, b]
            rows = np.flatnonzero(effects.pair == at)
            after = Shifts(table).apply(samples.raw[rows], samples.tensor).argmax(axis=1)
            right = (after == samples.originals[rows]).astype(int)
            changed = right - ~samples.deviating[rows]
            assert (effects.gains[rows, place] == changed).all()
