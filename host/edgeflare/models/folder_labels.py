"""Sub-folders of inputs as their labels, one for each class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgeflare.core.seeds import Seeds


def with_folder_labels(seeds: Seeds, classes: Sequence[str]) -> Seeds:
    """Return seeds with the labels that their sub-folders say.

    A sub-folder is the class of its name, or else of the only name that differs from it by case and
    the marks between words alone; a name that several classes have tells none of them. Where none
    has the name of a class and all are numbers, these are the labels. Inputs of any other one are
    unlabelled.

    Args:
        seeds: seeds with labels, or without.
        classes: the names of the classes, in the order of their scores; empty where none are given.

    """
    if not seeds.folders or seeds.labels is not None:
        return seeds
    labels = folder_labels(sorted(set(seeds.folders)), classes)
    if not labels:
        names = ", ".join(sorted(set(seeds.folders))[:3])
        note = f"sub-folders such as {names} are no labels: say classes, a name for each score"
        return replace(seeds, notes=(*seeds.notes, note))
    return replace(
        seeds, labels=np.array([labels.get(folder, -1) for folder in seeds.folders], np.int64)
    )


def folder_labels(folders: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    """Return the label of each sub-folder that has one; see `with_folder_labels`."""
    exact = _unique(classes)
    places = _unique([_plain(name) for name in classes])
    found = {folder: exact.get(folder, places.get(_plain(folder))) for folder in folders}
    named = {name: label for name, label in found.items() if label is not None}
    if named or not all(folder.isdecimal() for folder in folders):
        return named
    return {folder: int(folder) for folder in folders}


def _unique(names: Sequence[str]) -> dict[str, int]:
    """Return the place of each name that is there once."""
    times = Counter(names)
    return {name: at for at, name in enumerate(names) if times[name] == 1}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name).strip().casefold()
