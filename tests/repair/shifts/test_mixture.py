"""Tests of edgeflare.repair.shifts.mixture."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.repair.shifts.mixture import Mixture, MixtureCounts, count_mixture


def told(repaired: list[float], induced: list[float], seeds: list[float]) -> MixtureCounts:
    ids = np.arange(len(repaired))
    ones = np.ones(len(repaired))
    parts = [(ids, ones, np.array(done)) for done in (repaired, induced, seeds)]
    return count_mixture(ids, (parts[0], parts[1], parts[2]))


def test_the_net_is_what_is_repaired_less_what_is_induced_by_share() -> None:
    tallied = told([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0])
    assert tallied.ratios.tolist() == [0.5, 0.25, 0.0]
    assert tallied.net(Mixture()).value == pytest.approx(0.25 / 3)
    net = tallied.net(Mixture(0.2, 0.8, 0.0))
    assert net.value == pytest.approx(0.2 * 0.5 - 0.8 * 0.25)


def test_weights_count_as_so_many_inputs() -> None:
    ids = np.array([3, 5])
    one = (ids, np.ones(2), np.zeros(2))
    weighted = (np.array([3, 5, 5]), np.array([3.0, 0.5, 0.5]), np.array([0.0, 1.0, 0.0]))
    assert count_mixture(ids, (one, weighted, one)).ratios.tolist() == [0.0, 0.125, 0.0]


def test_the_interval_knows_that_inputs_of_one_seed_are_no_independent_evidence() -> None:
    rng = np.random.default_rng(0)
    per_seed = rng.integers(0, 2, 20).astype(float)
    ids = np.arange(20)
    nothing = (ids, np.ones(20), np.zeros(20))
    once = count_mixture(ids, ((ids, np.ones(20), per_seed), nothing, nothing))
    many = count_mixture(
        ids, ((ids.repeat(50), np.ones(1000), per_seed.repeat(50)), nothing, nothing)
    )
    assert once.net(Mixture()) == many.net(Mixture())
    assert once.net(Mixture()).low < once.net(Mixture()).value < once.net(Mixture()).high
