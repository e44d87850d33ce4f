from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare.domains.audio.front_end import open_front_end
from edgeflare.domains.audio.log_mel import LogMel
from edgeflare.domains.audio.mfcc import Mfcc

BANDS = {
    "frame_length": 20,
    "frame_step": 10,
    "fft_length": 32,
    "bands": 4,
    "lowest_hz": 100,
    "highest_hz": 3000.0,
}
LOG_MEL = LogMel(8_000, 20, 10, 32, 4, 100.0, 3_000.0)
STREAM = {"name": "spectrum", "frame_length": 64, "frame_step": 16, "framing": "streaming"}

WAVES = np.random.default_rng(0).integers(-9_000, 9_000, (3, 200)).astype(np.int16)


def test_front_ends_are_made_of_their_settings() -> None:
    assert open_front_end({"name": "log-mel", **BANDS}, 8_000) == LOG_MEL
    settings = {"name": "mfcc", **BANDS, "coefficients": 3, "mean": 1.5}
    assert open_front_end(settings, 8_000) == Mfcc(LOG_MEL, 3, mean=1.5)


def test_a_streamed_spectrum_hears_silence_first() -> None:
    front_end = open_front_end(STREAM, 8_000)
    made = front_end.features(WAVES)
    assert made.shape == (3, *front_end.shape(200)) == (3, 12, 33)
    buffer = np.zeros(64)
    for frame in range(12):
        buffer = np.concatenate([buffer[16:], WAVES[1, frame * 16 : frame * 16 + 16] / 32768])
        np.testing.assert_allclose(made[1, frame], np.abs(np.fft.rfft(buffer)), rtol=1e-6)


def test_a_users_function_is_imported_when_it_is_needed(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    file = tmp_path / "features.py"
    file.write_text("def energy(wave): return [wave.astype(float).std(), wave.max()]\n")
    front_end = open_front_end({"name": f"{file}:energy"}, 8_000)
    assert front_end.shape(200) == (2,)
    np.testing.assert_allclose(front_end.features(WAVES)[:, 0], WAVES.std(axis=1), rtol=1e-6)
    absent = open_front_end({"name": f"{tmp_path}/absent.py:energy"}, 8_000)
    assert "there is no Python file" in refusal(absent.shape, 200)
    file.write_text("def energy(wave): raise ValueError('too loud')\n")
    broken = open_front_end({"name": f"{file}:energy"}, 8_000)
    assert "200 samples of silence failed: ValueError: too loud" in refusal(broken.shape, 200)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "name is missing"),
        ({"name": "mel"}, "there is no front end 'mel'"),
        ({"name": "mfcc", **BANDS, "cofficients": 3}, "did you mean 'coefficients'?"),
        ({"name": "mfcc", **BANDS}, "coefficients is missing"),
        (
            {"name": "spectrum", "frame_length": 8, "frame_step": 9, "framing": "streaming"},
            "or less",
        ),
        ({"name": "a.py:b", "bands": 3}, "a function takes no settings"),
    ],
)
def test_settings_that_are_wrong_are_one_line(
    settings: dict[str, object], words: str, refusal: Callable[..., str]
) -> None:
    assert words in refusal(open_front_end, settings, 8_000)
