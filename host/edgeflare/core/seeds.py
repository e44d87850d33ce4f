"""Seed inputs, of whatever domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        ids: of the seeds, their positions among all of the pair; empty where they are 0, 1, ….
        notes: what was assumed of them, a line each for the user.
        targets: (N, *shape) what is right in the shape of the task's answers, or None; see
            `Decoder.target`.

    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64] | None
    names: tuple[str, ...]
    fixed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    ids: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    targets: NDArray[np.generic] | None = None

    _places: Mapping[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare to look seeds up by their ids."""
        object.__setattr__(self, "_places", {one: at for at, one in enumerate(self.ids)})

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def seed_ids(self) -> Sequence[int]:
        """The ids of the seeds, in their order."""
        return self.ids or range(len(self))

    def place(self, seed_id: int) -> int:
        """Return where a seed is among these.

        Raises:
            KeyError: it is none of them.

        """
        return self._places[seed_id] if self.ids else seed_id

    def input_of(self, seed_id: int) -> Any:
        """Return the input of a seed, by its id."""
        return self.inputs[self.place(seed_id)]

    def labels_of(self, seed_ids: Iterable[int]) -> NDArray[np.int64] | None:
        """Return the labels of some seeds, (seeds,); None where there are none."""
        return None if self.labels is None else self.labels[[*map(self.place, seed_ids)]]


def is_labelled(labels: NDArray[np.int64], classes: int) -> NDArray[np.bool_]:
    """Return which labels are known: (N,) bool."""
    known: NDArray[np.bool_] = (labels >= 0) & (labels < classes)
    return known


def is_label(label: int | None, classes: int) -> bool:
    """Tell whether a label is known: one outside 0 … classes - 1 means unlabelled."""
    return label is not None and 0 <= label < classes
