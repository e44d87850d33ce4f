"""How much the outputs of a model would have to change for a text to be read, or another one.

The deficit of a symbol in a step is by how much its output falls short of the largest. A path takes
one symbol in each step, and needs that all its deficits are made up for: what it needs is the
largest of them. Greedy decoding takes the path that needs 0. What a text needs is the least that
any path needs which spells it, and the nearest other text is the one that needs the least.

Both are exact, by one pass over a lattice of the text's beginnings, as in the forward pass of the
CTC loss (Graves et al., 2006), with the largest deficit in place of the product of probabilities.
They are continuous in the outputs: where greedy decoding goes over from one text to another, both
need 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.tasks.transcript.transcript_symbols import TranscriptSymbols

Deficits = NDArray[np.floating[Any]]
"""(steps, symbols), 0 for the largest output of each step and above 0 for the smaller ones."""

_NO_SYMBOL = -1


class TextLattice:
    """The states of a text that is being read: after each symbol, and between two symbols.

    State 2n + 1 is that the n-th symbol was just read, counted from 0; state 2n is that n symbols
    were read and a blank, or a separator that writes nothing, after the last of them. Such
    separators are those at the beginning, at the end, and after another separator.
    """

    def __init__(self, text: Sequence[int], symbols: TranscriptSymbols) -> None:
        """Make the lattice of a text.

        Args:
            text: the symbols that write it, see `TranscriptSymbols.written`.
            symbols: what they stand for.

        """
        space = symbols.space
        trailing = space is not None and len(text) > 0 and text[-1] != space
        read = np.array([*text, *([space] if trailing else [])], np.int64)
        before = np.array([_NO_SYMBOL if space is None else space, *read], np.int64)
        after = np.append(read, _NO_SYMBOL)
        self._read, self._blank, self._space = read, symbols.blank, space
        self._first_end = max(2 * len(text) - 1, 0)
        self._silent = np.flatnonzero(before == space) if space is not None else None
        states = 2 * len(read) + 1
        merges = symbols.blank is not None
        self._stay = np.zeros(states)
        self._skip = np.full(states, inf)
        self._skip[1::2] = 0.0
        if merges:
            self._skip[3::2][read[1:] == read[:-1]] = inf
        elif states > 1:
            self._stay[1::2] = inf
            self._stay[1::2][read == space] = 0.0
        # The symbols that keep to the text from a state, beside the blank.
        repeated = before if merges else np.where(before == space, before, _NO_SYMBOL)
        swallowed = np.where(before == space, before, _NO_SYMBOL)
        self._next = np.repeat(after, 2)[1 : states + 1]
        self._also = np.empty(states, np.int64)
        self._also[0::2], self._also[1::2] = swallowed, repeated[1:]

    def need(self, deficits: Deficits) -> float:
        """Return what the text needs: 0 where greedy decoding reads it; infinite where nothing can.

        Nothing can where there are fewer steps than it takes.
        """
        return float(self._reached(deficits)[-1, self._first_end :].min())

    def need_of_another(self, deficits: Deficits) -> float:
        """Return what the nearest other text needs: 0 where one ties with the largest outputs.

        Another text has another symbol at some place, or it has more or fewer of them.
        """
        reached = self._reached(deficits)
        unfinished = reached[-1, : self._first_end].min(initial=inf)
        departed = np.maximum(reached[:-1], self._departures(deficits)).min(initial=inf)
        return float(min(unfinished, departed))

    def _reached(self, deficits: Deficits) -> Deficits:
        """Return what each state needs after each step: (steps + 1, states), at first the start."""
        costs = self._costs(deficits)
        states = costs.shape[1]
        reached = np.full((len(costs) + 1, states + 2), inf, costs.dtype)
        reached[0, 2] = 0.0
        for before, row, cost in zip(reached[:-1], reached[1:, 2:], costs, strict=True):
            np.add(before[:-2], self._skip, out=row)
            np.minimum(row, before[1:-1], out=row)
            np.minimum(row, before[2:] + self._stay, out=row)
            np.maximum(row, cost, out=row)
        return reached[:, 2:]

    def _costs(self, deficits: Deficits) -> Deficits:
        """Return the deficit of the symbol of each state: (steps, states)."""
        costs = np.full((len(deficits), 2 * len(self._read) + 1), inf)
        costs[:, 1::2] = deficits[:, self._read]
        if self._blank is not None:
            costs[:, 0::2] = deficits[:, self._blank, None]
        if self._silent is not None:
            silent = 2 * self._silent
            costs[:, silent] = np.minimum(costs[:, silent], deficits[:, self._space, None])
        return costs

    def _departures(self, deficits: Deficits) -> Deficits:
        """Return the least deficit of a symbol that departs from the text: (steps, states).

        At most two symbols beside the blank keep to the text from each state, so that one of the
        three with the least deficits departs from it.
        """
        written = deficits
        if self._blank is not None:
            written = deficits.copy()
            written[:, self._blank] = inf
        count = min(3, written.shape[1])
        nearest = np.argpartition(written, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(written, nearest, axis=1)
        least = np.full((len(deficits), len(self._next)), inf)
        for symbol, value in zip(nearest.T[:, :, None], values.T[:, :, None], strict=True):
            departs = (symbol != self._next) & (symbol != self._also)
            least = np.minimum(least, np.where(departs, value, inf))
        return least
