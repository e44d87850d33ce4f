from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edgeflare.conditions.condition import SEVERITIES
from edgeflare.conditions.frames.frame_timing import (
    DROPPED_SHARES,
    dropped_frames,
    low_frame_rate,
)

CLIP = (np.arange(240, dtype=np.uint8)[:, None, None, None]) * np.ones((1, 2, 3, 1), np.uint8)


def shown(clip: np.ndarray) -> list[int]:
    """Return the number of the frame that each frame of a changed clip is."""
    assert (clip == clip[:, :1, :1, :]).all()
    return [int(number) for number in clip[:, 0, 0, 0]]


def test_dropped_frames_repeat_the_last_one_and_those_of_lower_severities_stay_dropped() -> None:
    shares, dropped = [], []
    for severity in SEVERITIES:
        frames = shown(dropped_frames(CLIP, severity, np.random.default_rng(0)))
        assert frames[0] == 0
        assert all(frame in {place, frames[place - 1]} for place, frame in enumerate(frames))
        dropped.append({place for place, frame in enumerate(frames) if frame != place})
        shares.append(len(dropped[-1]) / len(frames))
    assert shares == pytest.approx(DROPPED_SHARES, rel=0.5)
    assert all(lower <= higher for lower, higher in pairwise(dropped))


@pytest.mark.parametrize(("severity", "left"), [(1, 4 / 5), (2, 2 / 3), (3, 1 / 2), (5, 1 / 4)])
def test_a_low_frame_rate_leaves_its_share_of_frames_and_shows_none_too_early(
    severity: int, left: float
) -> None:
    frames = shown(low_frame_rate(CLIP, severity, np.random.default_rng(0)))
    assert len(set(frames)) == pytest.approx(left * len(CLIP), abs=1)
    assert frames == sorted(frames)
    assert all(0 <= place - frame < 4 for place, frame in enumerate(frames))
