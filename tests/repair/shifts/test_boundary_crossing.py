"""Tests of edgeflare.repair.shifts.boundary_crossing."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Goal
from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.repair.shifts.boundary_crossing import POINTS, cross_boundary
from edgeflare.search.operator_pool import built_in_pool
from edgeflare.search.strategy import AskTellSearch, Start

SEED = np.full((8, 8, 1), 128, np.uint8)


def answer(label: int) -> Answer:
    vector = np.array([1.0 - label, float(label)])
    return Answer(label, False, vector, vector)


def outcome(device: int, original: int) -> Outcome:
    return Outcome({Arm.ORIGINAL: answer(original), Arm.DEVICE: answer(device)})


def looks(device: Any, original: Any, bounds: Bounds | None = None) -> list[Input]:
    rng = np.random.default_rng(3)
    start = Start(
        SEED,
        outcome(0, 0),
        Goal(),
        rng,
        bounds or Bounds(250.0, 400.0),
        operators=built_in_pool("image"),
    )
    told = AskTellSearch(cross_boundary(start))
    seen = []
    while told.ask():
        (query,) = told.ask()
        seen.append(query.input)
        told.tell([outcome(device(query.input), original(query.input))])
    assert told.finding is None
    return seen


def far(image: Input) -> int:
    return int(np.linalg.norm(image.astype(float) - SEED) > 150)


def test_the_original_is_never_heeded() -> None:
    one, other = looks(far, far), looks(far, lambda image: 1 - far(image))
    assert len(one) > POINTS
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


def test_places_lie_on_both_sides_of_the_devices_boundary() -> None:
    sides = [far(image) for image in looks(far, far)[-POINTS:]]
    assert 0 < sum(sides) < POINTS


def test_every_look_is_within_the_bounds() -> None:
    bounds = Bounds(90.0, 200.0)
    seen = looks(far, far, bounds)
    assert all(bounds.holds(image, SEED) for image in seen)


def test_where_no_mutant_changes_the_label_nothing_is_looked_at() -> None:
    assert len(looks(lambda _: 0, far)) == 4
