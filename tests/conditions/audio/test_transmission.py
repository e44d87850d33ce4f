from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.conditions.audio.transmission import (
    LOST_SHARES,
    PACKET_SAMPLES,
    SHIFT_SECONDS,
    packet_loss,
    shifted_window,
)
from edgeflare.conditions.condition import SEVERITIES
from edgeflare_operators.audio import SAMPLE_RATE

PACKETS = 4_000
ONES = np.ones(PACKETS * PACKET_SAMPLES, np.int16)


def lost_packets(severity: int) -> NDArray[np.bool_]:
    heard = packet_loss(ONES, severity, np.random.default_rng(0)).reshape(PACKETS, -1)
    assert (heard == heard[:, :1]).all()
    return np.asarray(heard[:, 0] == 0)


def test_as_many_packets_are_lost_as_the_severity_says_and_all_of_lower_ones() -> None:
    lost = [lost_packets(severity) for severity in SEVERITIES]
    assert [one.mean() for one in lost] == pytest.approx(LOST_SHARES, rel=0.2)
    for lower, higher in pairwise(lost):
        assert not (lower & ~higher).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_window_is_shifted_either_way_and_filled_with_silence(severity: int) -> None:
    wave = np.arange(1, SAMPLE_RATE + 1).astype(np.int16)
    shift = round(SHIFT_SECONDS[severity - 1] * SAMPLE_RATE)
    expected = {
        (*wave[shift:].tolist(), *[0] * shift),
        (*[0] * shift, *wave[:-shift].tolist()),
    }
    drawn = range(20)
    heard = {
        tuple(shifted_window(wave, severity, np.random.default_rng(seed)).tolist())
        for seed in drawn
    }
    assert heard == expected


def test_a_sound_that_is_shorter_than_the_shift_is_silence() -> None:
    wave = np.ones(10, np.int16)
    assert not shifted_window(wave, 5, np.random.default_rng(0)).any()
