from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.array.lost_samples import (
    LOST_SHARES,
    STUCK_SHARES,
    dropped_samples,
    stuck_sensor,
)
from edgeflare.conditions.condition import SEVERITIES

ROWS = 5_000
ARRAY = np.arange(2 * ROWS, dtype=np.int32).reshape(ROWS, 2)


def test_lost_rows_repeat_the_last_that_arrived() -> None:
    shares = []
    for severity in SEVERITIES:
        changed = dropped_samples(ARRAY, severity, np.random.default_rng(0))
        lost = (changed != ARRAY).any(axis=1)
        assert not lost[0]
        before = np.flatnonzero(lost) - 1
        assert np.array_equal(changed[before + 1], changed[before])
        shares.append(lost.mean())
    assert shares == pytest.approx(LOST_SHARES, rel=0.2)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_one_channel_is_stuck_at_the_end(severity: int) -> None:
    changed = stuck_sensor(ARRAY, severity, np.random.default_rng(0))
    stuck = np.flatnonzero((changed != ARRAY).any(axis=0))
    assert len(stuck) == 1
    begins = round((1 - STUCK_SHARES[severity - 1]) * ROWS)
    channel = int(stuck[0])
    assert np.array_equal(changed[:begins], ARRAY[:begins])
    assert (changed[begins:, channel] == ARRAY[begins, channel]).all()


def test_each_channel_can_be_the_one_that_is_stuck() -> None:
    found = {
        int(np.flatnonzero((stuck_sensor(ARRAY, 3, np.random.default_rng(n)) != ARRAY).any(0))[0])
        for n in range(20)
    }
    assert found == {0, 1}
