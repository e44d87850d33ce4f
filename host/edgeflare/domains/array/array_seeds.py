"""Seed arrays: an `.npz` file, or a folder of `.npy` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import NotArrays, read_npy
from edgeflare.core.input_space import InputSpace
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds, ids_of, take
from edgeflare.core.tensor import without_ones
from edgeflare.domains.seed_files import chosen_files, labels_of, read_npz, require_seeds
from edgeflare.errors import UserError

ARRAY_SUFFIXES = (".npy",)
"""Suffixes of files that are read as arrays; other files are ignored."""


def load_array_seeds(
    path: Path,
    space: InputSpace,
    shape: tuple[int, ...],
    choice: SeedChoice = ALL_SEEDS,
    array: str = "inputs",
) -> Seeds:
    """Load seed arrays.

    Args:
        path: an `.npz` with an array of the name, (N, *shape), and maybe `labels`, integers (N,);
            or a folder of `.npy` files of one each, taken in the order of their names.
        space: the values that they may have.
        shape: of one; dimensions of 1 may differ.
        choice: which of them are taken.
        array: the name of the array in an `.npz`.

    Raises:
        UserError: there are none, or one has another shape or type, or values that are not finite
            or beyond the bounds.

    """
    require_seeds(path, ".npy files")
    labels = None
    if path.is_dir():
        files, ids = chosen_files(path, ARRAY_SUFFIXES, choice)
        if not files:
            raise UserError(f"seeds {path}: the folder has no .npy files")
        names = tuple(file.name for file in files)
        arrays = [_shaped(str(file), _read(file)[np.newaxis], shape)[0] for file in files]
        inputs: NDArray[Any] = np.stack(arrays)
    else:
        read = read_npz(path, (array, "labels"))
        labels = labels_of(path, read, len(read[array]), array)
        places = choice.places(len(read[array]), labels)
        labels, ids = None if labels is None else take(labels, places), ids_of(places)
        inputs = _shaped(f"{path}: {array}", take(read[array], places), shape)
        names = tuple(map(str, places.tolist()))
    return Seeds(_held(path, inputs, space, names), labels, names, ids=ids)


def _read(file: Path) -> NDArray[Any]:
    try:
        return read_npy(file)
    except NotArrays as error:
        raise UserError(
            f"seeds: {file} is no .npy file of numbers ({error}): correct or remove it"
        ) from error


def _shaped(what: str, arrays: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if not len(arrays):
        raise UserError(f"seeds {what}: there are none in it, {arrays.shape}")
    if without_ones(arrays.shape[1:]) != without_ones(shape):
        raise UserError(
            f"seeds {what}: one has shape {arrays.shape[1:]}, but the model takes {shape}: give "
            "seeds of that shape"
        )
    return arrays.reshape(len(arrays), *shape)


def _held(
    path: Path, inputs: NDArray[Any], space: InputSpace, names: Sequence[str]
) -> NDArray[Any]:
    """Return arrays in the type of a space."""
    if not np.issubdtype(inputs.dtype, np.number) or np.iscomplexobj(inputs):
        raise UserError(f"seeds {path}: the arrays are {inputs.dtype}, expected {space.dtype}")
    finite = np.isfinite(inputs)
    if not finite.all():
        where = names[int(np.argwhere(~finite)[0][0])]
        raise UserError(
            f"seeds {path}: seed {where} has values that are not finite: correct or remove it"
        )
    limits = np.iinfo(space.dtype) if space.whole else np.finfo(space.dtype)
    lowest, highest = max(space.lowest, limits.min), min(space.highest, limits.max)
    outside = (inputs < lowest) | (inputs > highest)
    if outside.any():
        where = names[int(np.argwhere(outside)[0][0])]
        raise UserError(
            f"seeds {path}: seed {where} has values beyond the bounds {lowest:g} and "
            f"{highest:g}: widen lowest and highest, or remove it"
        )
    held = inputs.astype(space.dtype)
    if np.dtype(space.dtype).kind in "iu" and (held != inputs).any():
        raise UserError(f"seeds {path}: values are no whole numbers, but dtype is {space.dtype}")
    return np.ascontiguousarray(held)
