from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.array.calibration_errors import (
    DRIFTS,
    GAINS,
    OFFSETS,
    drift,
    gain_error,
    offset,
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
