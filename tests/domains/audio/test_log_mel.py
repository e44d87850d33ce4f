from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel
from edgeflare.errors import UserError
from front_ends import SMALL, as_librosa, recorded

TENSORFLOW = LogMel(8_000, 200, 80, 256, 32, 60.0, 3_900.0, power=2)
LIBROSA = as_librosa(8_000, (200, 80, 256), (40, 20.0, 4_000.0))

SOUNDS = st.tuples(st.integers(1, 4), st.integers(20, 90)).flatmap(
    lambda shape: arrays(np.int16, shape)
)


@pytest.mark.parametrize(
    ("front_end", "name"), [(TENSORFLOW, "tensorflow_log_mel"), (LIBROSA, "librosa_log_mel")]
)
def test_features_are_those_that_the_library_computed(front_end: LogMel, name: str) -> None:
    expected, wave = recorded(name, "sound_8000")
    made = front_end.features(wave[np.newaxis])
    assert made.dtype == np.float32
    assert made.shape[1:] == front_end.shape(len(wave))
    np.testing.assert_allclose(made[0], expected, rtol=0, atol=1e-4)


def test_mean_and_std_are_applied_last() -> None:
    wave = np.arange(-100, 100, dtype=np.int16)[np.newaxis]
    plain = SMALL.features(wave)
    changed = replace(SMALL, mean=-4.0, std=4.0).features(wave)
    np.testing.assert_allclose(changed, (plain + 4.0) / 4.0, atol=1e-5)


@given(waves=SOUNDS, centered=st.booleans())
def test_features_of_a_sound_do_not_depend_on_the_batch(
    waves: NDArray[np.int16], centered: bool
) -> None:
    front_end = replace(SMALL, framing="centered" if centered else "from-start")
    together = front_end.features(waves)
    assert together.shape == (len(waves), *front_end.shape(waves.shape[1]))
    assert np.isfinite(together).all()
    alone = [front_end.features(wave[np.newaxis])[0] for wave in waves]
    assert np.array_equal(together, np.stack(alone))


@given(waves=SOUNDS, factor=st.integers(2, 20))
def test_features_of_a_sound_over_its_maximum_do_not_depend_on_its_volume(
    waves: NDArray[np.int16], factor: int
) -> None:
    quiet = np.clip(waves, -1_000, 1_000)
    quiet[:, 0] = 1_000
    front_end = replace(SMALL, wave_scale="maximum")
    loud = (quiet * factor).astype(np.int16)
    np.testing.assert_allclose(front_end.features(loud), front_end.features(quiet), atol=1e-4)


def test_a_sound_without_a_sample_above_zero_is_not_scaled_by_its_maximum() -> None:
    silent = np.zeros((1, 40), np.int16)
    made = replace(SMALL, wave_scale="maximum").features(silent)
    np.testing.assert_allclose(made, np.log(1e-6), rtol=1e-6)


def test_no_feature_lies_farther_below_the_largest_than_the_range() -> None:
    wave = np.zeros((1, 400), np.int16)
    wave[0, 200:240] = 20_000
    natural = replace(SMALL, range_db=30.0)
    for front_end, most in (
        (natural, 3.0 * np.log(10.0)),
        (replace(natural, logarithm="decibel"), 30.0),
    ):
        made = front_end.features(wave)
        assert made.max() - made.min() == pytest.approx(most, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"frame_step": 0}, "frame_step has to be 1 or more, not 0"),
        ({"fft_length": 16}, r"fft_length has to be frame_length \(20\) or more, not 16"),
        ({"highest_hz": 4_001.0}, r"half the sample rate \(4000\), not 100 and 4001"),
        ({"lowest_hz": 3_000.0}, "lowest_hz has to be below highest_hz"),
        ({"power": 3}, "power has to be one of 1, 2, not 3"),
        ({"filters": "mel"}, "filters has to be one of htk, slaney, not 'mel'"),
        ({"floor": 0.0}, "floor has to be a finite number above 0, not 0.0"),
        ({"range_db": -1.0}, "range_db has to be a finite number above 0"),
        ({"mean": float("nan")}, "mean has to be a finite number, not nan"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        replace(SMALL, **change)
    assert "\n" not in str(caught.value)


def test_a_sound_shorter_than_a_frame_is_refused() -> None:
    with pytest.raises(UserError, match="19 samples, fewer than a frame of 20"):
        SMALL.features(np.zeros((1, 19), np.int16))
