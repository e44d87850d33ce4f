"""Some of the inputs that the chosen candidate mends or breaks, to be shown to people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.models.pair import Pair
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_types import Amount, Count
from edgeflare.repair.judging.judgement_inputs import FRESH, JudgedSet, SetName
from edgeflare.run.run_directory import RunDirectory

SHOWN = 12
"""Inputs of each kind of change that are shown at most."""

FOLDER = "inputs"
"""Folder of the shown inputs in that of the repair."""

_PICTURES = 4
"""Dimensions of images: how many, rows, columns and channels."""

ChangeKind = Literal["mended", "broken"]


class ShownAnswer(msgspec.Struct, frozen=True):
    """What a model answers to an input that is shown.

    Attributes:
        label: the class that it decides on.
        probability: the probability of this label.
        margin: the probability less that of the second label.

    """

    label: Count
    probability: Amount
    margin: Amount


class ShownInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input that deviates before the repair and not after it, or the other way round.

    Attributes:
        set: the name of its set.
        change: "mended" where it deviates before and not after, "broken" the other way round.
        seed_id: the seed that it was made from; of a fresh input its position.
        file: path of the file, relative to the folder.
        original: the original's answer.
        before: the answer of the compressed model before the repair.
        after: the candidate's answer.

    """

    set: SetName
    change: ChangeKind
    seed_id: Count
    file: str
    original: ShownAnswer
    before: ShownAnswer
    after: ShownAnswer


@dataclass(frozen=True, slots=True)
class InputToShow:
    """An input that is shown, and its pixels, (H, W, C) uint8, which are to be stored."""

    shown: ShownInput
    pixels: NDArray[np.uint8]


def shown_inputs(
    sets: Mapping[SetName, JudgedSet], after: Mapping[SetName, Sequence[Answer]], most: int = SHOWN
) -> tuple[InputToShow, ...]:
    """Return inputs that a candidate mends, and then those that it breaks.

    Of other pairs than classifiers of images there are none.

    Those on which the original's two best probabilities are furthest apart come first, and of each
    seed one, unless there are too few seeds. An input that a model gives no answer to is none.

    Args:
        sets: the inputs that judge, by the name of the set.
        after: the candidate's answers to them.
        most: inputs of each kind of change.

    """
    if not _can_be_shown(sets):
        return ()
    found: list[InputToShow] = []
    kinds: tuple[ChangeKind, ...] = ("mended", "broken")
    for kind in kinds:
        chosen = _chosen(list(_changed(sets, after, kind)), most)
        for number, (name, row) in enumerate(chosen, start=1):
            one = sets[name]
            shown = ShownInput(
                set=name,
                change=kind,
                seed_id=int(one.seed_ids[row]),
                file=f"{FOLDER}/{kind}-{number:02}.png",
                original=_shown(one.original[row]),
                before=_shown(one.before[row]),
                after=_shown(after[name][row]),
            )
            found.append(InputToShow(shown, one.inputs[row]))
    return tuple(found)


def _can_be_shown(sets: Mapping[SetName, JudgedSet]) -> bool:
    """Whether inputs are pictures, and answers labels with probabilities."""
    every = [input_set for input_set in sets.values() if len(input_set.inputs)]
    return all(
        inputs.inputs.ndim == _PICTURES
        and inputs.inputs.dtype == np.uint8
        and all(answer.counted and len(answer.probabilities) for answer in inputs.original)
        for inputs in every
    )


def _shown(answer: Answer) -> ShownAnswer:
    """Return an answer, which is no failure, as it is shown."""
    probability = round(float(answer.probabilities.max()), 6)
    return ShownAnswer(answer.decision or 0, probability, round(answer.lead(), 6))


def write_shown(out: Path, pair: Pair, shown: Sequence[InputToShow]) -> None:
    """Write inputs into the folder of a repair, without loss.

    Raises:
        UserError: its folder of inputs leads out of it.

    """
    directory, domain = RunDirectory(out), pair.interface.domain
    for input_to_show in shown:
        write_atomically(
            directory.inside(input_to_show.shown.file), domain.encode_file(input_to_show.pixels)
        )


Place = tuple[SetName, int]
"""The name of a set, and the position of an input in it."""

Seed = tuple[str, int]
"""What an input was made from: of a fresh one the set and its position, else the seed's id."""


def _changed(
    sets: Mapping[SetName, JudgedSet], after: Mapping[SetName, Sequence[Answer]], kind: ChangeKind
) -> Iterator[tuple[float, Place, Seed]]:
    """Yield the inputs of a kind of change: the original's margin, the place, and its seed."""
    for name, input_set in sets.items():
        of = FRESH if name == FRESH else ""  # fresh inputs are made from no seed
        rows = zip(input_set.original, input_set.before, after[name], strict=True)
        for row, answers in enumerate(rows):
            f, g, repaired = answers
            if any(answer.failure is not None for answer in answers):
                continue
            wrong = f.differs(g), f.differs(repaired)
            if wrong == ((True, False) if kind == "mended" else (False, True)):
                yield f.lead(), (name, row), (of, int(input_set.seed_ids[row]))


def _chosen(changed: list[tuple[float, Place, Seed]], most: int) -> list[Place]:
    """Return the places with the largest margins, of which each seed has one as far as it goes."""
    ranked = sorted(changed, key=lambda entry: -entry[0])
    first_of = {seed: place for _, place, seed in reversed(ranked)}
    ranked.sort(key=lambda entry: first_of[entry[2]] != entry[1])
    return [place for _, place, _ in sorted(ranked[:most], key=lambda entry: -entry[0])]
