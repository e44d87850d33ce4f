"""What is assumed of the inputs of a model, by their shapes and by what is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgeflare.check.assumptions.arrays import (
    assumed_arrays,
    assumed_state,
    input_names,
    state_notes,
)
from edgeflare.check.assumptions.assumption import Assumption
from edgeflare.check.assumptions.input_source import GivenInputs
from edgeflare.check.assumptions.pictures import assumed_pictures, picture_size
from edgeflare.check.assumptions.sounds import assumed_sounds
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph, GraphTensor


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
    free = [one for one in tensors if one.name not in state]
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
    pixels = [one for one in fitting if given.arrays[one].dtype == np.uint8]
    return pixels[0] if len(pixels) == len(fitting) == 1 else ""


def _named(found: Assumption, tensor: GraphTensor, array: str, said: Settings) -> Assumption:
    """Return what is assumed of pictures, of an array that is not called `images`."""
    if array == "images" or said.domain is not None:
        return found
    name = input_names([tensor])[tensor.name]
    own = found.settings
    keys = {"preset": own.preset, "resize": own.resize}
    table = {key: one for key, one in keys.items() if one is not None}
    note = f'pictures are those of the array "{array}"'
    return replace(
        found,
        settings=Settings(inputs={name: {"domain": "image", "array": array, **table}}),
        notes=(note, *found.notes),
    )
