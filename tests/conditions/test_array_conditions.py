"""What the field does to arrays: offsets, drifts, lost samples and noise of sensors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edgeflare.conditions.array_conditions import (
    DRIFTS,
    GAINS,
    LOST_SHARES,
    NOISES,
    OFFSETS,
    SPIKE_SHARES,
    SPIKE_SIZE,
    STEPS,
    STUCK_SHARES,
    coarse_steps,
    drift,
    dropped_samples,
    gain_error,
    offset,
    sensor_noise,
    spikes,
    stuck_sensor,
)
from edgeflare.conditions.condition import SEVERITIES

ARRAY = np.random.default_rng(5).normal(3.0, (1.0, 4.0), size=(200, 2))
SPREADS = ARRAY.std(axis=0)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_an_offset_is_one_number_for_each_channel(severity: int) -> None:
    change = offset(ARRAY, severity, np.random.default_rng(0)) - ARRAY
    assert change == pytest.approx(np.broadcast_to(change[0], change.shape))
    assert np.abs(change[0]) == pytest.approx(OFFSETS[severity - 1] * SPREADS)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_gain_error_is_one_factor_for_each_channel(severity: int) -> None:
    factors = gain_error(ARRAY, severity, np.random.default_rng(0)) / ARRAY
    assert factors == pytest.approx(np.broadcast_to(factors[0], factors.shape))
    assert np.abs(factors[0] - 1.0) == pytest.approx(np.full(2, GAINS[severity - 1]))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_drift_grows_evenly_from_nothing(severity: int) -> None:
    change = drift(ARRAY, severity, np.random.default_rng(0)) - ARRAY
    assert change[0] == pytest.approx(np.zeros(2))
    assert np.abs(change[-1]) == pytest.approx(DRIFTS[severity - 1] * SPREADS)
    assert np.diff(change, n=2, axis=0) == pytest.approx(np.zeros((198, 2)), abs=1e-9)


@pytest.mark.parametrize("changed", [offset, gain_error, drift])
def test_both_directions_occur_and_channels_have_their_own(changed: object) -> None:
    assert callable(changed)
    last = [changed(ARRAY, 3, np.random.default_rng(seed))[-1] - ARRAY[-1] for seed in range(20)]
    assert len({tuple(np.sign(one)) for one in last}) == 4


def test_values_of_one_moment_share_offset_and_gain() -> None:
    values = np.array([1.0, 2.0, 4.0])
    rng = np.random.default_rng(0)
    assert np.ptp(offset(values, 2, rng) - values) == pytest.approx(0.0, abs=1e-12)
    assert np.ptp(gain_error(values, 2, rng) / values) == pytest.approx(0.0, abs=1e-12)


ROWS = 5_000
COUNTED = np.arange(2 * ROWS, dtype=np.int32).reshape(ROWS, 2)


def test_lost_rows_repeat_the_last_that_arrived() -> None:
    shares = []
    for severity in SEVERITIES:
        changed = dropped_samples(COUNTED, severity, np.random.default_rng(0))
        lost = (changed != COUNTED).any(axis=1)
        assert not lost[0]
        before = np.flatnonzero(lost) - 1
        assert np.array_equal(changed[before + 1], changed[before])
        shares.append(lost.mean())
    assert shares == pytest.approx(LOST_SHARES, rel=0.2)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_one_channel_is_stuck_at_the_end(severity: int) -> None:
    changed = stuck_sensor(COUNTED, severity, np.random.default_rng(0))
    stuck = np.flatnonzero((changed != COUNTED).any(axis=0))
    assert len(stuck) == 1
    begins = round((1 - STUCK_SHARES[severity - 1]) * ROWS)
    channel = int(stuck[0])
    assert np.array_equal(changed[:begins], COUNTED[:begins])
    assert (changed[begins:, channel] == COUNTED[begins, channel]).all()


def test_each_channel_can_be_the_one_that_is_stuck() -> None:
    found = {
        int(
            np.flatnonzero((stuck_sensor(COUNTED, 3, np.random.default_rng(n)) != COUNTED).any(0))[
                0
            ]
        )
        for n in range(20)
    }
    assert found == {0, 1}


RNG = np.random.default_rng(5)
WIDTHS = np.array([0.5, 2.0, 30.0])
MEASURED = (RNG.normal(size=(5_000, 3)) * WIDTHS).astype(np.float32)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_is_in_proportion_to_the_spread_of_each_channel(severity: int) -> None:
    change = sensor_noise(MEASURED, severity, np.random.default_rng(0)) - MEASURED
    assert change.std(axis=0) == pytest.approx(NOISES[severity - 1] * WIDTHS, rel=0.05)


def test_as_many_values_are_spikes_as_the_severity_says_and_all_of_lower_ones() -> None:
    found = []
    for severity in SEVERITIES:
        change = spikes(MEASURED, severity, np.random.default_rng(0)) - MEASURED
        found.append(np.abs(change) > WIDTHS)
        sizes = np.abs(change / MEASURED.std(axis=0))[found[-1]]
        assert sizes == pytest.approx(np.full(len(sizes), SPIKE_SIZE), rel=1e-3)
        assert not change[~found[-1]].any()
    assert [one.mean() for one in found] == pytest.approx(SPIKE_SHARES, rel=0.25)
    for lower, higher in pairwise(found):
        assert not (lower & ~higher).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_coarse_steps_are_multiples_and_the_nearest_ones(severity: int) -> None:
    steps = STEPS[severity - 1] * MEASURED.astype(float).std(axis=0)
    coarse = coarse_steps(MEASURED, severity, RNG)
    assert (np.abs(coarse - MEASURED).max(axis=0) <= 1.001 * steps / 2).all()
    for channel, step in zip(coarse.T, steps, strict=True):
        kinds = np.unique(channel)
        assert np.diff(kinds) == pytest.approx(np.rint(np.diff(kinds) / step) * step, rel=1e-3)


def test_values_without_a_spread_stay_as_they_are() -> None:
    flat = np.full((6, 2), 7, np.int16)
    for changed in (sensor_noise, spikes, coarse_steps):
        assert np.array_equal(changed(flat, 5, np.random.default_rng(0)), flat)
