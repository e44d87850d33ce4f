"""Seed sounds: an `.npz` file of waves, or a folder of WAV and FLAC files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

import numpy as np

from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds, ids_of, take
from edgeflare.domains.audio.wav_file import Wave, decode_wav, wav_format
from edgeflare.domains.seed_files import (
    chosen_files,
    labels_of,
    read_npz,
    require_seeds,
    seed_content,
)
from edgeflare.errors import UserError

SOUND_SUFFIXES = (".wav", ".flac")
"""Suffixes of files that are read as sounds; other files are ignored."""

_MOST_BYTES = 2**28
"""Most bytes of a sound's file: 46 minutes at 48 kHz."""

_MOST_SAMPLES = _MOST_BYTES // 2
"""Most samples of a sound that is compressed, silence to nearly nothing."""

Fit = Literal["none", "pad", "cut", "pad-and-cut"]
"""What is done with sounds of another length: nothing, they are refused; shorter ones are filled up
with silence behind them; the end of longer ones is cut off; or both."""


def load_sound_seeds(
    path: Path,
    sample_rate: int,
    samples: int,
    fit: Fit = "none",
    choice: SeedChoice = ALL_SEEDS,
    array: str = "waves",
) -> Seeds:
    """Load seed sounds.

    Args:
        path: a folder of mono WAV or FLAC files of 16 bits, taken in the order of their names; or
            an `.npz` with `waves`, int16 (N, samples), and maybe `labels`, integers (N,), and
            `sample_rate`, a number.
        sample_rate: sample rate that they have to have, in Hz; an `.npz` that does not say one is
            taken to.
        samples: samples of each sound that the model takes.
        fit: what is done with sounds of another length.
        choice: says which of them are taken.
        array: the name of the sounds in an `.npz`.

    Raises:
        UserError: there are none, or one is not a sound of that rate, kind and length.

    """
    require_seeds(path, "WAV or FLAC files")
    if path.is_dir():
        return _from_folder(path, sample_rate, samples, fit, choice)
    return _from_npz(path, sample_rate, samples, fit, choice, array)


def fitted(wave: Wave, samples: int, fit: Fit, what: str) -> Wave:
    """Return a sound of a length: the same one, or padded with silence, or cut at its end.

    Args:
        wave: (samples,), int16.
        samples: the length.
        fit: what may be done.
        what: the sound is called in messages.

    Raises:
        UserError: it has another length, and neither padding nor cutting that way is allowed.

    """
    if len(wave) < samples:
        if fit not in ("pad", "pad-and-cut"):
            raise UserError(
                f"{what}: the sound is shorter than the window, {len(wave)} of {samples} samples: "
                'set fit to "pad" to put silence behind it, or give longer sounds'
            )
        return np.pad(wave, (0, samples - len(wave)))
    if len(wave) > samples and fit not in ("cut", "pad-and-cut"):
        raise UserError(
            f"{what}: the sound is longer than the window, {len(wave)} of {samples} samples: set "
            'fit to "cut" to leave out its end, or give shorter sounds'
        )
    return wave[:samples]


def read_sound(file: Path, sample_rate: int) -> Wave:
    """Return the sound of a WAV or FLAC file: (samples,), int16.

    Raises:
        UserError: it is not a sound file of mono PCM in 16 bits at that sample rate, or FLAC cannot
            be read here.

    """
    data = seed_content(file, _MOST_BYTES)
    if file.suffix.lower() == ".flac":
        return _decode_flac(file, data, sample_rate)
    said = wav_format(data)
    if said is None:
        raise UserError(f"seeds: {file} is not a WAV file of PCM: correct or remove it")
    _refuse_misfit(file, said.sample_rate, said.channels, said.bits, sample_rate)
    decoded = decode_wav(data)
    if decoded is None:
        raise UserError(f"seeds: {file} ends before its last sample: correct or remove it")
    return decoded.wave


def sound_format(file: Path) -> tuple[int, int]:
    """Return the sample rate of a WAV file in Hz, and how many samples it has.

    Raises:
        UserError: it is no WAV file, or cannot be read.

    """
    decoded = decode_wav(seed_content(file, _MOST_BYTES))
    if decoded is None:
        raise UserError(f"seeds: {file} is not a WAV file of mono PCM in 16 bits")
    return decoded.sample_rate, len(decoded.wave)


def _decode_flac(file: Path, data: bytes, sample_rate: int) -> Wave:
    try:
        import soundfile  # noqa: PLC0415  # of the extra
    except (ImportError, OSError) as error:
        raise UserError(
            f"seeds: {file}: FLAC files need soundfile: pip install 'edgeflare[audio]'"
        ) from error
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as sound:
            bits = {"PCM_S8": 8, "PCM_16": 16, "PCM_24": 24}.get(sound.subtype, 0)
            known, claimed = sound.format == "FLAC", sound.frames
            if known:
                _refuse_misfit(file, sound.samplerate, sound.channels, bits, sample_rate)
                wave: Wave = sound.read(min(claimed, _MOST_SAMPLES), dtype="int16")
    except (soundfile.SoundFileError, MemoryError) as error:
        raise UserError(f"seeds: {file} is not a FLAC file: correct or remove it") from error
    if not known or len(wave) != claimed:
        raise UserError(
            f"seeds: {file} is no FLAC file of the {claimed:,} samples that it claims, of which"
            f" {_MOST_SAMPLES:,} are read at most: correct or remove it"
        )
    return wave


def _refuse_misfit(file: Path, rate: int, channels: int, bits: int, sample_rate: int) -> None:
    if channels != 1:
        raise UserError(
            f"seeds: {file} has {channels} channels, expected mono: mix them down, for example "
            "with sox IN OUT channels 1"
        )
    if rate != sample_rate:
        raise UserError(
            f"seeds: {file} has a sample rate of {rate} Hz, expected {sample_rate}: resample it, "
            f"for example with sox IN OUT rate {sample_rate}, or set sample_rate"
        )
    if bits != 16:
        raise UserError(
            f"seeds: {file} has samples of {bits} bits, expected 16: convert it, for example with "
            "sox IN -b 16 OUT"
        )


def _from_folder(path: Path, sample_rate: int, samples: int, fit: Fit, choice: SeedChoice) -> Seeds:
    found = chosen_files(path, SOUND_SUFFIXES, choice)
    if not found.files:
        raise UserError(
            f"seeds {path}: the folder has no sound files ({', '.join(SOUND_SUFFIXES)})"
        )
    waves = [
        fitted(read_sound(file, sample_rate), samples, fit, f"seeds: {file}")
        for file in found.files
    ]
    return Seeds(np.stack(waves), None, found.names, ids=found.ids, folders=found.folders)


def _from_npz(
    path: Path, sample_rate: int, samples: int, fit: Fit, choice: SeedChoice, array: str
) -> Seeds:
    arrays = read_npz(path, (array, "labels", "sample_rate"))
    waves = arrays[array]
    if waves.dtype != np.int16 or waves.ndim != 2:
        raise UserError(
            f"seeds {path}: waves are {waves.dtype} of shape {waves.shape}, expected int16 (N, "
            "samples) of mono sounds"
        )
    if not len(waves):
        raise UserError(f"seeds {path}: there are no waves in it, {waves.shape}")
    rate = arrays.get("sample_rate", np.array(sample_rate))
    if rate.size != 1 or rate.item() != sample_rate:
        raise UserError(
            f"seeds {path}: the sample rate is {rate.tolist()} Hz, expected {sample_rate}: "
            "resample the waves, or set sample_rate"
        )
    labels = labels_of(path, arrays, len(waves), "waves")
    places = choice.places(len(waves), labels)
    made = [
        fitted(wave.astype(np.int16), samples, fit, f"seeds {path}") for wave in take(waves, places)
    ]
    return Seeds(
        np.stack(made),
        labels if labels is None else take(labels, places),
        tuple(map(str, places.tolist())),
        ids=ids_of(places),
    )
