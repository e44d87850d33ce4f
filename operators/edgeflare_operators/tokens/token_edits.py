"""The four edits of a text, on ids: replace, swap, drop and insert."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.operator_registry import Sample, operator
from edgeflare_operators.tokens.token_sets import TokenSets

MOST_REPLACED = 0.1
"""The share of the ids in a set that is replaced, at most; one may always be."""


@operator("replace", domain="tokens")
def replace(tokens: Sample, rng: np.random.Generator, sets: TokenSets | None = None) -> Sample:
    """Replace some ids, each by another one of a set that it is in."""
    sets = sets or TokenSets.of_input(tokens)
    mutant: Sample = tokens.copy()
    positions = sets.movable(tokens)
    if len(positions):
        count = int(rng.integers(1, max(1, int(MOST_REPLACED * len(positions))) + 1))
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
