from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.domains.audio.audio_domain import AudioDomain, signal_to_noise_db
from edgeflare.domains.audio.audio_fingerprint import audio_fingerprint
from edgeflare.domains.audio.wav_file import WavFormat, decode_wav, wav_format
from edgeflare.errors import UserError

Wave = NDArray[np.int16]
WAVES = st.integers(0, 60).flatmap(lambda samples: arrays(np.int16, (samples,)))


@given(wave=WAVES, sample_rate=st.integers(1, 2**31 - 1))
def test_a_file_keeps_a_sound_and_its_sample_rate_to_the_bit(wave: Wave, sample_rate: int) -> None:
    data = AudioDomain(sample_rate).encode_file(wave)
    kept = AudioDomain.decode_file(data)
    assert kept is not None
    assert kept.dtype == np.int16
    assert np.array_equal(kept, wave)
    assert kept.flags.writeable
    assert wav_format(data) == WavFormat(sample_rate, 1, 16)


@given(wave=WAVES, sample_rate=st.integers(1, 2**31 - 1))
def test_a_file_is_shown_at_its_own_sample_rate(wave: Wave, sample_rate: int) -> None:
    """Whatever that of the domain is which reads it."""
    own = AudioDomain(sample_rate)
    view = AudioDomain(16_000).view_file(own.encode_file(wave))
    assert view is not None
    assert view.sample_rate == own.view(wave).sample_rate == sample_rate
    assert np.array_equal(view.wave, wave)
    assert AudioDomain().view_file(b"no sound") is None


@given(wave=arrays(np.int16, (20,)), cut=st.integers(0, 83))
def test_a_file_without_its_end_is_none(wave: Wave, cut: int) -> None:
    assert AudioDomain.decode_file(AudioDomain().encode_file(wave)[:cut]) is None


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
