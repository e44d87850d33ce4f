"""Sounds: their files, seeds and likeness."""

from __future__ import annotations

import contextlib
import sys
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.seeds import SeedChoice
from edgeflare.core.tensor import Tensor
from edgeflare.domains.audio.audio_domain import AudioDomain, audio_fingerprint, signal_to_noise_db
from edgeflare.domains.audio.sound_seeds import fitted, load_sound_seeds
from edgeflare.domains.audio.wav_file import decode_wav, encode_wav
from edgeflare.errors import UserError
from mutated_binaries import flac_info, wav_chunks

Wave = NDArray[np.int16]
WAVES = st.integers(0, 60).flatmap(lambda samples: arrays(np.int16, (samples,)))


def test_a_file_of_another_format_is_none() -> None:
    whole = AudioDomain().encode_file(np.zeros(4, np.int16))
    assert decode_wav(whole) is not None
    assert decode_wav(whole.replace(b"WAVE", b"WAVY")) is None
    stereo, floating = bytearray(whole), bytearray(whole)
    stereo[22:24], stereo[32:34] = b"\x02\x00", b"\x04\x00"
    floating[20:22] = b"\x03\x00"
    assert decode_wav(bytes(stereo)) is None
    assert decode_wav(bytes(floating)) is None


@pytest.mark.parametrize("sample_rate", [0, -1, 2**31])
def test_a_sample_rate_that_no_file_can_say_is_refused(sample_rate: int) -> None:
    with pytest.raises(UserError, match="sample_rate has to be a number of Hz"):
        AudioDomain(sample_rate)


@given(wave=arrays(np.int16, (64,)))
def test_the_space_holds_every_sound(wave: Wave) -> None:
    space = AudioDomain().space
    assert np.array_equal(space.nearest(space.levels(wave)), wave)
    assert space.cells(wave.shape) == wave.shape


@given(seed=arrays(np.int16, (50,), elements=st.integers(-3_000, 3_000)), factor=st.integers(2, 10))
def test_the_ratio_to_noise_falls_by_the_square_of_the_noise(seed: Wave, factor: int) -> None:
    seed[0] = 3_000
    noise = np.where(np.arange(50) % 2, 7, -7).astype(np.int16)
    quiet = signal_to_noise_db(seed + noise, seed)
    loud = signal_to_noise_db(seed + noise * np.int16(factor), seed)
    assert quiet - loud == pytest.approx(20 * np.log10(factor))


def test_the_ratio_to_noise_has_its_limits() -> None:
    seed = np.array([-32_768, 32_767, 0], np.int16)
    assert signal_to_noise_db(seed, seed) == inf
    # As much change as signal, and no overflow at the ends of int16.
    assert signal_to_noise_db(np.zeros(3, np.int16), seed) == pytest.approx(0.0)
    assert signal_to_noise_db(-1 - seed, seed) == pytest.approx(-6.02, abs=0.01)
    assert signal_to_noise_db(seed, np.zeros(3, np.int16)) == -inf


def spoken(number: int) -> Wave:
    """Return a second of tones that rise and fall, at 16 kHz, other ones for each number."""
    rng = np.random.default_rng(number)
    seconds = np.arange(16_000) / 16_000
    tones = [
        np.sin(2 * np.pi * rng.uniform(100, 4_000) * seconds)
        * np.exp(-np.square((seconds - rng.uniform(0, 1)) / 0.1))
        for _ in range(8)
    ]
    wave: Wave = np.rint(3_000 * np.sum(tones, axis=0)).astype(np.int16)
    return wave


def test_a_sound_resembles_itself_slightly_changed_and_no_other() -> None:
    sounds = [spoken(number) for number in range(6)]
    prints = [AudioDomain.fingerprint(one) for one in sounds]
    assert AudioDomain.count_near(prints) == 0
    assert AudioDomain.count_near([*prints, prints[0]]) == 2
    rng = np.random.default_rng(0)
    changed = sounds[3] + rng.integers(-1, 2, 16_000).astype(np.int16)
    assert AudioDomain.count_near([*prints, AudioDomain.fingerprint(changed)]) == 2
    later = AudioDomain.fingerprint(np.roll(sounds[3], 3_000))
    assert AudioDomain.count_near([*prints, later]) == 0
    assert AudioDomain.count_near([]) == 0


@given(wave=WAVES)
def test_sounds_of_any_length_have_fingerprints_of_one_shape(wave: Wave) -> None:
    assert audio_fingerprint(wave).shape == audio_fingerprint(spoken(0)).shape


def test_a_file_of_another_program_is_read(tmp_path: Path) -> None:
    """A chunk that is not of samples, as editors write it, is passed over."""
    wave = spoken(0)
    data = AudioDomain().encode_file(wave)
    note = b"LIST\x04\x00\x00\x00INFO"
    size = (len(data) + len(note) - 8).to_bytes(4, "little")
    kept = AudioDomain.decode_file(data[:4] + size + data[8:36] + note + data[36:])
    assert kept is not None
    assert np.array_equal(kept, wave)


def test_the_operators_of_the_paper_are_its_four() -> None:
    names = ["time-stretch", "pitch-shift", "time-shift", "gain"]
    assert [one.name for one in AudioDomain().paper_operators()] == names
    assert [one.name for one in AudioDomain().published_operators()] == names


RATE = 8_000
SOUND = np.random.default_rng(0).integers(-9_000, 9_000, 100).astype(np.int16)


def folder_of(folder: Path, **sounds: bytes) -> Path:
    for name, data in sounds.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def flac(folder: Path, name: str, wave: NDArray[Any], **settings: Any) -> None:
    soundfile.write(folder / name, wave, settings.pop("rate", RATE), **settings)


def refusal(path: Path, samples: int = 100, fit: Any = "none") -> str:
    with pytest.raises(UserError) as caught:
        load_sound_seeds(path, RATE, samples, fit)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_wav_and_flac_files_are_loaded_without_loss_in_the_order_of_names(tmp_path: Path) -> None:
    folder_of(tmp_path, b_wav=encode_wav(SOUND, RATE), notes_txt=b"no sound")
    flac(tmp_path, "a.flac", SOUND[::-1].copy(), subtype="PCM_16")
    seeds = load_sound_seeds(tmp_path, RATE, 100)
    assert seeds.names == ("a.flac", "b.wav")
    assert seeds.labels is None
    assert seeds.inputs.dtype == np.int16
    assert np.array_equal(seeds.inputs, [SOUND[::-1], SOUND])
    assert load_sound_seeds(tmp_path, RATE, 100, choice=SeedChoice(first=1)).names == ("a.flac",)


def test_an_npz_is_loaded_with_its_labels(tmp_path: Path) -> None:
    path = tmp_path / "seeds.npz"
    np.savez(path, waves=np.stack([SOUND, -SOUND]), labels=[3, 1], sample_rate=RATE)
    seeds = load_sound_seeds(path, RATE, 100)
    assert len(seeds) == 2
    assert seeds.labels is not None
    assert seeds.labels.tolist() == [3, 1]
    assert np.array_equal(seeds.inputs[1], -SOUND)
    assert load_sound_seeds(path, RATE, 60, "cut", choice=SeedChoice(first=1)).inputs.shape == (
        1,
        60,
    )


@given(arrays(np.int16, (3, 7)))
def test_a_sound_at_full_scale_has_a_peak_of_one_and_silence_stays_silent(
    waves: NDArray[np.int16],
) -> None:
    waves[0] = 0
    waves[1, 2] = -32_768
    encoder = AudioDomain(normalize="peak").encoder(Tensor("x", (1, 7), "float32"))
    made = encoder.encode(waves)
    assert not made[0].any()
    assert np.abs(made[1]).max() == -made[1, 2] == 1.0
    each = waves[2].astype(np.float64)
    np.testing.assert_allclose(made[2] * (np.abs(each).max() or 1.0), each, rtol=1e-6)


def test_whole_numbers_without_a_scale_are_samples_as_they_are() -> None:
    wave = np.array([[-32_768, -3, 0, 1, 32_767]], np.int16)
    for dtype in ("int16", "int32", "int64"):
        made = AudioDomain().encoder(Tensor("x", (1, 5), dtype)).encode(wave)
        assert made.dtype == dtype
        assert made.tolist() == wave.tolist()
    scaled = AudioDomain().encoder(Tensor("x", (1, 5), "int16", 2**-15)).encode(wave)
    assert scaled.tolist() == wave.tolist()
    with pytest.raises(UserError, match="takes int8 without a scale, which holds no samples"):
        AudioDomain().encoder(Tensor("x", (1, 5), "int8"))
    with pytest.raises(UserError, match='remove normalize = "peak"'):
        AudioDomain(normalize="peak").encoder(Tensor("x", (1, 5), "int16"))


@given(
    wave=st.integers(0, 30).flatmap(lambda n: arrays(np.int16, (n,))), samples=st.integers(1, 30)
)
def test_a_fitted_sound_begins_as_it_was_and_ends_in_silence(
    wave: NDArray[np.int16], samples: int
) -> None:
    made = fitted(wave, samples, "pad-and-cut", "sound")
    both = min(len(wave), samples)
    assert made.shape == (samples,)
    assert np.array_equal(made[:both], wave[:both])
    assert not made[both:].any()


@pytest.mark.parametrize("fit", ["none", "cut"])
def test_a_sound_shorter_than_the_window_is_refused_unless_it_is_padded(
    tmp_path: Path, fit: str
) -> None:
    folder_of(tmp_path, a_wav=encode_wav(SOUND, RATE))
    said = refusal(tmp_path, 101, fit)
    assert "a.wav: the sound is shorter than the window, 100 of 101 samples" in said
    assert load_sound_seeds(tmp_path, RATE, 101, "pad").inputs[0, 100] == 0


@pytest.mark.parametrize("fit", ["none", "pad"])
def test_a_sound_longer_than_the_window_is_refused_unless_it_is_cut(
    tmp_path: Path, fit: str
) -> None:
    folder_of(tmp_path, a_wav=encode_wav(SOUND, RATE))
    assert "longer than the window, 100 of 99 samples" in refusal(tmp_path, 99, fit)
    assert np.array_equal(load_sound_seeds(tmp_path, RATE, 99, "cut").inputs[0], SOUND[:99])


def test_another_sample_rate_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, a_wav=encode_wav(SOUND, 16_000))
    assert "a.wav has a sample rate of 16000 Hz, expected 8000" in refusal(tmp_path)
    (tmp_path / "a.wav").unlink()
    flac(tmp_path, "a.flac", SOUND, rate=11_025)
    assert "a.flac has a sample rate of 11025 Hz, expected 8000" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_stereo_is_refused(tmp_path: Path, name: str) -> None:
    flac(tmp_path, name, np.stack([SOUND, SOUND], axis=1))
    assert f"{name} has 2 channels, expected mono" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_samples_of_24_bits_are_refused(tmp_path: Path, name: str) -> None:
    flac(tmp_path, name, SOUND, subtype="PCM_24")
    assert f"{name} has samples of 24 bits, expected 16" in refusal(tmp_path)


@pytest.mark.parametrize("data", [b"", b"RIFF", b"no sound at all"])
def test_what_is_no_sound_file_is_refused(tmp_path: Path, data: bytes) -> None:
    folder_of(tmp_path, a_wav=data)
    assert "a.wav is not a WAV file of PCM" in refusal(tmp_path)
    (tmp_path / "a.wav").rename(tmp_path / "a.flac")
    assert "a.flac is not a FLAC file" in refusal(tmp_path)


def test_a_file_without_its_end_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, a_wav=encode_wav(SOUND, RATE)[:-10])
    assert "a.wav ends before its last sample" in refusal(tmp_path)


def test_a_missing_or_empty_place_is_refused(tmp_path: Path) -> None:
    assert "the folder has no sound files (.wav, .flac)" in refusal(tmp_path)
    assert "there are no seeds at" in refusal(tmp_path / "nowhere")
    file = tmp_path / "seeds.txt"
    file.write_text("sounds")
    assert "expected an .npz file or a folder of WAV or FLAC" in refusal(file)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"waves": SOUND}, r"waves are int16 of shape (100,), expected int16 (N, samples)"),
        ({"waves": SOUND[np.newaxis] / 2}, "waves are float64 of shape (1, 100)"),
        ({"waves": np.zeros((0, 100), np.int16)}, "there are no waves in it"),
        ({"waves": SOUND[np.newaxis], "sample_rate": 16_000}, "the sample rate is 16000 Hz"),
        ({"waves": SOUND[np.newaxis], "labels": [1, 2]}, "one integer for each of 1 waves"),
        ({"sounds": SOUND}, "expected an array named waves, but the file has sounds"),
    ],
)
def test_an_npz_that_holds_something_else_is_refused(
    tmp_path: Path, content: dict[str, Any], complaint: str
) -> None:
    path = tmp_path / "seeds.npz"
    np.savez(path, **content)
    assert complaint in refusal(path)


def test_flac_without_the_extra_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flac(tmp_path, "a.flac", SOUND)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    assert "pip install 'edgeflare[audio]'" in refusal(tmp_path)


def test_sounds_that_claim_more_than_they_have_are_refused(tmp_path: Path) -> None:
    wav = encode_wav(SOUND, RATE)
    (tmp_path / "chunks").mkdir()
    chunks = wav[:12] + 200_000 * b"LIST\0\0\0\0" + wav[12:]
    assert "not a WAV file" in refusal(folder_of(tmp_path / "chunks", a_wav=chunks))
    (tmp_path / "silent").mkdir()
    still = wav[:24] + bytes(4) + wav[28:]
    assert "not a WAV file" in refusal(folder_of(tmp_path / "silent", a_wav=still))
    flac(tmp_path, "a.flac", SOUND, subtype="PCM_16")
    data = bytearray((tmp_path / "a.flac").read_bytes())
    data[21] |= 15  # the highest bits of the number of samples
    (tmp_path / "a.flac").write_bytes(data)
    assert "FLAC file" in refusal(tmp_path)


@pytest.mark.parametrize("number", range(30))
def test_changed_sounds_are_read_or_refused(number: int, tmp_path: Path) -> None:
    random = Random(number)  # noqa: S311 - no secret
    flac(tmp_path, "right.flac", SOUND, subtype="PCM_16")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "a.wav").write_bytes(wav_chunks(encode_wav(SOUND, RATE), random))
    (tmp_path / "b" / "b.flac").write_bytes(
        flac_info((tmp_path / "right.flac").read_bytes(), random)
    )
    for folder in ("a", "b"):
        with contextlib.suppress(UserError):
            load_sound_seeds(tmp_path / folder, RATE, 100, "pad-and-cut")
