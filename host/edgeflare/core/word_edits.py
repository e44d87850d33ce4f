"""The edits that make one text of another, word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

EditKind = Literal["same", "substituted", "deleted", "inserted"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A word of a first text beside its word in a second one.

    Attributes:
        kind: "same" where both are equal, "substituted" where not, "deleted" where the second text
            has no such word, "inserted" where the first has none.
        first: the word of the first text; empty where it is inserted.
        second: the word of the second text; empty where it is deleted.

    """

    kind: EditKind
    first: str
    second: str


def word_edits(first: Sequence[str], second: Sequence[str]) -> list[Edit]:
    """Return the edits from a first text to a second one, in the order of the words.

    As few as possible are not "same" (Levenshtein distance over words). Of several such alignments
    it is the one that, read from the end, keeps or substitutes a word before it deletes one, and
    deletes one before it inserts one.

    Args:
        first: the words of the first text.
        second: the words of the second text.

    """
    # The edit distance of each beginning of a text from each beginning of the other.
    rows = [list(range(len(second) + 1))]
    for at, word in enumerate(first):
        above, row = rows[-1], [at + 1]
        for place, other in enumerate(second):
            row.append(min(above[place] + (word != other), above[place + 1] + 1, row[place] + 1))
        rows.append(row)
    return list(_backwards(first, second, rows))[::-1]


def _backwards(
    first: Sequence[str], second: Sequence[str], distances: list[list[int]]
) -> Iterator[Edit]:
    at, place = len(first), len(second)
    while at or place:
        here = distances[at][place]
        if at and place:
            word, other = first[at - 1], second[place - 1]
            if here == distances[at - 1][place - 1] + (word != other):
                yield Edit("same" if word == other else "substituted", word, other)
                at, place = at - 1, place - 1
                continue
        if at and here == distances[at - 1][place] + 1:
            at -= 1
            yield Edit("deleted", first[at], "")
        else:
            place -= 1
            yield Edit("inserted", "", second[place])
