"""What the field does to clips of frames."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edgeflare.conditions.condition import SEVERITIES, Condition
from edgeflare.conditions.frame_conditions import (
    DROPPED_SHARES,
    FLICKERS,
    NOISES,
    SHAKES,
    camera_shake,
    dropped_frames,
    flicker,
    frame_noise,
    low_frame_rate,
)

GRAY = np.full((400, 4, 4, 1), 100, np.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_has_the_deviation_of_the_severity_and_differs_between_frames(severity: int) -> None:
    noisy = frame_noise(GRAY, severity, np.random.default_rng(0))
    assert noisy.std() == pytest.approx(NOISES[severity - 1], rel=0.05)
    assert not np.array_equal(noisy[0], noisy[1])


@pytest.mark.parametrize("severity", SEVERITIES)
def test_flicker_is_one_factor_for_each_frame(severity: int) -> None:
    flickering = flicker(GRAY, severity, np.random.default_rng(0))
    assert (flickering == flickering[:, :1, :1]).all()
    factors = flickering[:, 0, 0, 0] / 100
    assert factors.std() == pytest.approx(FLICKERS[severity - 1], rel=0.15)


@pytest.mark.parametrize("condition", [flicker, frame_noise])
def test_what_changes_colours_leaves_an_alpha_channel(condition: Condition) -> None:
    clip = np.full((5, 3, 3, 4), 120, np.uint8)
    changed = condition(clip, 5, np.random.default_rng(0))
    assert (changed[..., 3] == 120).all()
    assert (changed[..., 0] != 120).any()


@pytest.mark.slow
@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_shaking_camera_moves_frames_by_whole_pixels(severity: int) -> None:
    rows, columns = np.mgrid[0:100, 0:200].astype(np.uint8)
    clip = np.stack([np.stack([rows, columns], axis=-1)[..., [0, 1, 0]]] * 300)
    shaken = camera_shake(clip, severity, np.random.default_rng(0)).astype(int)
    moved = 50 - shaken[:, 50, 100, 0], 100 - shaken[:, 50, 100, 1]
    for place in range(0, 300, 60):
        down, right = int(moved[0][place]), int(moved[1][place])
        inner = shaken[place, 40:60, 60:140]
        assert np.array_equal(inner[..., 0], rows[40 - down : 60 - down, 60:140])
        assert np.array_equal(inner[..., 1], columns[40:60, 60 - right : 140 - right])
        assert shaken[place, 99, 199, :2].tolist() == [min(99, 99 - down), min(199, 199 - right)]
    share = SHAKES[severity - 1]
    rounding = 1 / 12
    assert moved[0].var() == pytest.approx((100 * share) ** 2 + rounding, rel=0.25)
    assert moved[1].var() == pytest.approx((200 * share) ** 2 + rounding, rel=0.25)


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
