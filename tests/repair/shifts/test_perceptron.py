"""Tests of edgeflare.repair.shifts.perceptron."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.repair.shifts.perceptron import second_class, train, train_abstaining
from repairing import World, shifts


def test_the_perceptron_learns_the_triggers_and_breaks_their_like() -> None:
    inputs = World(shifts(c01=12, c23=-12), seeds=200, noise=0.05).training()
    repair = train(inputs, 0)
    assert (repair(inputs.triggers) == inputs.triggers.originals).mean() > 0.4
    assert (repair(inputs.seeds) == inputs.seeds.originals).mean() > 0.95
    assert (repair(inputs.agreeing) != inputs.agreeing.originals).mean() > 0.1


def test_the_same_generator_gives_the_same_perceptron() -> None:
    inputs = World(shifts(c01=12), noise=0.05).training(near=800)
    labels = [train(inputs, number)(inputs.agreeing) for number in (1, 1, 2)]
    assert (labels[0] == labels[1]).all()
    assert (labels[0] != labels[2]).any()


@pytest.mark.slow
def test_abstaining_leaves_alone_what_it_is_not_sure_of() -> None:
    inputs = World(shifts(), seeds=200, noise=0.1).training()
    always, sure = train(inputs, 0), train_abstaining(inputs, 0)
    before = inputs.agreeing.labels
    changed = [(repair(inputs.agreeing) != before).mean() for repair in (always, sure)]
    assert changed[1] < 0.5 * changed[0]


def test_the_second_class_is_the_second() -> None:
    near = World(shifts()).near(50)
    assert (second_class(near) == np.argsort(near.raw, axis=1)[:, -2]).all()


def test_no_samples_are_no_trouble() -> None:
    inputs = World(shifts(c01=12)).training(near=800)
    assert len(train(inputs, 0)(inputs.agreeing.take(np.array([], np.int64)))) == 0
