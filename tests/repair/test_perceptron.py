"""Tests of edgeflare.repair.perceptron."""

from __future__ import annotations

import numpy as np

from edgeflare.repair.perceptron import second_class, train, train_abstaining
from repairing import World, shifts


def test_the_perceptron_learns_the_triggers_and_breaks_their_like() -> None:
    material = World(shifts(c01=12, c23=-12), seeds=200, noise=0.05).material()
    repair = train(material, 0)
    assert (repair(material.triggers) == material.triggers.originals).mean() > 0.4
    assert (repair(material.seeds) == material.seeds.originals).mean() > 0.95
    assert (repair(material.agreeing) != material.agreeing.originals).mean() > 0.1


def test_the_same_generator_gives_the_same_perceptron() -> None:
    material = World(shifts(c01=12), noise=0.05).material(near=800)
    labels = [train(material, number)(material.agreeing) for number in (1, 1, 2)]
    assert (labels[0] == labels[1]).all()
    assert (labels[0] != labels[2]).any()


def test_abstaining_leaves_alone_what_it_is_not_sure_of() -> None:
    material = World(shifts(), seeds=200, noise=0.1).material()
    always, sure = train(material, 0), train_abstaining(material, 0)
    before = material.agreeing.labels
    changed = [(repair(material.agreeing) != before).mean() for repair in (always, sure)]
    assert changed[1] < 0.5 * changed[0]


def test_the_second_class_is_the_second() -> None:
    near = World(shifts()).near(50)
    assert (second_class(near) == np.argsort(near.raw, axis=1)[:, -2]).all()


def test_no_samples_are_no_trouble() -> None:
    material = World(shifts(c01=12)).material(near=800)
    assert len(train(material, 0)(material.agreeing.take(np.array([], np.int64)))) == 0
