from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edgeflare.conditions.array.sensor_noise import (
    NOISES,
    SPIKE_SHARES,
    SPIKE_SIZE,
    STEPS,
    coarse_steps,
    sensor_noise,
    spikes,
)
from edgeflare.conditions.condition import SEVERITIES

RNG = np.random.default_rng(5)
SPREADS = np.array([0.5, 2.0, 30.0])
ARRAY = (RNG.normal(size=(5_000, 3)) * SPREADS).astype(np.float32)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_is_in_proportion_to_the_spread_of_each_channel(severity: int) -> None:
    change = sensor_noise(ARRAY, severity, np.random.default_rng(0)) - ARRAY
    assert change.std(axis=0) == pytest.approx(NOISES[severity - 1] * SPREADS, rel=0.05)


def test_as_many_values_are_spikes_as_the_severity_says_and_all_of_lower_ones() -> None:
    found = []
    for severity in SEVERITIES:
        change = spikes(ARRAY, severity, np.random.default_rng(0)) - ARRAY
        found.append(np.abs(change) > SPREADS)
        sizes = np.abs(change / ARRAY.std(axis=0))[found[-1]]
        assert sizes == pytest.approx(np.full(len(sizes), SPIKE_SIZE), rel=1e-3)
        assert not change[~found[-1]].any()
    assert [one.mean() for one in found] == pytest.approx(SPIKE_SHARES, rel=0.25)
    for lower, higher in pairwise(found):
        assert not (lower & ~higher).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_coarse_steps_are_multiples_and_the_nearest_ones(severity: int) -> None:
    steps = STEPS[severity - 1] * ARRAY.astype(float).std(axis=0)
    coarse = coarse_steps(ARRAY, severity, RNG)
    assert (np.abs(coarse - ARRAY).max(axis=0) <= 1.001 * steps / 2).all()
    for channel, step in zip(coarse.T, steps, strict=True):
        kinds = np.unique(channel)
        assert np.diff(kinds) == pytest.approx(np.rint(np.diff(kinds) / step) * step, rel=1e-3)


def test_values_without_a_spread_stay_as_they_are() -> None:
    flat = np.full((6, 2), 7, np.int16)
    for changed in (sensor_noise, spikes, coarse_steps):
        assert np.array_equal(changed(flat, 5, np.random.default_rng(0)), flat)
