"""Which arrays of a file are assumed to be the inputs of a model, and which input is a state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.domains.array_domain import DTYPES
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.record.json_types import JsonValue
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.input_source import GivenInputs
from edgeflare.release.assumptions.picture_inputs import assumed_pictures, picture_size

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A name that needs no quotes in TOML."""

_STATE: Final = re.compile(r"state|hidden|memory|cell|cache|carry", re.IGNORECASE)
"""Names of inputs that an output feeds."""

_DIGITS: Final = 3
"""Significant digits that bounds of values are rounded outwards to."""


def assumed_state(graph: Graph, given: GivenInputs) -> dict[str, str]:
    """Return the outputs that are assumed to feed an input of the next frame, by the input's name.

    That is an input for which there is no array, and the only output of its shape. Of several
    inputs of the shape it is one whose name says so. The first input is none where all would be.
    """
    if len(graph.inputs) == 1 or given.kind not in ("npz", "sounds"):
        return {}
    outputs = [graph.tensors[at] for at in graph.outputs]
    inputs = _inputs(graph)
    found: dict[str, str] = {}
    for tensor in inputs:
        alike = [output.name for output in outputs if output.shape == tensor.shape]
        rivals = [input_ for input_ in inputs if input_.shape == tensor.shape]
        known = given.fitting(tensor) or given.fitting(tensor, frames=1)
        says = len(rivals) == 1 or _STATE.search(tensor.name) is not None
        if says and (not known or len(rivals) > 1) and len(alike) == 1:
            found[tensor.name] = alike[0]
    found = {name: array for name, array in found.items() if name not in given.arrays}
    if len(found) == len(inputs):
        del found[inputs[0].name]
    return found if len({*found.values()}) == len(found) else {}


def assumed_arrays(graph: Graph, given: GivenInputs) -> Assumption:
    """Return which array is assumed to be which input, and between which bounds its values lie.

    An array is that of its name, or the only one of the input's shape.
    """
    state = assumed_state(graph, given)
    tensors = [input_ for input_ in _inputs(graph) if input_.name not in state]
    names = input_names(tensors)
    clips = bool(state) and all(given.fitting(input_, frames=1) for input_ in tensors)
    found: dict[str, str] = {}
    for tensor in tensors:
        fitting = given.fitting(tensor, int(clips))
        named = [array for array in fitting if array in (tensor.name, names[tensor.name])]
        if len(named or fitting) != 1:
            return _ambiguous(tensors, names, tensor, fitting, given)
        found[tensor.name] = (named or fitting)[0]
    if len(set(found.values())) < len(found):
        twice = next(
            input_ for input_ in tensors if [*found.values()].count(found[input_.name]) > 1
        )
        return _ambiguous(tensors, names, twice, [found[twice.name]], given)
    frames = given.arrays[found[tensors[0].name]].shape[1] if clips else 1
    notes = [
        f'the input "{input_.name}" {input_.shape} is given the array '
        + (f'"{found[input_.name]}"' if found[input_.name] else "of each file")
        + (f", as clips of {frames} frames" if clips else "")
        for input_ in tensors
    ]
    tables = _tables(graph, tensors, names, found, given)
    fed = Settings(state=state or None, frames=frames if state else None)
    whole = replace(tables, settings=tables.settings.over(fed))
    return replace(whole, notes=(*notes, *tables.notes, *state_notes(state)))


def state_notes(state: Mapping[str, str]) -> list[str]:
    """Return what is said of states, by the names of the inputs that the outputs feed."""
    fed = " and ".join(f'"{state_input}" is what "{its}" was' for state_input, its in state.items())
    return [f"the input {fed} in the frame before, and zero in the first"] if state else []


def input_names(tensors: Sequence[GraphTensor]) -> dict[str, str]:
    """Return what a `pair.toml` calls inputs: their own names, or others that need no quotes."""
    single = len(tensors) == 1
    return {
        tensor.name: tensor.name
        if _BARE.fullmatch(tensor.name)
        else ("input" if single else f"input_{at}")
        for at, tensor in enumerate(tensors)
    }


def table_lines(name: str, table: Mapping[str, JsonValue]) -> list[str]:
    """Return the first lines of the table of an input, which name its domain and its tensor."""
    return [f"[inputs.{name}]", *(f'{key} = "{value}"' for key, value in table.items())]


def _inputs(graph: Graph) -> list[GraphTensor]:
    return [graph.tensors[at] for at in graph.inputs]


def _ambiguous(
    tensors: Sequence[GraphTensor],
    names: Mapping[str, str],
    tensor: GraphTensor,
    fitting: Sequence[str],
    given: GivenInputs,
) -> Assumption:
    several = " and ".join(fitting) + " may be" if len(fitting) > 1 else "none of the arrays is"
    lines: list[str] = []
    for input_ in tensors:
        known = " or ".join(given.fitting(input_)) or f"none yet; (N, …) of {input_.shape}"
        table: dict[str, JsonValue] = {"domain": "array", "tensor": input_.name}
        lines += [*table_lines(names[input_.name], table), f'array = "…"  # {known}', ""]
    wanted = f'[inputs.{names[tensor.name]}] domain = "array", array = "…"'
    if len(tensors) > 1:
        wanted += f'; or, of a state, frames = its steps and [state] {tensor.name} = "its output"'
    tables: dict[str, dict[str, JsonValue]] = {
        names[input_.name]: {"domain": "array", "tensor": input_.name} for input_ in tensors
    }
    return Assumption(
        Settings(inputs=tables),
        refused=f"{given.path}: {several} the input {tensor.name!r} {tensor.shape}; the arrays are"
        f" {given.listed}. Give one of its shape, (N, {', '.join(map(str, tensor.shape[1:]))}), or"
        f" say which it is in pair.toml: {wanted}",
        lines=tuple(lines),
    )


def _tables(
    graph: Graph,
    tensors: Sequence[GraphTensor],
    names: Mapping[str, str],
    found: Mapping[str, str],
    given: GivenInputs,
) -> Assumption:
    """Return the tables of inputs, and what is said of pixels and bounds.

    The first input of pictures is searched, or else those of the largest one's type together, which
    so have its bounds in common.
    """
    arrays = {tensor.name: given.arrays[found[tensor.name]] for tensor in tensors}
    types = {name: _dtype(array) for name, array in arrays.items()}
    pictures = {
        tensor.name: tensor
        for tensor in tensors
        if arrays[tensor.name].dtype == np.uint8 and picture_size(tensor) is not None
    }
    largest = max(arrays, key=lambda name: arrays[name][0].size)
    together = [name for name in arrays if types[name] == types[largest]]
    searched = [*pictures][:1] or together
    bounds = {} if pictures else _bounds([arrays[name] for name in together], types[largest])
    tables: dict[str, dict[str, JsonValue]] = {}
    about = Assumption()
    for name in arrays:
        table: dict[str, JsonValue] = {"domain": "image" if name in pictures else "array"}
        if names[name] != name:
            table["tensor"] = name
        if found[name] and found[name] != names[name]:
            table["array"] = found[name]
        if name in pictures:
            pixels = assumed_pictures(graph, pictures[name], Settings(resize="none"))
            table["preset"] = pixels.settings.preset
            about = about.beside(replace(pixels, settings=Settings()))
        elif types[name] != "float32":
            table["dtype"] = types[name]
        table |= bounds if name in searched else {"search": False}
        tables[names[name]] = table
    notes = about.notes
    if bounds:
        said = "values lie between {lowest:g} and {highest:g}, as the given ones do"
        notes = (*notes, said.format(**bounds))
    return replace(about, settings=Settings(inputs=tables), notes=notes)


def _dtype(values: NDArray[Any]) -> str:
    """Return the type of the domain that holds values."""
    if values.dtype.kind == "f":
        return "float32"
    if values.dtype.kind == "b":
        return "uint8"
    return values.dtype.name if values.dtype.name in DTYPES else "int32"


def _bounds(arrays: Sequence[NDArray[Any]], dtype: str) -> dict[str, float]:
    """Return the least and the largest value, rounded away from these; none where one is NaN.

    Those of an integer type are whole numbers; of any type they are within it where the values are.
    """
    lowest = min(float(array.min()) for array in arrays)
    highest = max(float(array.max()) for array in arrays)
    if not np.isfinite([lowest, highest]).all():
        return {}  # whoever loads them says so
    digit = 10.0 ** (floor(log10(max(abs(lowest), abs(highest), 1e-30))) - _DIGITS + 1)
    digit = digit if dtype == "float32" else max(1.0, digit)
    low, high = floor(lowest / digit) * digit, ceil(highest / digit) * digit
    if low == high:
        high += digit
    low, high = float(f"{low:.6g}"), float(f"{high:.6g}")
    limits = np.finfo(dtype) if dtype == "float32" else np.iinfo(dtype)
    low = max(low, min(float(limits.min), lowest))
    high = min(high, max(float(limits.max), highest))
    low -= low == high  # all are the largest number of the type
    return {"lowest": low, "highest": high}
