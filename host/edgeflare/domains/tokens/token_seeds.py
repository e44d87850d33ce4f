"""Seed lists of ids: an `.npz` file, or a folder of JSON files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.seeds import Seeds
from edgeflare.domains.npz_arrays import labels_of, read_npz
from edgeflare.domains.seed_files import require_seeds, seed_files
from edgeflare.errors import UserError

TOKEN_SUFFIXES = (".json",)
"""Suffixes of files that are read as lists of ids; other files are ignored."""


def load_token_seeds(
    path: Path, vocabulary: int, length: int, limit: int | None = None, array: str = "tokens"
) -> Seeds:
    """Load seed lists of ids.

    Args:
        path: an `.npz` with an array of the name, integers (N, length), and maybe `labels`,
            integers (N,); or a folder of JSON files of one list each, taken in the order of their
            names.
        vocabulary: how many ids there are.
        length: ids of each list.
        limit: take the first so many only.
        array: the name of the array in an `.npz`.

    Raises:
        UserError: there are none, or one is of another length, or no list of ids of the vocabulary.

    """
    require_seeds(path, "JSON files")
    labels = None
    if path.is_dir():
        files = seed_files(path, TOKEN_SUFFIXES)[:limit]
        if not files:
            raise UserError(f"seeds {path}: the folder has no JSON files")
        ids = np.array([_read(file, length) for file in files], np.int64)
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
        labels = None if labels is None else labels[:limit]
        ids = raw[:limit].astype(np.int64)
        names = tuple(str(index) for index in range(len(ids)))
    _require_known(path, ids, vocabulary)
    return Seeds(ids.astype(np.int32), labels, names)


def _read(file: Path, length: int) -> list[int]:
    try:
        ids = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not all(type(one) is int for one in ids):
        raise UserError(f"seeds: {file} is no list of ids: correct or remove it")
    if len(ids) != length:
        raise UserError(f"seeds: {file} has {len(ids)} ids, but the model takes {length}")
    if not all(0 <= one < 2**31 for one in ids):
        raise UserError(f"seeds: {file} has numbers that are no ids: correct or remove it")
    return ids


def _require_known(path: Path, ids: NDArray[np.int64], vocabulary: int) -> None:
    unknown = (ids < 0) | (ids >= vocabulary)
    if unknown.any():
        where = int(np.argwhere(unknown)[0][0])
        raise UserError(
            f"seeds {path}: seed {where} has ids beyond the vocabulary, 0 to {vocabulary - 1}:"
            " correct or remove it"
        )
