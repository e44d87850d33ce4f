"""Some of the inputs that the chosen candidate mends or breaks, to be shown to people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.models.pair import Pair
from edgeflare.record.atomic_file import write_atomically
from edgeflare.repair.judging.judged_inputs import FRESH, JudgedSet
from edgeflare.run.run_directory import RunDirectory

SHOWN = 12
"""Inputs of each kind of change that are shown at most."""

FOLDER = "inputs"
"""Where they are stored in the folder of the repair."""

ChangeKind = Literal["mended", "broken"]


@dataclass(frozen=True, slots=True)
class ShownInput:
    """An input that deviates before the repair and not after it, or the other way round.

    Attributes:
        file: its path in the folder of the repair.
        set: the name of its set.
        change: whether it is mended or broken.
        seed_id: the seed that it was made from; of a fresh input its position.
        pixels: (H, W, C) uint8.
        original: the original's answer.
        before: that of the compressed model before the repair.
        after: that of the candidate.

    """

    file: str
    set: str
    change: ChangeKind
    seed_id: int
    pixels: NDArray[np.uint8]
    original: Answer
    before: Answer
    after: Answer


def shown_inputs(
    sets: Mapping[str, JudgedSet], after: Mapping[str, Sequence[Answer]], most: int = SHOWN
) -> tuple[ShownInput, ...]:
    """Return inputs that a candidate mends, and then those that it breaks.

    Those on which the original's two best probabilities are furthest apart come first, and of each
    seed one, unless there are too few seeds. An input that a model gives no answer to is none.

    Args:
        sets: the inputs that judge, by the name of the set.
        after: the candidate's answers to them.
        most: inputs of each kind of change.

    """
    found: list[ShownInput] = []
    kinds: tuple[ChangeKind, ...] = ("mended", "broken")
    for kind in kinds:
        chosen = _chosen(list(_changed(sets, after, kind)), most)
        for number, (name, row) in enumerate(chosen, start=1):
            one = sets[name]
            answers = one.original[row], one.before[row], after[name][row]
            seed_id = int(one.seed_ids[row])
            file = f"{FOLDER}/{kind}-{number:02}.png"
            found.append(ShownInput(file, name, kind, seed_id, one.images[row], *answers))
    return tuple(found)


def write_shown(out: Path, pair: Pair, shown: Sequence[ShownInput]) -> None:
    """Write inputs into the folder of a repair, without loss.

    Raises:
        UserError: its folder of inputs leads out of it.

    """
    directory, domain = RunDirectory(out), pair.interface.domain
    for one in shown:
        write_atomically(directory.inside(one.file), domain.encode_file(one.pixels))


Place = tuple[str, int]
"""The name of a set, and the position of an input in it."""


def _changed(
    sets: Mapping[str, JudgedSet], after: Mapping[str, Sequence[Answer]], kind: ChangeKind
) -> Iterator[tuple[float, Place, Place]]:
    """Yield the inputs of a kind of change: the original's margin, the place, and its seed."""
    for name, one in sets.items():
        of = FRESH if name == FRESH else ""  # fresh inputs are made from no seed
        rows = zip(one.original, one.before, after[name], strict=True)
        for row, answers in enumerate(rows):
            f, g, repaired = answers
            if any(answer.failure is not None for answer in answers):
                continue
            wrong = f.differs(g), f.differs(repaired)
            if wrong == ((True, False) if kind == "mended" else (False, True)):
                yield f.lead(), (name, row), (of, int(one.seed_ids[row]))


def _chosen(changed: list[tuple[float, Place, Place]], most: int) -> list[Place]:
    """Return the places with the largest margins, of which each seed has one as far as it goes."""
    ranked = sorted(changed, key=lambda one: -one[0])
    first_of = {seed: place for _, place, seed in reversed(ranked)}
    ranked.sort(key=lambda one: first_of[one[2]] != one[1])
    return [place for _, place, _ in sorted(ranked[:most], key=lambda one: -one[0])]
