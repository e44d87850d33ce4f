"""What is assumed of the inputs of a model, by their shapes and by what is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from edgeflare.core.tensor import without_ones
from edgeflare.domains.audio.audio_domain import DEFAULT_SAMPLE_RATE
from edgeflare.domains.audio.sound_seeds import sound_format
from edgeflare.errors import UserError
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.record.json_types import JsonValue
from edgeflare.release.assumptions.arrays import (
    assumed_arrays,
    assumed_state,
    input_names,
    state_notes,
    table_lines,
)
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.input_source import GivenInputs
from edgeflare.release.assumptions.picture_inputs import assumed_pictures, picture_size

_LEAST_SAMPLES: Final = 256
"""Values of an input from which on they are samples of a sound, and no features."""

_FRAMES_MS: Final = ((30, 20), (25, 10), (32, 16), (40, 20), (20, 10), (64, 32), (30, 10))
"""Usual lengths of a frame and of the step from one to the next, in milliseconds."""

_MOST_COEFFICIENTS: Final = 20
"""Features of a frame up to which they are cepstral coefficients, and bands from there on."""


def assumed_inputs(graph: Graph, given: GivenInputs, said: Settings) -> Assumption:
    """Return what is assumed of the inputs of a model; nothing where what is given is not known.

    Args:
        graph: graph of the compressed model.
        given: what lies where the inputs are.
        said: what the user says.

    Raises:
        UserError: an `.npz` of sounds says no sample rate where it should.

    """
    tensors = [graph.tensors[at] for at in graph.inputs]
    state = assumed_state(graph, given)
    free = [input_ for input_ in tensors if input_.name not in state]
    waves = given.arrays.get("waves")
    heard = given.kind == "sounds" or (waves is not None and waves.ndim == 2)
    if heard and len(free) == 1 and not given.fitting(free[0]):
        sounds = assumed_sounds(free[0], given, framewise=bool(state))
        fed = Settings(state=state, frames=1) if state else Settings()
        return sounds.beside(Assumption(fed, tuple(state_notes(state))))
    if len(tensors) > 1:
        return assumed_arrays(graph, given) if given.kind == "npz" else Assumption()
    (tensor,) = tensors
    fitting = given.fitting(tensor)
    may_be_picture = picture_size(tensor) is not None
    if may_be_picture and given.kind in ("pictures", ""):
        return assumed_pictures(graph, tensor, said)
    if may_be_picture and (array := _pictures_among(given, fitting)):
        return _named(assumed_pictures(graph, tensor, said), tensor, array, said)
    if given.kind in ("arrays", "npz"):
        return assumed_arrays(graph, given)
    return Assumption()


def _pictures_among(given: GivenInputs, fitting: list[str]) -> str:
    """Return the name of the array of pictures, of whatever size; empty where there is none."""
    if "images" in given.arrays:
        return "images"
    pixels = [array for array in fitting if given.arrays[array].dtype == np.uint8]
    return pixels[0] if len(pixels) == len(fitting) == 1 else ""


def _named(found: Assumption, tensor: GraphTensor, array: str, said: Settings) -> Assumption:
    """Return what is assumed of pictures, of an array that is not called `images`."""
    if array == "images" or said.domain is not None:
        return found
    name = input_names([tensor])[tensor.name]
    own = found.settings
    keys = {"preset": own.preset, "resize": own.resize}
    table = {key: setting for key, setting in keys.items() if setting is not None}
    note = f'pictures are those of the array "{array}"'
    return replace(
        found,
        settings=Settings(inputs={name: {"domain": "image", "array": array, **table}}),
        notes=(note, *found.notes),
    )


def assumed_sounds(
    tensor: GraphTensor, given: GivenInputs, *, framewise: bool = False
) -> Assumption:
    """Return how sounds are assumed to become an input.

    An input without a second dimension takes their samples. What makes features of sounds nothing
    tells, so that is refused, with the lines that say it.

    Args:
        tensor: the input.
        given: a folder of sounds, or an `.npz` with `waves`.
        framewise: whether the model takes the features of a sound frame by frame.

    Raises:
        UserError: an `.npz` says no sample rate where it should.

    """
    name = input_names([tensor])[tensor.name]
    table: dict[str, JsonValue] = {"domain": "audio"}
    if name != tensor.name:
        table["tensor"] = tensor.name
    rate, samples = _format(given)
    shape = without_ones(tensor.shape)
    if len(shape) == 1 and shape[0] >= _LEAST_SAMPLES and not framewise:
        (takes,) = shape
        real = tensor.scales or tensor.dtype.startswith("float")
        held = "from -1 to 1" if real else "whole numbers of 16 bits"
        notes = [f"the model takes {takes} samples of a sound at {rate} Hz, {held}"]
        table |= {"sample_rate": rate, "fit": "pad-and-cut"}
        notes.append("shorter sounds are filled up with silence, and longer ones are cut off")
        return Assumption(Settings(inputs={name: table}), tuple(notes))
    lines = (
        *table_lines(name, table),
        f"sample_rate = {rate}",
        f"samples = {samples}",
        'fit = "pad-and-cut"',
        "",
        f"[inputs.{name}.front_end]",
        *_front_end((0, shape[-1]) if framewise else shape, rate, samples),
    )
    clip = ", and above the tables frames = the steps of a sound" if framewise else ""
    said = " | ".join(line for line in lines if line)
    return Assumption(
        Settings(inputs={name: table}),
        refused=f"{given.path}: the input {tensor.name!r} {tensor.shape} takes features of a sound,"
        f" and nothing tells which: say so in pair.toml, by lines such as {said}{clip}",
        lines=lines,
    )


def _format(given: GivenInputs) -> tuple[int, int]:
    """Return the sample rate of the first sound in Hz, and how many samples it has."""
    if given.files:
        try:
            return sound_format(given.files[0])
        except UserError:
            return DEFAULT_SAMPLE_RATE, DEFAULT_SAMPLE_RATE  # whoever loads it says what is wrong
    rate = given.arrays.get("sample_rate", np.array(DEFAULT_SAMPLE_RATE))
    if rate.size != 1 or rate.dtype.kind not in "iuf" or not 1 <= rate.item() < np.inf:
        raise UserError(
            f"{given.path}: sample_rate is {rate.tolist()}; expected one number of Hz, such as"
            f" {DEFAULT_SAMPLE_RATE}"
        )
    return int(rate.item()), given.arrays["waves"].shape[1]


def _front_end(shape: tuple[int, ...], rate: int, samples: int) -> list[str]:
    """Return the lines of a front end that makes as many features; usual settings where some do."""
    frames, features = (*shape, 1, 1)[:2]
    usual = [(max(1, rate * of // 1000), max(1, rate * to // 1000)) for of, to in _FRAMES_MS]
    length, step = next(
        (
            window
            for window in usual
            if samples >= window[0] and 1 + (samples - window[0]) // window[1] == frames
        ),
        usual[0],
    )
    cepstral = features <= _MOST_COEFFICIENTS
    return [
        f'name = "{"mfcc" if cepstral else "log-mel"}"',
        f"frame_length = {length}",
        f"frame_step = {step}",
        f"fft_length = {1 << (length - 1).bit_length()}",
        f"bands = {40 if cepstral else features}",
        "lowest_hz = 20",
        f"highest_hz = {rate // 4 if cepstral else rate // 2}",
        *([f"coefficients = {features}"] if cepstral else []),
    ]
