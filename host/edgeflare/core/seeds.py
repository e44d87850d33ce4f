"""Seed inputs, of whatever domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Seeds:
    """Seed inputs, in the shape that the models take.

    Attributes:
        inputs: (N, *shape) in the dtype of their domain.
        labels: (N,) int64, or None; one that is no class of the pair means unlabelled. As a domain
            loads them, there may be several for each seed, (N, several).
        names: one for each input: its file's name, or its position in the `.npz`.
        fixed: what the models take beside an input, which no search changes: by the name of the
            model's input in `pair.toml`, (N, *shape) each.
        ids: of the seeds; empty where they are 0, 1, …, as everywhere but in a replay.
        notes: what was assumed of them, a line each for the user.

    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64] | None
    names: tuple[str, ...]
    fixed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    ids: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.inputs)


def is_labelled(labels: NDArray[np.int64], classes: int) -> NDArray[np.bool_]:
    """Return which labels are known: (N,) bool."""
    known: NDArray[np.bool_] = (labels >= 0) & (labels < classes)
    return known


def is_label(label: int | None, classes: int) -> bool:
    """Tell whether a label is known: one outside 0 … classes - 1 means unlabelled."""
    return label is not None and 0 <= label < classes
