"""The inputs of an inspection lie on both sides of the boundary, and those of a line together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.inspected_inputs import (
    LEAST_LINES,
    STRATA,
    InspectedInputs,
    inspected_inputs,
)
from edgeflare.errors import UserError

WEIGHTS = np.random.default_rng(0).normal(size=(6, 3))
WEIGHTS -= WEIGHTS.mean(axis=0)  # each class is the largest somewhere
SEEDS = np.random.default_rng(1).integers(0, 256, (30, 2, 3, 1), np.uint8)


def scores(inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    return np.asarray(inputs.reshape(len(inputs), -1).astype(np.float64) @ WEIGHTS)


def labels(inputs: NDArray[np.generic]) -> NDArray[np.int64]:
    return np.asarray(scores(inputs).argmax(1), np.int64)


def margins(inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    ordered = np.sort(scores(inputs), axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def made(
    count: int = 160, triggers: Sequence[NDArray[np.uint8]] = (), seed: int = 0
) -> InspectedInputs:
    rng = np.random.default_rng(seed)
    return inspected_inputs(SEEDS, labels, margins, triggers, count, rng)


def test_two_inputs_of_a_line_are_one_group_and_lie_on_both_sides() -> None:
    taken = made()
    assert len(taken.inputs) == 160
    for group in range(80):
        at = np.flatnonzero(taken.groups == group)
        assert len(at) == 2
        assert at[1] == at[0] + 1
        assert len(set(labels(taken.inputs[at]))) == 2


def test_each_finding_is_a_group_of_its_own() -> None:
    triggers = [np.full((2, 3, 1), value, np.uint8) for value in (3, 200, 90)]
    taken = made(triggers=triggers)
    assert len(taken.inputs) == 163
    for number, trigger in enumerate(triggers):
        (at,) = np.flatnonzero(taken.groups == 80 + number)
        assert np.array_equal(taken.inputs[at], trigger)


def test_strata_are_bins_of_the_margin_with_equally_many_inputs() -> None:
    taken = made(triggers=[SEEDS[0], SEEDS[1]])
    found = margins(taken.inputs)
    counts = np.bincount(taken.strata, minlength=STRATA)
    assert counts.max() - counts.min() <= 2
    for one in range(STRATA - 1):
        assert found[taken.strata == one].max() < found[taken.strata == one + 1].min()


def test_the_order_is_drawn_from_the_seed() -> None:
    one, same, other = made(), made(), made(seed=1)
    assert np.array_equal(one.inputs, same.inputs)
    assert np.array_equal(one.groups, same.groups)
    assert not np.array_equal(one.groups, other.groups)
    assert not np.array_equal(one.groups, np.sort(one.groups))


def test_too_few_lines_are_refused() -> None:
    assert len(made(2 * LEAST_LINES).inputs) == 2 * LEAST_LINES
    line = r"there are 78 near-boundary inputs, and 80 are the least .* raise --inputs, or"
    with pytest.raises(UserError, match=line):
        made(2 * LEAST_LINES - 2)
