"""Operators on tokens: ids of a vocabulary, (length,), integers, whose number they keep.

Which ids may take each other's place is said by `TokenSets`, which the domain hands them. An
operator that is called without takes all ids of the input to be exchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Sample, operator

_MOST_REPLACED = 0.1
"""The share of the ids in a set that is replaced, at most; one may always be."""

_Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenSets:
    """Sets of ids that may take each other's place.

    Attributes:
        sets: each is (ids,), in ascending order; an id may be in several. Ids in no set stay where
            they are, save that others may be put in or left out before them.
        padding: the id behind the last token; None for none.

    """

    sets: tuple[_Ids, ...]
    padding: int | None = None

    @classmethod
    def of_input(cls, tokens: Sample) -> TokenSets:
        """Return one set of all ids of an input."""
        return cls((np.unique(tokens).astype(np.int32),))

    def movable(self, tokens: Sample) -> NDArray[np.intp]:
        """Return the positions whose ids are in a set: (positions,)."""
        inside = np.zeros(tokens.shape, np.bool_)
        for ids in self.sets:
            inside |= np.isin(tokens, ids)
        return np.flatnonzero(inside)

    def drawn_like(self, token: int, rng: np.random.Generator) -> int:
        """Return an id that may take the place of another: a different one, where there is one."""
        holding = [ids for ids in self.sets if token in ids]
        ids = holding[int(rng.integers(len(holding)))]
        others = ids[ids != token]
        return int(rng.choice(others)) if len(others) else token


@operator("replace", domain="tokens")
def replace(tokens: Sample, rng: np.random.Generator, sets: TokenSets | None = None) -> Sample:
    """Replace some ids, each by another one of a set that it is in."""
    sets = sets or TokenSets.of_input(tokens)
    mutant: Sample = tokens.copy()
    positions = sets.movable(tokens)
    if len(positions):
        count = int(rng.integers(1, max(1, int(_MOST_REPLACED * len(positions))) + 1))
        for position in np.sort(rng.choice(positions, count, replace=False)):
            mutant[position] = sets.drawn_like(int(tokens[position]), rng)
    return mutant


@operator("swap", domain="tokens")
def swap(tokens: Sample, rng: np.random.Generator, sets: TokenSets | None = None) -> Sample:
    """Swap two different neighbours, both of them in a set."""
    sets = sets or TokenSets.of_input(tokens)
    mutant: Sample = tokens.copy()
    positions = sets.movable(tokens)
    pairs = positions[:-1][np.diff(positions) == 1]
    pairs = pairs[tokens[pairs] != tokens[pairs + 1]]
    if len(pairs):
        first = int(rng.choice(pairs))
        mutant[[first, first + 1]] = tokens[[first + 1, first]]
    return mutant


@operator("drop", domain="tokens")
def drop(tokens: Sample, rng: np.random.Generator, sets: TokenSets | None = None) -> Sample:
    """Leave out an id that is in a set; those behind it move up.

    The last place is filled with padding; without padding, an id like the last one is put there.
    """
    sets = sets or TokenSets.of_input(tokens)
    mutant: Sample = tokens.copy()
    positions = sets.movable(tokens)
    if len(positions):
        at = int(rng.choice(positions))
        last = int(positions[-1]) if sets.padding is None else _before_padding(tokens, at, sets)
        mutant[at:last] = tokens[at + 1 : last + 1]
        if sets.padding is None:
            mutant[last] = sets.drawn_like(int(tokens[last]), rng)
        else:
            mutant[last] = sets.padding
    return mutant


@operator("insert", domain="tokens")
def insert(tokens: Sample, rng: np.random.Generator, sets: TokenSets | None = None) -> Sample:
    """Put an id before one that is in a set, and from the same set; those behind it move down.

    They take the place of one padding; without any, of the last id that is in a set.
    """
    sets = sets or TokenSets.of_input(tokens)
    mutant: Sample = tokens.copy()
    positions = sets.movable(tokens)
    if len(positions):
        at = int(rng.choice(positions))
        last = int(positions[-1])
        if sets.padding is not None:
            end = _before_padding(tokens, at, sets) + 1
            last = end if end < len(tokens) else last
        mutant[at + 1 : last + 1] = tokens[at:last]
        mutant[at] = sets.drawn_like(int(tokens[at]), rng)
    return mutant


def _before_padding(tokens: Sample, begin: int, sets: TokenSets) -> int:
    """Return the position before the first padding behind another; the last one without any."""
    padded = np.flatnonzero(tokens[begin + 1 :] == sets.padding)
    return begin + int(padded[0]) if len(padded) else len(tokens) - 1
