"""Tests of edgeflare.repair.shifts.input_matching."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.repair.shifts.input_matching import match, matched_share
from edgeflare.repair.shifts.repair_samples import Samples
from repairing import OUTPUT, World, shifts


def at_margins(steps: list[int], on_side: bool) -> Samples:
    raw = np.full((len(steps), 4), -128, np.int8)
    raw[:, 0], raw[:, 1] = steps, 0
    ids = np.arange(len(steps))
    label = np.zeros(len(steps), np.int64)
    return Samples(ids, label if on_side else label + 1, label, raw, OUTPUT)


def test_margins_and_sides_are_distributed_as_those_of_the_triggers() -> None:
    world = World(shifts(c01=8, c23=-16), noise=0.1)
    near = world.near(8000)
    triggers, agreeing = near.take(near.deviating), near.take(~near.deviating)
    weights = match(triggers, agreeing)
    assert weights.sum() == pytest.approx(len(triggers), rel=0.02)
    mean = np.average(agreeing.margins, weights=weights)
    assert mean == pytest.approx(triggers.margins.mean(), rel=0.02)
    assert mean < 0.9 * agreeing.margins.mean()
    sides = np.average(agreeing.on_seeds_side, weights=weights)
    assert sides == pytest.approx(triggers.on_seeds_side.mean(), abs=0.02)


def test_inputs_with_other_margins_count_for_nothing() -> None:
    weights = match(at_margins([2, 3, 4], True), at_margins([1, 3, 40], True))
    assert weights[0] == weights[2] == 0.0 < weights[1]


def test_a_trigger_without_its_like_is_not_matched() -> None:
    triggers = at_margins([2, 3, 4], True)
    assert matched_share(triggers, match(triggers, at_margins([2, 3, 4], False))) == 0.0
    assert matched_share(triggers, match(triggers, at_margins([2, 3, 4], True))) == 1.0
