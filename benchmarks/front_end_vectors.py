"""Features of TensorFlow and librosa, which tests hold `log-mel` and `mfcc` to.

    python -m venv /tmp/reference
    /tmp/reference/bin/pip install tensorflow-cpu librosa
    cd tests/domains/audio
    /tmp/reference/bin/python ../../../benchmarks/front_end_vectors.py front_end_vectors.npz

Needs neither EdgeFlare nor its environment. The sounds are made here: a rising tone in noise,
with silence before it.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import librosa
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

Reals = NDArray[np.float32]


def main() -> None:
    path = Path(sys.argv[1])
    slow, fast = sound(8_000, 6_000), sound(16_000, 8_000)
    vectors: dict[str, Any] = {
        "sound_8000": slow,
        "sound_16000": fast,
        "tensorflow_log_mel": tensorflow_log_mel(slow, 8_000),
        "tensorflow_mfcc": tensorflow_mfcc(fast, 16_000),
        "librosa_log_mel": librosa_log_mel(slow, 8_000),
        "librosa_mfcc": librosa_mfcc(fast, 16_000),
    }
    np.savez_compressed(path, **vectors)
    for package in ("tensorflow-cpu", "librosa", "numpy"):
        print(package, version(package))
    for name, values in vectors.items():
        print(f"{name}: {values.dtype} {values.shape}")


def sound(sample_rate: int, samples: int) -> NDArray[np.int16]:
    rng = np.random.default_rng(0)
    seconds = np.arange(samples) / sample_rate
    tone = 0.3 * np.sin(2 * np.pi * (200.0 + 1_500.0 * seconds) * seconds)
    # Without noise, bands would hold the rounding errors of float32 alone, which logarithms show.
    mixed = tone + rng.normal(0.0, 0.02, samples)
    mixed[: samples // 8] = 0.0
    return np.rint(32_767 * mixed).astype(np.int16)


def tensorflow_log_mel(wave: NDArray[np.int16], sample_rate: int) -> Reals:
    """Energies of frames of 25 ms every 10 ms in 32 bands from 60 to 3,900 Hz, ln(x + 1e-6)."""
    signal = tf.cast(wave, tf.float32) / 32_768.0
    spectrum = tf.abs(tf.signal.stft(signal, 200, 80, 256)) ** 2
    filters = tf.signal.linear_to_mel_weight_matrix(32, 129, sample_rate, 60.0, 3_900.0)
    return np.asarray(tf.math.log(spectrum @ filters + 1e-6), np.float32)


def tensorflow_mfcc(wave: NDArray[np.int16], sample_rate: int) -> Reals:
    """As MLPerf Tiny's keyword spotting: magnitudes in 40 bands from 20 to 4,000 Hz, 10 kept."""
    signal = tf.cast(wave, tf.float32)
    signal = signal / tf.reduce_max(signal)
    spectrum = tf.abs(tf.signal.stft(signal, 480, 320, 512))
    filters = tf.signal.linear_to_mel_weight_matrix(40, 257, sample_rate, 20.0, 4_000.0)
    log_mel = tf.math.log(spectrum @ filters + 1e-6)
    return np.asarray(tf.signal.mfccs_from_log_mel_spectrograms(log_mel)[..., :10], np.float32)


def librosa_log_mel(wave: NDArray[np.int16], sample_rate: int) -> Reals:
    """Compute what librosa does by default, but for frames of 25 ms every 10 ms and 40 bands."""
    energies = librosa.feature.melspectrogram(
        y=(wave / 32_768.0).astype(np.float32),
        sr=sample_rate,
        n_fft=256,
        win_length=200,
        hop_length=80,
        n_mels=40,
        fmin=20.0,
        fmax=4_000.0,
    )
    return np.asarray(librosa.power_to_db(energies).T, np.float32)


def librosa_mfcc(wave: NDArray[np.int16], sample_rate: int) -> Reals:
    """Compute what librosa does by default, but for frames of 32 ms every 16 ms and 64 bands."""
    made = librosa.feature.mfcc(
        y=(wave / 32_768.0).astype(np.float32),
        sr=sample_rate,
        n_mfcc=13,
        n_fft=512,
        hop_length=256,
        n_mels=64,
    )
    return np.asarray(made.T, np.float32)


if __name__ == "__main__":
    main()
