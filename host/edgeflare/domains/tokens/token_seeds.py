"""Seed lists of ids: an `.npz` file, or a folder of JSON files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.seed_choice import ALL_SEEDS, SeedChoice, ids_of, take
from edgeflare.core.seeds import Seeds
from edgeflare.domains.npz_arrays import labels_of, read_npz
from edgeflare.domains.seed_files import chosen_files, require_seeds
from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare.regular_file import read_regular

TOKEN_SUFFIXES = (".json",)
"""Suffixes of files that are read as lists of ids; other files are ignored."""

_MOST_BYTES = 2**27
"""Of a list's file: ten million ids."""


def load_token_seeds(
    path: Path, vocabulary: int, length: int, choice: SeedChoice = ALL_SEEDS, array: str = "tokens"
) -> Seeds:
    """Load seed lists of ids.

    Args:
        path: an `.npz` with an array of the name, integers (N, length), and maybe `labels`,
            integers (N,); or a folder of JSON files of one list each, taken in the order of their
            names.
        vocabulary: how many ids there are.
        length: ids of each list.
        choice: which of them are taken.
        array: the name of the array in an `.npz`.

    Raises:
        UserError: there are none, or one is of another length, or no list of ids of the vocabulary.

    """
    require_seeds(path, "JSON files")
    labels = None
    if path.is_dir():
        files, ids = chosen_files(path, TOKEN_SUFFIXES, choice)
        if not files:
            raise UserError(f"seeds {path}: the folder has no JSON files")
        lists = np.array([_read(file, length) for file in files], np.int64)
        names = tuple(file.name for file in files)
    else:
        arrays = read_npz(path, (array, "labels"))
        raw = arrays[array]
        if raw.ndim != 2 or raw.dtype.kind not in "iu" or raw.shape[1] != length or not len(raw):
            raise UserError(
                f"seeds {path}: {array} are {raw.dtype} of shape {raw.shape}, expected integers"
                f" (N, {length})"
            )
        labels = labels_of(path, arrays, len(raw), array)
        places = choice.places(len(raw), labels)
        labels, ids = None if labels is None else take(labels, places), ids_of(places)
        lists = take(raw, places).astype(np.int64)
        names = tuple(map(str, places.tolist()))
    _require_known(path, lists, names, vocabulary)
    return Seeds(lists.astype(np.int32), labels, names, ids=ids)


def _read(file: Path, length: int) -> list[int]:
    try:
        ids = json_value(read_regular(file, _MOST_BYTES))
    except OSError as error:
        raise UserError(f"seeds: {file} cannot be read: {error.strerror or error}") from error
    except ValueError:
        ids = None
    if not isinstance(ids, list) or not all(type(one) is int for one in ids):
        raise UserError(f"seeds: {file} is no list of ids: correct or remove it")
    if len(ids) != length:
        raise UserError(f"seeds: {file} has {len(ids)} ids, but the model takes {length}")
    if not all(0 <= one < 2**31 for one in ids):
        raise UserError(f"seeds: {file} has numbers that are no ids: correct or remove it")
    return ids


def _require_known(
    path: Path, lists: NDArray[np.int64], names: Sequence[str], vocabulary: int
) -> None:
    unknown = (lists < 0) | (lists >= vocabulary)
    if unknown.any():
        where = names[int(np.argwhere(unknown)[0][0])]
        raise UserError(
            f"seeds {path}: seed {where} has ids beyond the vocabulary, 0 to {vocabulary - 1}:"
            " correct or remove it"
        )
