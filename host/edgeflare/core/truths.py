"""What is right for each seed: its label, or a target in the shape of the task's answers."""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import NotArrays, read_npy
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Decoder
from edgeflare.errors import UserError

Target = NDArray[np.generic]
"""A row of the array `targets` of seeds, such as values, a mask, boxes or a text."""

_MOST_BYTES = 2**30
"""Largest target, in bytes; a target is as large as an output of a model at most."""


@dataclass(frozen=True, slots=True)
class KeptTargets:
    """The targets of seeds, each compressed, as a journal keeps them.

    Attributes:
        rows: one for each seed, an `.npy` file in zlib's format.

    """

    rows: tuple[bytes, ...]

    @classmethod
    def of(cls, targets: Target | None) -> KeptTargets | None:
        """Return the rows of an array, (N, *shape); None of None."""
        return None if targets is None else cls(tuple(map(_compressed, targets)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, seed_id: int) -> Target:
        try:
            unpacked = zlib.decompressobj().decompress(self.rows[seed_id], _MOST_BYTES)
            return read_npy(unpacked)
        except (NotArrays, zlib.error) as error:
            raise ValueError(f"the target of seed {seed_id} is damaged: {error}") from None

    def of_seeds(self, seed_ids: Sequence[int]) -> Target:
        """Return the targets of some seeds as one array."""
        return np.stack([self[seed_id] for seed_id in seed_ids])

    def to_json(self) -> list[str]:
        """Return plain JSON values."""
        return [base64.b64encode(row).decode() for row in self.rows]

    @classmethod
    def from_json(cls, rows: Sequence[str] | None) -> KeptTargets | None:
        """Return what `to_json` described; None of None."""
        return None if rows is None else cls(tuple(map(base64.b64decode, rows)))


@dataclass(frozen=True, slots=True)
class Truths:
    """The right answers to seeds, as far as they are known.

    Attributes:
        decoder: decoder of the pair, which makes the answers.
        labels: labels of the seeds, or None.
        targets: targets of the seeds, where there are no labels, or None.
        place: where a seed is among them, by its id.

    """

    decoder: Decoder
    labels: Sequence[int] | None
    targets: KeptTargets | Target | None
    place: Callable[[int], int] = index

    @classmethod
    def of_seeds(cls, decoder: Decoder, seeds: Seeds) -> Truths:
        """Return what is right for each of some seeds."""
        labels = None if seeds.labels is None else seeds.labels.tolist()
        return cls(decoder, labels, seeds.targets, seeds.place)

    @classmethod
    def from_json(cls, decoder: Decoder, fields: Mapping[str, Any]) -> Truths:
        """Return the truths of a document that has `labels` and `targets`."""
        targets = KeptTargets.from_json(fields["targets"])
        return cls(decoder, fields["labels"], targets)

    @property
    def given(self) -> bool:
        """Whether the seeds came with labels or targets, known or not."""
        return self.labels is not None or self.targets is not None

    def __len__(self) -> int:
        return len(next((truth for truth in (self.targets, self.labels) if truth is not None), ()))

    def __getitem__(self, seed_id: int) -> Answer | None:
        """Return the right answer to a seed, by its id; None where it is not known."""
        if self.labels is None and self.targets is None:
            return None
        return self._at(self.place(seed_id))

    def _at(self, place: int) -> Answer | None:
        if self.targets is not None:
            return self.decoder.target(self.targets[place])
        return None if self.labels is None else self.decoder.labelled(int(self.labels[place]))

    def require(self, wanted: str) -> None:
        """Refuse to go on where nothing is known to be right.

        Args:
            wanted: what needs it, and why; the beginning of a sentence.

        Raises:
            UserError: no seed has a label that is a choice of the task, nor a target.

        """
        if self.known().any():
            return
        if choices := self.decoder.choices:
            raise UserError(
                f"{wanted}, and no seed has a label from 0 to {choices - 1}: give an .npz with an"
                " array `labels`"
            )
        raise UserError(
            f"{wanted}, and the seeds have no targets: give an .npz with an array `targets`"
        )

    def measure(self) -> str:
        """Return what `truth_distance` is, in words; empty where there is none."""
        truths = map(self._at, range(len(self)))
        return next((truth.truth_measure for truth in truths if truth is not None), "")

    def decisions(self) -> NDArray[np.int64]:
        """Return which decision is right for each seed: (seeds,).

        It is -1 where none is known, and where decisions are not counted, or too many.
        """
        if not self.decoder.numbered:
            return np.full(len(self), -1, np.int64)
        truths = [self._at(place) for place in range(len(self))]
        known = [None if truth is None else truth.decision for truth in truths]
        return np.array([-1 if label is None else label for label in known], np.int64)

    def known(self) -> NDArray[np.bool_]:
        """Return which seeds have one: (seeds,) bool, empty where none was given any."""
        return np.array([self._at(place) is not None for place in range(len(self))], bool)


def require_truths(decoder: Decoder, seeds: Seeds, path: Path) -> Seeds:
    """Refuse labels beyond the classes, and targets that are not what the task's answers are.

    Args:
        decoder: decoder of the pair.
        seeds: seeds with labels or targets, or without.
        path: where they were loaded from.

    Returns:
        The seeds. Where each frame of a clip is answered by itself, a label is that of every frame,
        and they have targets in place of labels.

    """
    if seeds.labels is not None and decoder.choices:
        of_frames = len(decoder.parts) > 1 and not decoder.heads
        classes = decoder.parts[0] if of_frames else decoder.choices
        _require_classes(classes, seeds.labels, seeds.names, path)
        if of_frames:
            each = np.tile(seeds.labels[:, None], len(decoder.parts))
            seeds = replace(seeds, labels=None, targets=each)
    if seeds.targets is None:
        return seeds
    for name, target in zip(seeds.names, seeds.targets, strict=True):
        try:
            decoder.target(target)
        except UserError as error:
            raise UserError(f"seeds {path}: targets, seed {name}: {error}") from None
    return seeds


def _require_classes(
    classes: int, labels: NDArray[np.int64], names: Sequence[str], path: Path
) -> None:
    beyond = np.flatnonzero(labels >= classes)
    if len(beyond):
        first = int(beyond[0])
        raise UserError(
            f"seeds {path}: the label of seed {names[first]} is {labels[first]}, and the model has"
            f" {classes} classes, 0 to {classes - 1}: number labels from 0, in the order of the"
            " scores, with -1 for what is not known"
        )


def is_right(answer: Answer | None, truth: Answer | None) -> bool:
    """Whether an arm answered what is right, by the measure of the task."""
    return answer is not None and truth is not None and not answer.differs(truth)


def truth_distance(answer: Answer | None, truth: Answer | None) -> float | None:
    """Return how far an arm is from what is right, as `Answer.truth_measure` says it.

    None where the arm failed, nothing is known to be right, or answers are classes.
    """
    if answer is None or truth is None or answer.failure is not None or not answer.truth_measure:
        return None
    return float(answer.against_truth(truth))


def mean_distances(
    by_arm: Mapping[Arm, Sequence[Answer]], truths: Sequence[Answer | None]
) -> dict[Arm, float]:
    """Return how far each arm is from what is right, on average; of those that answered."""
    each = {arm: map(truth_distance, answers, truths) for arm, answers in by_arm.items()}
    known = {arm: [values for values in some if values is not None] for arm, some in each.items()}
    return {arm: fmean(some) for arm, some in known.items() if some}


def _compressed(row: Target) -> bytes:
    file = io.BytesIO()
    np.save(file, row, allow_pickle=False)
    return zlib.compress(file.getvalue())
