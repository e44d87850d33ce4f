from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.condition import SEVERITIES
from edgeflare.conditions.frames.frame_disturbances import (
    FLICKERS,
    NOISES,
    SHAKES,
    camera_shake,
    flicker,
    frame_noise,
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


def test_flicker_leaves_an_alpha_channel() -> None:
    clip = np.full((5, 3, 3, 4), 120, np.uint8)
    flickering = flicker(clip, 5, np.random.default_rng(0))
    assert (flickering[..., 3] == 120).all()
    assert (flickering[..., 0] != 120).any()


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
