"""Front ends of sounds, held to what TensorFlow and librosa make of one sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.audio.front_end import Mfcc, open_front_end
from edgeflare.domains.audio.log_mel import LogMel, Waves
from edgeflare.errors import UserError
from edgeflare.record.json_types import JsonValue

VECTORS = Path(__file__).with_name("front_end_vectors.npz")

SMALL = LogMel(8_000, 20, 10, 32, 4, 100.0, 3_000.0)


def as_librosa(
    sample_rate: int, frame: tuple[int, int, int], bands: tuple[int, float, float]
) -> LogMel:
    """Log-mel features in the conventions of librosa.

    `frame` is length, step and length of the transform; `bands` are how many, and their limits.
    """
    return LogMel(
        sample_rate,
        *frame,
        *bands,
        framing="centered",
        power=2,
        filters="slaney",
        logarithm="decibel",
        floor=1e-10,
        range_db=80.0,
    )


SOUNDS = st.tuples(st.integers(1, 4), st.integers(20, 90)).flatmap(
    lambda shape: arrays(np.int16, shape)
)


@pytest.mark.parametrize(
    ("front_end", "name", "rtol", "atol"),
    [
        (LogMel(8_000, 200, 80, 256, 32, 60.0, 3_900.0, power=2), "tensorflow_log_mel", *(0, 1e-4)),
        (as_librosa(8_000, (200, 80, 256), (40, 20.0, 4_000.0)), "librosa_log_mel", 0, 1e-4),
        (
            Mfcc(LogMel(16_000, 480, 320, 512, 40, 20.0, 4_000.0, wave_scale="maximum"), 10),
            "tensorflow_mfcc",
            *(1e-5, 2e-4),
        ),
        (
            Mfcc(
                as_librosa(16_000, (512, 256, 512), (64, 0.0, 8_000.0)), 13, cosines="orthonormal"
            ),
            "librosa_mfcc",
            *(1e-5, 2e-4),
        ),
    ],
)
def test_features_are_those_that_the_library_computed(
    front_end: LogMel | Mfcc, name: str, rtol: float, atol: float
) -> None:
    with np.load(VECTORS) as vectors:
        expected, wave = vectors[name], vectors["sound_" + ("8000" if "log" in name else "16000")]
    made = front_end.features(wave[np.newaxis])
    assert made.dtype == np.float32
    assert made.shape[1:] == front_end.shape(len(wave))
    np.testing.assert_allclose(made[0], expected, rtol=rtol, atol=atol)


def test_a_transform_of_an_odd_length_is_that_of_librosa() -> None:
    """Its last bin lies below half the sample rate, and the last frame may not be reached."""
    wave = (np.arange(40) * 7919 % 2000 - 1000).astype(np.int16)
    librosa = [
        [-47.3055, -50.5164, -51.6722],
        [-50.2949, -67.131, -73.5622],
        [-44.129, -50.2917, -55.2473],
        [-45.8666, -53.5078, -58.4475],
    ]
    made = as_librosa(8_000, (25, 10, 25), (3, 0.0, 4_000.0)).features(wave[np.newaxis])
    np.testing.assert_allclose(made[0], librosa, atol=1e-4)


@pytest.mark.parametrize("front_end", [SMALL, Mfcc(SMALL, 3)])
def test_mean_and_std_are_applied_last(front_end: LogMel | Mfcc) -> None:
    wave = np.arange(-100, 100, dtype=np.int16)[np.newaxis]
    plain = front_end.features(wave)
    changed = replace(front_end, mean=-4.0, std=4.0).features(wave)
    np.testing.assert_allclose(changed, (plain + 4.0) / 4.0, atol=1e-5)


@pytest.mark.parametrize(
    "front_end", [SMALL, replace(SMALL, framing="centered"), Mfcc(SMALL, 3, mean=1.0, std=2.0)]
)
@given(waves=SOUNDS)
def test_features_of_a_sound_do_not_depend_on_the_batch(
    front_end: LogMel | Mfcc, waves: NDArray[np.int16]
) -> None:
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
    ("settings", "complaint"),
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
        ({"coefficients": 5}, r"1 to the number of bands \(4\), not 5"),
        ({"coefficients": 3, "cosines": "dct"}, "one of tensorflow, orthonormal, not 'dct'"),
        ({"coefficients": 3, "std": 0.0}, "std above 0, not 0.0 and 0.0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        Mfcc(SMALL, **settings) if "coefficients" in settings else replace(SMALL, **settings)
    assert "\n" not in str(caught.value)


def test_a_frame_may_be_a_single_sample() -> None:
    samples = replace(SMALL, frame_length=1, frame_step=1).features(np.ones((1, 7), np.int16))
    assert samples.shape[:2] == (1, 7)


def test_a_sound_shorter_than_a_frame_is_refused() -> None:
    with pytest.raises(UserError, match="19 samples, fewer than a frame of 20"):
        SMALL.features(np.zeros((1, 19), np.int16))


@given(waves=arrays(np.int16, (3, 60)))
def test_all_orthonormal_coefficients_keep_the_norm_of_a_frame(waves: NDArray[np.int16]) -> None:
    bands = SMALL.features(waves)
    coefficients = Mfcc(SMALL, 4, cosines="orthonormal").features(waves)
    norms = [np.linalg.norm(one, axis=2) for one in (bands, coefficients)]
    np.testing.assert_allclose(norms[1], norms[0], rtol=1e-5)


BANDS: dict[str, JsonValue] = {
    "frame_length": 20,
    "frame_step": 10,
    "fft_length": 32,
    "bands": 4,
    "lowest_hz": 100,
    "highest_hz": 3000.0,
}
LOG_MEL = LogMel(8_000, 20, 10, 32, 4, 100.0, 3_000.0)
STREAM: dict[str, JsonValue] = {
    "name": "spectrum",
    "frame_length": 64,
    "frame_step": 16,
    "framing": "streaming",
}

WAVES = np.random.default_rng(0).integers(-9_000, 9_000, (3, 200)).astype(np.int16)


def test_front_ends_are_made_of_their_settings() -> None:
    assert open_front_end({"name": "log-mel", **BANDS}, 8_000) == LOG_MEL
    settings: dict[str, JsonValue] = {"name": "mfcc", **BANDS, "coefficients": 3, "mean": 1.5}
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


def test_what_a_function_does_to_a_sound_stays_there(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f(wave):\n    wave += 9\n    return wave\n")
    waves = np.zeros((2, 3), np.int16)
    front_end = open_front_end({"name": f"{tmp_path}/f.py:f"}, 8_000)
    assert front_end.features(waves).tolist() == [[9.0] * 3] * 2
    assert not waves.any()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("None", "it returned NoneType, expected an array of real numbers"),
        ("np.fft.rfft(wave)", "it returned complex128, expected an array of real numbers"),
        ("np.zeros((5, 0))", "it returned no values, an array of shape (5, 0)"),
        ("exit(3)", "samples of silence failed: SystemExit: 3"),
        ("wave.std()", "which are 4 values, but the front end makes of a sound 1: check samples"),
    ],
)
def test_what_is_no_features_is_refused(
    returned: str, said: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    (tmp_path / "f.py").write_text(f"import numpy as np\ndef f(wave): return {returned}\n")
    domain = AudioDomain(samples=8, front_end={"name": f"{tmp_path}/f.py:f"})
    assert said in refusal(domain.input_shape, Tensor("x", (1, 4), "float32"))


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


def test_both_models_of_a_pair_share_the_features_of_a_sound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    features = LogMel.features

    def counted(self: LogMel, waves: Waves) -> NDArray[np.float32]:
        made.append(len(waves))
        return features(self, waves)

    monkeypatch.setattr(LogMel, "features", counted)
    row = (1, *LOG_MEL.shape(WAVES.shape[1]))
    tensors = Tensor("sound", row, "float32"), Tensor("sound", row, "int8", 0.1, 3)
    domain, other = (
        AudioDomain(8_000, 200, front_end={"name": "log-mel", **BANDS}) for _ in range(2)
    )
    real, whole = map(domain.encoder, tensors)
    expected = other.encoder(tensors[1]).encode(WAVES)
    made.clear()
    real.encode(WAVES[1:2])
    assert np.array_equal(whole.encode(WAVES), expected)
    assert np.array_equal(whole.encode(WAVES[::-1]), expected[::-1])
    assert made == [1, 2]


def test_features_of_another_shape_than_those_of_other_sounds_are_refused(
    monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]
) -> None:
    features, row = LogMel.features, (1, *LOG_MEL.shape(WAVES.shape[1]))
    domain = AudioDomain(8_000, 200, front_end={"name": "log-mel", **BANDS})
    encoder = domain.encoder(Tensor("sound", row, "float32"))
    encoder.encode(WAVES[:1])
    monkeypatch.setattr(LogMel, "features", lambda self, waves: features(self, waves)[:, 1:])
    assert "of all sounds it has to be as many" in refusal(encoder.encode, WAVES)
