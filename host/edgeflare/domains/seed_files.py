"""The files of which seeds consist, the arrays in them, and what is said where there are none."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare import array_file
from edgeflare.array_file import NotArrays
from edgeflare.core.seeds import SeedChoice, ids_of
from edgeflare.errors import UserError, path_suggestion
from edgeflare.regular_file import read_regular


def seed_files(path: Path, suffixes: Collection[str]) -> list[Path]:
    """Return a file itself, or the files of a folder that have one of some suffixes, by name.

    Of a folder without any, they are those of its sub-folders, one after the other. Links are what
    they lead to; those that lead nowhere are left out.

    Raises:
        UserError: a folder cannot be read.

    """
    if not path.is_dir():
        return [path]
    inside = _listed(path)
    files = [Path(entry.path) for entry in inside if _is_wanted(entry, suffixes)]
    if files:
        return files
    return [
        Path(entry.path)
        for folder in inside
        if os.path.isdir(folder.path)
        for entry in _listed(Path(folder.path))
        if _is_wanted(entry, suffixes)
    ]


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """Return what lies in a folder and is not hidden, by name; for thousands of entries."""
    try:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise UserError(f"seeds {folder}: cannot be read: {error.strerror}") from error
    return sorted(shown, key=lambda entry: entry.name)


def _is_wanted(entry: os.DirEntry[str], suffixes: Collection[str]) -> bool:
    if os.path.splitext(entry.name)[1].lower() not in suffixes:
        return False
    return entry.is_file() if not entry.is_symlink() else os.path.isfile(entry.path)


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """Files of a folder that are taken as seeds.

    Attributes:
        files: their paths, by name.
        names: what each is called, with its sub-folder where it lies in one.
        ids: ids of the seeds, as `Seeds` has them.
        folders: the name of the sub-folder of each; empty where they lie in none.

    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    ids: tuple[int, ...]
    folders: tuple[str, ...] = ()


def chosen_files(path: Path, suffixes: Collection[str], choice: SeedChoice) -> ChosenFiles:
    """Return the files of a folder that are taken; of some of them each sub-folder has its share.

    Args:
        path: path of the folder.
        suffixes: suffixes that they may have.
        choice: says which of them are taken.

    """
    every = seed_files(path, suffixes)
    # They lie in the folder, or all in sub-folders.
    inside = bool(every) and every[0].parent != path
    groups = None
    if inside:
        folders_of = [file.parent.name for file in every]
        groups = np.unique(folders_of, return_inverse=True)[1].astype(np.int64)
    places = choice.places(len(every), groups)
    files = tuple(every[place] for place in places.tolist())
    folders = tuple(file.parent.name for file in files) if inside else ()
    names = tuple(file.name for file in files)
    if inside:
        names = tuple(f"{folder}/{name}" for folder, name in zip(folders, names, strict=True))
    return ChosenFiles(files, names, ids_of(places), folders)


def require_seeds(path: Path, what: str) -> None:
    """Refuse a path at which there can be no seeds.

    Args:
        path: as the user gave it.
        what: a folder of them holds, in the plural.

    Raises:
        UserError: there is nothing, or neither a folder nor an `.npz` file.

    """
    if not path.exists():
        like = path_suggestion(path, lambda other: other.is_dir() or other.suffix == ".npz")
        raise UserError(
            f"there are no seeds at {path}{like}: give an .npz file or a folder of {what}"
        )
    if not path.is_dir() and (path.suffix.lower() != ".npz" or not path.is_file()):
        raise UserError(f"seeds {path}: expected an .npz file or a folder of {what}")


_MOST_NAMES = 20
"""Arrays of a file that a message names."""


def seed_content(file: Path, most_bytes: int) -> bytes:
    """Return the content of a file with one input.

    Raises:
        UserError: it is no regular file of at most so many bytes, or cannot be read.

    """
    try:
        return read_regular(file, most_bytes)
    except OSError as error:
        raise UserError(f"seeds: {file} cannot be read: {error.strerror or error}") from error


def read_npz(path: Path, wanted: Sequence[str]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of these names that a file has; it has to have the first.

    Raises:
        UserError: it is no `.npz` file of numeric arrays, or has no array of the first name.

    """
    try:
        archive = array_file.read_npz(path, wanted)
    except NotArrays as error:
        raise UserError(
            f"seeds {path}: not an .npz file of numeric arrays ({error}): write it with "
            f"numpy.savez(path, {wanted[0]}=..., labels=...)"
        ) from error
    read = dict(archive.arrays)
    if wanted[0] not in read:
        found = ", ".join(archive.names[:_MOST_NAMES]) or "no arrays at all"
        raise UserError(
            f"seeds {path}: expected an array named {wanted[0]}, but the file has {found}"
        )
    if not read[wanted[0]].ndim:
        raise UserError(f"seeds {path}: {wanted[0]} is one value, expected one row for each seed")
    return read


def labels_of(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], count: int, what: str
) -> NDArray[np.int64] | None:
    """Return the array `labels`: (count,), or (count, several); None where there is none.

    Raises:
        UserError: it does not hold integers for each of `count` seeds, which `what` names; or they
            are one-hot.

    """
    labels = arrays.get("labels")
    if labels is None:
        return None
    several = labels.ndim > 1 and len(labels) == count < labels.size and not _one_hot(labels)
    if not np.issubdtype(labels.dtype, np.integer) or not (several or labels.size == count):
        raise UserError(
            f"seeds {path}: labels are {labels.dtype} {labels.shape}, expected one integer for "
            f"each of {count} {what}"
        )
    if labels.dtype == np.uint64:  # what int64 cannot hold is no class, rather than a negative one
        labels = np.minimum(labels, np.uint64(np.iinfo(np.int64).max))
    return labels.reshape((count, -1) if several else count).astype(np.int64)


def targets_of(path: Path) -> NDArray[np.generic] | None:
    """Return the array `targets`, (N, *shape); None where an `.npz` has none, and of a folder.

    Raises:
        UserError: it holds Python objects, or one value for all seeds.

    """
    if path.is_dir():
        return None
    try:
        targets = array_file.read_npz(path, ("targets",)).arrays.get("targets")
    except NotArrays as error:
        raise UserError(
            f"seeds {path}: targets cannot be read ({error}): write one array of numbers or texts,"
            " (N, ...), padded with NaN where seeds have unlike numbers of objects"
        ) from error
    if targets is not None and not targets.ndim:
        raise UserError(f"seeds {path}: targets are one value, expected one for each seed")
    return targets


def _one_hot(labels: NDArray[np.generic]) -> bool:
    """Whether each row has a single 1 among zeros."""
    rows = labels.reshape(len(labels), -1)
    return bool(np.isin(rows, (0, 1)).all() and ((rows == 1).sum(axis=1) == 1).all())
