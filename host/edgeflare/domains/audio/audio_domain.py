"""The domain of sound: mono PCM of 16 bits.

Two sounds are near duplicates by a coarse log-spectrogram. The mean difference of its cells, on
the 271 sounds of three sets (spoken words at 16 kHz, digits at 8 kHz, and strings of digits):

    two different seeds                                      at least 0.63 dB
    a seed, and itself with every sample off by -1, 0 or 1   at most 0.03 dB
    a seed, and itself 16 samples later                      0.14 to 0.20 dB (medians), at most 0.96
    a seed, and itself 10 % louder                           0.30 to 0.55 dB (medians), at most 0.87
    a seed, and itself with white noise at 40 dB             0.20 to 1.35 dB (medians)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, log10, prod
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import SNR, Domain, Encoder, NearnessMeasure
from edgeflare.core.input_space import InputSpace
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds
from edgeflare.core.tensor import Rounding, Tensor, quantize, row_layout, without_ones
from edgeflare.core.views import SoundView
from edgeflare.domains.audio.front_end import FrontEnd, FunctionFrontEnd, open_front_end
from edgeflare.domains.audio.sound_seeds import SOUND_SUFFIXES, Fit, load_sound_seeds
from edgeflare.domains.audio.wav_file import Wave, decode_wav, encode_wav
from edgeflare.domains.seed_files import seed_files
from edgeflare.domains.windows import FeatureWindows, InputWindows, Windows
from edgeflare.errors import UserError
from edgeflare.record.json_types import JsonValue
from edgeflare_operators import MutationOperator, operators

_FULL_SCALE = np.float32(32_768.0)
"""What samples are divided by where there is no front end."""

Normalize = Literal["none", "peak"]
"""What the samples of a sound are divided by where there is no front end: 32,768, or nothing for an
input of whole numbers without a scale; or the largest magnitude among them ("peak"), so that it
becomes 1, and silence stays silence."""

WindowSource = Literal["features", "samples"]
"""What windows are cut out of: the features that the front end makes of a whole sound; or its
samples, and the front end is given each window by itself."""

_HOLDING_SAMPLES = ("int16", "int32", "int64")
"""Types of inputs without a scale that are given samples as they are: others do not hold them."""

_AudioFingerprint = NDArray[np.int16]
"""The energy of each cell, in whole dB: (`_TIMES` * `_BANDS`,)."""

_TIMES = 32
"""Parts that a sound is divided into."""

_BANDS = 16
"""Parts of the spectrum, each as many times as wide as the one below it."""

_FRAME = 512
"""Samples of a frame; two frames make a cell."""

_LEAST = 16.0
"""Energies below it count as it: that of a wave of 4 PCM steps, root mean square."""

_MOST_DB = 0.5
"""The mean difference of the cells of two sounds that resemble each other, at most."""

_EDGES = np.unique(np.rint(np.geomspace(2, _FRAME // 2 + 1, _BANDS + 1)).astype(np.int64))[:-1]
"""The first bin of each band."""

_REMEMBERED_BYTES: Final = 32 * 2**20
"""Bytes of sounds and features that are remembered at most: nearly two batches of 500 seconds."""

DEFAULT_SAMPLE_RATE = 16_000
"""Hz. That of models of speech and of sounds on devices, unless a pair says otherwise."""

LEVEL = 16.0
"""PCM steps of a level. In levels of 16, the root mean square of recorded speech is 54 to 141
(medians of three sets); the contrast of images is 54 to 83 gray levels."""

PCM_16 = InputSpace("int16", -32_768, 32_767, cell_axes=1, level=LEVEL)
"""Whole numbers from -32,768 to 32,767, in samples."""

DEFAULT_LINF = 2100.0
"""Levels. The 90th percentile of the published loop's findings is 2,120 (the spoken words that are
shipped) and 2,740 (MLPerf Tiny's keyword spotting)."""

DEFAULT_RMS = 320.0
"""Levels, root mean square over a sound's samples. The 90th percentile of the published loop's
findings is 333 and 536, on the same two pairs."""

PAPER = ("time-stretch", "pitch-shift", "time-shift", "gain")
"""Names of the operators of DFlare's paper (section 6.1)."""


class AudioDomain(Domain):
    """Mono sounds of 16 bits, stored as WAV."""

    name = "audio"
    suffix = ".wav"
    space = PCM_16
    default_linf = DEFAULT_LINF
    default_rms = DEFAULT_RMS

    def __init__(
        self,
        sample_rate: int = DEFAULT_SAMPLE_RATE,
        samples: int | None = None,
        fit: Fit = "none",
        front_end: Mapping[str, JsonValue] | None = None,
        rounding: Rounding = "half-away",
        normalize: Normalize = "none",
        windows: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Take sounds of one sample rate and length.

        Args:
            sample_rate: sample rate in Hz, which stored files say; a wave itself has none.
            samples: samples of each sound; unless given, as many as the model takes, which it has
                to take as they are, then.
            fit: what is done with seeds of another length.
            front_end: what makes features of sounds, `name` and its settings; see
                `open_front_end`. None where the model takes the samples themselves, see
                `normalize`.
            rounding: rounding of a quantized input, see `quantize`.
            normalize: what samples are divided by, see `Normalize`; a front end says so itself.
            windows: `length` and `step` of the windows that a model is given one after the other,
                see `Windows`, and the `source` that they are cut out of, see `WindowSource`. None
                where it is given whole sounds, or the frames that the front end makes.

        Raises:
            UserError: the sample rate is none, or the length, or there is no such front end.

        """
        if not 1 <= sample_rate < 1 << 31:
            raise UserError(
                f"sample_rate has to be a number of Hz, such as {DEFAULT_SAMPLE_RATE}, not "
                f"{sample_rate}"
            )
        if samples is not None and samples < 1:
            raise UserError(f"samples has to be 1 or more, not {samples}")
        if samples is None and front_end is not None:
            raise UserError("samples is missing: say how many samples a sound of the model has")
        self.sample_rate = sample_rate
        self._samples, self._fit = samples, fit
        if normalize == "peak" and front_end is not None:
            raise UserError(
                'normalize = "peak" is of models that take the samples themselves: remove it, and'
                ' write wave_scale = "maximum" under front_end, which log-mel and mfcc take; of'
                " another front end, let a function do so (docs/pairs/inputs.md)"
            )
        self._rounding: Rounding = rounding
        self._normalize: Normalize = normalize
        self._front_end = None if front_end is None else open_front_end(front_end, sample_rate)
        self._features = None if self._front_end is None else _RememberedFeatures(self._front_end)
        said = None if windows is None else dict(windows)
        self._source = "features" if said is None else said.pop("source", "features")
        self._windows = Windows.of(said)
        if self._source not in get_args(WindowSource):
            raise UserError(
                f"windows: source is {self._source!r}; expected 'features' or 'samples'"
            )

    def paper_operators(self) -> tuple[MutationOperator, ...]:
        """Return those of section 6.1."""
        return operators("audio", PAPER)

    def input_shape(self, tensor: Tensor, model: str = "the model") -> tuple[int, ...]:
        """Return (samples,).

        Raises:
            UserError: the model's input takes another number of values than a sound has, or than
                the front end makes of it; or a sound has another number of windows.

        """
        windows = self._windows
        if windows is None:
            return self._sound_shape(tensor, model, self._samples)
        count = tensor.shape[0]
        samples = windows.rows(count) if self._samples is None else self._samples
        rows = self._rows(samples)
        if windows.count(rows) != count:
            right = windows.count(rows)
            raise UserError(
                f"{model}: frames is {count}, but {rows} {self._cut_out} of a sound have {right}"
                f" windows of {windows.length} with the step {windows.step}: "
                + (f"write frames = {right}" if right else "give longer sounds")
            )
        if self._source == "samples":
            self._sound_shape(_of_window(tensor), model, windows.length)
        else:
            self._sound_shape(self._whole(tensor, model, rows), model, samples)
        return (samples,)

    def window_count(self) -> int | None:
        """Return how many windows a sound has; None where only a user's function could tell."""
        if self._windows is None or self._samples is None:
            return None
        if self._source == "features" and isinstance(self._front_end, FunctionFrontEnd):
            return None
        return self._windows.count(self._rows(self._samples))

    @property
    def _cut_out(self) -> str:
        """What windows are cut out of, in words."""
        return "samples" if self._source == "samples" or self._front_end is None else "feature rows"

    def _rows(self, samples: int) -> int:
        """Return how many rows a sound has of which windows are cut."""
        if self._source == "samples" or self._front_end is None:
            return samples
        return self._front_end.shape(samples)[0]

    def _whole(self, tensor: Tensor, model: str, rows: int) -> Tensor:
        """Return the input as it would be of the features of a whole sound."""
        assert self._windows is not None  # noqa: S101 - of windows only
        return replace(tensor, shape=(rows, *self._windows.row(tensor, model)))

    def _sound_shape(self, tensor: Tensor, model: str, samples: int | None) -> tuple[int, ...]:
        """Return (samples,) of what is encoded at once; see `input_shape`."""
        takes = prod(tensor.shape)
        samples = takes if samples is None else samples
        front_end = self._front_end
        makes = (samples,) if front_end is None else front_end.shape(samples)
        if prod(makes) != takes:
            what = "a sound has" if front_end is None else "the front end makes of a sound"
            raise UserError(
                f"{model}: input {tensor.name!r} has shape {tensor.shape}, which are {takes}"
                f" values, but {what} {' x '.join(map(str, makes))}: check samples"
                + ("" if front_end is None else " and the settings of the front end")
                + self._windows_line(takes, makes)
            )
        if front_end is None and _takes_whole_numbers(tensor):
            self._require_samples_held(tensor, model)
        made, taken = map(without_ones, (makes, tensor.shape))
        if made != taken and sorted(made) == sorted(taken):
            raise UserError(
                f"{model}: input {tensor.name!r} has shape {tensor.shape}, and the front end makes"
                f" {' x '.join(map(str, makes))} of a sound: name a Python function as the front"
                " end that gives them in the model's order"
            )
        return (samples,)

    def _require_samples_held(self, tensor: Tensor, model: str) -> None:
        """Refuse an input of whole numbers without a scale that does not hold samples."""
        if tensor.dtype not in _HOLDING_SAMPLES:
            raise UserError(
                f"{model}: input {tensor.name!r} takes {tensor.dtype} without a scale, which holds"
                f" no samples of 16 bits: convert the model so that it takes float32, int16 or"
                " quantized values, or name a front end"
            )
        if self._normalize == "peak":
            raise UserError(
                f"{model}: input {tensor.name!r} takes {tensor.dtype} without a scale, which is"
                ' given samples as they are: remove normalize = "peak"'
            )

    def _windows_line(self, takes: int, makes: tuple[int, ...]) -> str:
        """Return the line that makes a model's input of a part of a sound; empty for no part."""
        rows, each = makes[0], prod(makes[1:])
        if self._windows is not None or takes % each or not takes // each < rows:
            return ""
        length = takes // each
        return (
            f", or for windows of {length} write windows = {{ length = {length}, step ="
            f" {max(1, length // 2)} }} with the app's step"
        )

    @staticmethod
    def seed_files(path: Path) -> list[Path]:
        """Return an `.npz` itself, or the sound files of a folder."""
        return seed_files(path, SOUND_SUFFIXES)

    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str = "", choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load sounds: the array `waves` of an `.npz` unless told otherwise, or a folder."""
        return load_sound_seeds(
            path, self.sample_rate, shape[0], self._fit, choice, array or "waves"
        )

    def encoder(self, tensor: Tensor) -> Encoder:
        """Return what makes features of sounds, and quantizes them."""
        (samples,) = self.input_shape(tensor)
        if self._windows is None:
            return self._sound_encoder(tensor)
        if self._source == "samples":
            return InputWindows(self._windows, self._sound_encoder(_of_window(tensor)), tensor)
        rows = self._rows(samples)
        encoder = self._sound_encoder(self._whole(tensor, "the model", rows))
        return FeatureWindows(self._windows, encoder, rows, tensor)

    def _sound_encoder(self, tensor: Tensor) -> _SoundEncoder:
        return _SoundEncoder(self._features, tensor, self._rounding, self._normalize)

    def encode_file(self, wave: Wave) -> bytes:
        """Return the WAV file of a sound."""
        return encode_wav(wave, self.sample_rate)

    @staticmethod
    def decode_file(data: bytes) -> Wave | None:
        """Return the sound of a WAV file, whatever its sample rate; None where it is none."""
        decoded = decode_wav(data)
        return None if decoded is None else decoded.wave

    def view(self, wave: Wave) -> SoundView:
        """Return the sound at the sample rate of the domain."""
        return SoundView(wave, self.sample_rate)

    @staticmethod
    def view_file(data: bytes) -> SoundView | None:
        """Return the sound at the sample rate of its file; None where it is none."""
        decoded = decode_wav(data)
        return None if decoded is None else SoundView(decoded.wave, decoded.sample_rate)

    @staticmethod
    def fingerprint(wave: Wave) -> _AudioFingerprint:
        """Return the coarse log-spectrogram of a sound."""
        return audio_fingerprint(wave)

    @staticmethod
    def count_near(fingerprints: Sequence[_AudioFingerprint]) -> int:
        """Return how many sounds resemble another one, or equal it."""
        if not fingerprints:
            return 0
        all_of_them = np.stack(fingerprints)
        # Whole numbers: no rounding decides.
        most = _MOST_DB * all_of_them.shape[1]
        return sum(
            int(np.count_nonzero(np.abs(all_of_them - row).sum(1, dtype=np.int64) <= most) > 1)
            for row in all_of_them  # each resembles itself
        )

    @property
    def nearness_measure(self) -> NearnessMeasure:
        """SNR, since how loud a sound is has little to do with the range of its samples."""
        return SNR

    @staticmethod
    def nearness_db(wave: Wave, seed: Wave) -> float:
        """Return the SNR of a sound to its seed, in dB."""
        return signal_to_noise_db(wave, seed)


def at_full_scale(waves: NDArray[np.int16]) -> NDArray[np.float32]:
    """Return sounds divided by their peaks, each sample in float32; silence as zeros.

    Args:
        waves: (batch, samples), int16.

    """
    real = waves.astype(np.float32)  # before the magnitude: that of -32,768 is no int16
    peaks = np.abs(real).max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(real / np.where(peaks > 0.0, peaks, np.float32(1.0)))


def signal_to_noise_db(wave: Wave, seed: Wave) -> float:
    """Return how near a sound is to its seed: 10 log10 of the seed's energy over the change's.

    It is infinite where the two are equal, and -infinite where a silent seed was changed.

    Args:
        wave: (samples,), int16.
        seed: as many samples.

    """
    change = np.subtract(wave, seed, dtype=np.int64)
    wide = seed.astype(np.int64)
    noise, signal = int(change @ change), int(wide @ wide)
    if not noise:
        return inf
    return 10.0 * log10(signal / noise) if signal else -inf


def audio_fingerprint(wave: NDArray[np.int16]) -> _AudioFingerprint:
    """Return what a sound is compared by.

    Args:
        wave: (samples,), int16, of any length.

    """
    half_step = max(1, len(wave) // (2 * _TIMES))
    padded = np.pad(wave.astype(np.float64), (_FRAME // 2, _FRAME + 2 * _TIMES))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::half_step][: 2 * _TIMES]
    window = np.hanning(_FRAME)
    energies = np.abs(np.fft.rfft(frames * window)) ** 2 * (2.0 / (_FRAME * (window @ window)))
    cells = np.add.reduceat(energies[::2] + energies[1::2], _EDGES, axis=1) / 2
    decibels: _AudioFingerprint = np.rint(10.0 * np.log10(np.maximum(cells, _LEAST))).astype(
        np.int16
    )
    return decibels.ravel()


def _takes_whole_numbers(tensor: Tensor) -> bool:
    """Whether an input is given numbers rounded to whole ones, as they are."""
    return not tensor.scale and not tensor.dtype.startswith("float")


def _of_window(tensor: Tensor) -> Tensor:
    """Return an input, (windows, *shape), as it is of one window."""
    return replace(tensor, shape=tensor.shape[1:])


class _RememberedFeatures:
    """A front end that makes the features of a sound once for the encoders of several models.

    Original and twin are given the same sounds one after the other, and the features of a sound may
    take longer than both inferences.
    """

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end
        self._made: dict[bytes, NDArray[np.float32]] = {}
        self._size = 0

    def features(self, waves: NDArray[np.int16]) -> NDArray[np.float32]:
        """Return the features of sounds, as `FrontEnd.features` does.

        Raises:
            UserError: those of a sound have another shape than those that are remembered.

        """
        keys = [wave.tobytes() for wave in waves]
        made = self._made
        known = {key: made[key] for key in keys if key in made}
        new = [place for place, key in enumerate(keys) if key not in known]
        if len(new) == len(keys):
            features = self._front_end.features(waves)
            self._remember(keys, features)
            return features
        if new:
            features = self._front_end.features(waves[new])
            shape, before = features.shape[1:], next(iter(known.values())).shape
            if shape != before:
                raise UserError(
                    f"the front end made {shape} of a sound and {before} of another: of all sounds"
                    " it has to be as many"
                )
            self._remember([keys[place] for place in new], features)
            known |= {keys[place]: row for place, row in zip(new, features, strict=True)}
        return np.stack([known[key] for key in keys])

    def _remember(self, keys: Sequence[bytes], features: NDArray[np.float32]) -> None:
        size = sum(map(len, keys)) + features.nbytes
        if self._size + size > _REMEMBERED_BYTES:
            self._made, self._size = {}, 0
        if size <= _REMEMBERED_BYTES:
            self._made |= zip(keys, features, strict=True)
            self._size += size


class _SoundEncoder:
    """Encodes sounds as a model's input."""

    def __init__(
        self,
        front_end: _RememberedFeatures | None,
        tensor: Tensor,
        rounding: Rounding,
        normalize: Normalize,
    ) -> None:
        """Take a front end, or None where the model takes samples."""
        self._front_end, self._tensor = front_end, tensor
        self._rounding: Rounding = rounding
        self._normalize: Normalize = normalize
        self._row, _ = row_layout([tensor])

    def encode(self, inputs: NDArray[np.int16]) -> NDArray[np.generic]:
        """Encode sounds.

        Args:
            inputs: (batch, samples), int16.

        Returns:
            (batch, *input shape without a batch dimension of 1), C-contiguous, in the input's
            dtype.

        Raises:
            UserError: a user's front end makes other features of a sound than of silence.

        """
        if self._front_end is not None:
            features = self._front_end.features(inputs)
        elif self._normalize == "peak":
            features = at_full_scale(inputs)
        elif _takes_whole_numbers(self._tensor):
            features = inputs.astype(np.float32)
        else:
            features = inputs.astype(np.float32) / _FULL_SCALE
        if features.size != len(inputs) * prod(self._row):
            raise UserError(
                f"the front end made {features.shape[1:]} of a sound, but input"
                f" {self._tensor.name!r} takes {self._row}: of all sounds it has to be as many"
            )
        made = quantize(features.reshape(len(inputs), *self._row), self._tensor, self._rounding)
        return np.ascontiguousarray(made)
