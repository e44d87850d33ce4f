"""Speak the words with espeak-ng in many voices, and place them in noise.

Every draw comes from the generator handed in, so that the same generator gives the same clips.
"""

from __future__ import annotations

import io
import os
import subprocess
import wave
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes")
SAMPLE_RATE = 8_000  # Hz
SAMPLES = 8_000  # of a clip: one second

ACCENTS = (
    "en-gb", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-gb-x-rp",
    "en-us", "en-us-nyc", "en-029",
)  # fmt: skip
TRAINING_VARIANTS = (
    "m1", "m3", "m4", "m6", "m8", "f1", "f3", "f4", "f5",
    "Alex", "Andy", "anika", "Annie", "belinda", "caleb", "ed", "Gene", "Jacky",
    "klatt", "klatt3", "Lee", "linda", "norbert", "pablo", "steph", "zac",
)  # fmt: skip
TEST_VARIANTS = ("m2", "m5", "m7", "f2", "Alicia", "Michael")

SPEEDS = (120, 220)  # words a minute
PITCHES = (20, 80)  # espeak-ng's own units, 0 to 99
PEAKS_DB = (-18.0, -3.0)  # of the loudest sample of the word, below full scale
NOISE_RATIOS_DB = (3.0, 30.0)  # of the word's power to that of the noise
NOISE_EXPONENTS = (0.0, 2.0)  # the noise's power falls as frequency ** -exponent: white to brown
SILENCE = 0.01  # of a word's loudest sample; what is weaker at its ends is cut off


class Clips(NamedTuple):
    """Words in noise.

    Attributes:
        waves: int16 of shape (clips, SAMPLES), at SAMPLE_RATE.
        labels: int64 of shape (clips,), positions in WORDS.

    """

    waves: NDArray[np.int16]
    labels: NDArray[np.int64]


class Utterance(NamedTuple):
    """What espeak-ng is told to say, and how."""

    word: str
    voice: str
    speed: int
    pitch: int


def spoken_clips(variants: Sequence[str], draws: int, rng: np.random.Generator) -> Clips:
    """Speak every word in every accent by every variant, `draws` times each, and add noise."""
    utterances = [
        Utterance(
            word,
            f"{accent}+{variant}",
            int(rng.integers(SPEEDS[0], SPEEDS[1] + 1)),
            int(rng.integers(PITCHES[0], PITCHES[1] + 1)),
        )
        for variant in variants
        for accent in ACCENTS
        for word in WORDS
        for _ in range(draws)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        spoken = list(pool.map(speak, utterances))
    waves = np.stack([in_noise(speech, rng) for speech in spoken])
    labels = np.array([WORDS.index(utterance.word) for utterance in utterances], np.int64)
    return Clips(waves, labels)


def speak(utterance: Utterance) -> NDArray[np.float64]:
    """Return a word without the silence around it, at SAMPLE_RATE, of at most SAMPLES samples."""
    command = [
        "espeak-ng", "--stdout", "-v", utterance.voice,
        "-s", str(utterance.speed), "-p", str(utterance.pitch), utterance.word,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True)
    # espeak-ng cannot know the length of what it writes to a pipe, so the header's is not right.
    with wave.open(io.BytesIO(done.stdout)) as file:
        rate, frames = file.getframerate(), file.readframes(len(done.stdout))
    speech = resampled(np.frombuffer(frames, "<i2").astype(np.float64), rate)
    loud = np.flatnonzero(np.abs(speech) > SILENCE * np.abs(speech).max())
    return speech[loud[0] : loud[-1] + 1][:SAMPLES]


def resampled(speech: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Return speech at SAMPLE_RATE, without the frequencies that it cannot hold."""
    length = round(len(speech) * SAMPLE_RATE / rate)
    spectrum = np.fft.rfft(speech)[: length // 2 + 1]
    return np.fft.irfft(spectrum, length) * length / len(speech)


def in_noise(speech: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int16]:
    """Return a clip of SAMPLES samples with the word anywhere in it, and noise throughout."""
    speech = speech / np.abs(speech).max()
    begin = int(rng.integers(SAMPLES - len(speech) + 1))
    clip = np.zeros(SAMPLES)
    clip[begin : begin + len(speech)] = speech

    frequencies = np.maximum(np.fft.rfftfreq(SAMPLES, 1 / SAMPLE_RATE), 50.0)
    spectrum = np.fft.rfft(rng.normal(size=SAMPLES))
    noise = np.fft.irfft(spectrum * frequencies ** (-rng.uniform(*NOISE_EXPONENTS) / 2), SAMPLES)
    power = np.mean(speech**2) / 10.0 ** (rng.uniform(*NOISE_RATIOS_DB) / 10)
    clip += noise * np.sqrt(power / np.mean(noise**2))

    peak = 32_768 * 10.0 ** (rng.uniform(*PEAKS_DB) / 20)
    return np.clip(np.rint(clip * peak), -32_768, 32_767).astype(np.int16)


def espeak_version() -> str:
    """Return what espeak-ng says of its version."""
    done = subprocess.run(["espeak-ng", "--version"], check=True, capture_output=True, text=True)
    return done.stdout.split("Data at")[0].partition(":")[2].strip()
