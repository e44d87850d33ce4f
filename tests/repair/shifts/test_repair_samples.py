"""Tests of edgeflare.repair.shifts.repair_samples."""

from __future__ import annotations

import numpy as np

from edgeflare.repair.shifts.repair_samples import Samples, together
from repairing import OUTPUT


def samples() -> Samples:
    raw = np.array([[-128, 0, 10, -100], [5, 5, -128, -128], [-128, -128, -128, 127]], np.int8)
    return Samples(np.array([7, 8, 9]), np.array([1, 0, 3]), np.array([1, 0, 3]), raw, OUTPUT)


def test_labels_are_the_largest_and_the_first_among_equals() -> None:
    assert samples().labels.tolist() == [2, 0, 3]
    assert samples().seconds.tolist() == [1, 1, 0]


def test_margins_are_those_of_real_values() -> None:
    assert samples().margins.tolist() == [10 / 256, 0.0, 255 / 256]


def test_what_deviates_and_on_which_side_of_its_seed_it_is() -> None:
    assert samples().deviating.tolist() == [True, False, False]
    assert samples().on_seeds_side.tolist() == [False, True, True]


def test_samples_taken_apart_and_put_together_are_the_same() -> None:
    whole = samples()
    back = together([whole.take(np.array([0])), whole.take(np.array([False, True, True]))])
    assert back.seed_ids.tolist() == whole.seed_ids.tolist()
    assert (back.raw == whole.raw).all()
