"""The text that one arm read, how near it is to others, and what other text is nearest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.word_edits import Edit, EditKind, word_edits
from edgeflare.tasks.classification import softmax
from edgeflare.tasks.transcript.transcript_symbols import Spelling, TranscriptSymbols

KINDS = {
    "substituted": "word-substituted",
    "deleted": "word-deleted",
    "inserted": "word-inserted",
}
"""Kinds of deviations, by the kind of the first edit that makes one text of the other."""

_MIRRORED: dict[EditKind, EditKind] = {
    "same": "same",
    "substituted": "substituted",
    "deleted": "inserted",
    "inserted": "deleted",
}
"""What an edit is, read in the other direction."""

STATE_STEPS = 512
"""Values of a state at most: the steps of an answer, averaged in as many groups."""


@dataclass(frozen=True, slots=True)
class TranscriptAnswer(Answer):
    """A text, which deviates from another one where a word does.

    The decision is 0 of all texts; there are no probabilities and no scores of it.

    What a text needs is by how much outputs would have to change in the step that has to change
    most, for greedy decoding to read it; see `TextLattice`.

    Attributes:
        outputs: (steps, symbols) float32, the logits, or the logarithms of the probabilities; zeros
            where the arm failed.
        spelling: the words, by their symbols.
        words: the words.
        symbols: what the outputs of a step stand for.

    """

    counted: ClassVar[bool] = False
    truth_measure: ClassVar[str] = "word error rate"
    pooled_measure: ClassVar[str] = "word error rate of all words"

    outputs: NDArray[np.float32] = field(kw_only=True)
    spelling: Spelling = field(kw_only=True)
    words: tuple[str, ...] = field(kw_only=True)
    symbols: TranscriptSymbols = field(kw_only=True)

    def differs(self, other: Answer) -> bool:
        """Whether a word differs, or one of the two failed alone."""
        return self.failure != other.failure or self.words != _text(other).words

    def kind_against(self, other: Answer) -> str:
        """Return what became of the first word that differs, from this text to the other."""
        return next(KINDS[edit.kind] for edit in self._edits(other) if edit.kind != "same")

    def strength_against(self, other: Answer) -> float | None:
        """Return how confidently two texts differ, in probabilities.

        For each word that differs there is a text in which it alone is as the other arm has it. The
        strength is the least that such a text needs of this arm's probabilities, or that the other
        text with that word as it is here needs of the other arm's. Where a single step makes the
        difference, with the choices a and b, it is min(p_1[a] - p_1[b], p_2[b] - p_2[a]).

        None where an arm failed; 0 where the texts do not differ.
        """
        its = _text(other)
        if self.failure is not None or its.failure is not None:
            return None
        if not self.differs(its):
            return 0.0
        mine, others = self._deficits_of_probabilities(), its._deficits_of_probabilities()
        needed = [
            min(self._lattice(here).need(mine), self._lattice(there).need(others))
            for here, there in self._texts_between(its)
        ]
        return min(1.0, *needed)

    def margin(self, home: Answer) -> float:
        """Return what the nearest other text needs, in logits, while this one is that of home.

        Where it is not, minus what home's text needs. A failed arm has the margin 0.
        """
        wanted = _text(home)
        if self.failure is not None or wanted.failure is not None:
            return 0.0
        deficits = _deficits(self.outputs)
        if not self.differs(wanted):
            return self._lattice(self.spelling).need_of_another(deficits)
        need = self._lattice(wanted.spelling).need(deficits)
        # Where no path spells the text, the worst path says how far it is.
        return -(need if need < inf else float(deficits.max()))

    def lead(self) -> float:
        """Return what the nearest other text needs, in probabilities: 0 for a tie."""
        return self._lattice(self.spelling).need_of_another(self._deficits_of_probabilities())

    def certainty(self, k: int) -> float:
        """Return the least over the steps of the highest less the k-highest probability."""
        ordered = np.sort(self._probabilities(), axis=1)[:, -k:]
        return float((ordered[:, -1] - ordered[:, 0]).min())

    def distance(self, other: Answer) -> float:
        """Return the mean difference of the steps' largest probabilities."""
        return float(np.abs(self._largest() - _text(other)._largest()).mean())

    def against_truth(self, truth: Answer) -> float:
        """Return the edits that make the right text of this one, over its words."""
        return self._wrong(truth) / max(1, len(_text(truth).words))

    @staticmethod
    def pooled(answers: Sequence[Answer], truths: Sequence[Answer]) -> float | None:
        """Return the edits of all texts over all their words; an arm that failed read none."""
        wrong = sum(
            _text(answer)._wrong(right) for answer, right in zip(answers, truths, strict=True)
        )
        words = sum(len(_text(truth).words) for truth in truths)
        return wrong / words if words else None

    def _wrong(self, truth: Answer) -> int:
        return sum(edit.kind != "same" for edit in self._edits(truth))

    def state(self) -> NDArray[np.float64]:
        """Return the largest probabilities of the steps, averaged in at most 512 groups."""
        largest = self._largest()
        groups = np.array_split(largest, min(len(largest), STATE_STEPS))
        return np.array([group.mean() for group in groups], np.float64)

    def equals(self, other: Answer) -> bool:
        """Whether both arms gave the same outputs."""
        return np.array_equal(self.outputs, _text(other).outputs) and self.failure == other.failure

    def _edits(self, other: Answer) -> list[Edit]:
        """Return the edits from this text to another one; from there to here they are the same."""
        its = _text(other).words
        if self.words <= its:
            return word_edits(self.words, its)
        return [
            Edit(_MIRRORED[word_edit.kind], word_edit.second, word_edit.first)
            for word_edit in word_edits(its, self.words)
        ]

    def _texts_between(self, other: TranscriptAnswer) -> Iterator[tuple[Spelling, Spelling]]:
        """Yield for each edit this text with it alone, and the other text without it alone."""
        at = place = 0
        for edit in self._edits(other):
            here, there = int(edit.kind != "inserted"), int(edit.kind != "deleted")
            mine, its = self.spelling[at : at + here], other.spelling[place : place + there]
            if edit.kind != "same":
                yield (
                    self.spelling[:at] + its + self.spelling[at + here :],
                    other.spelling[:place] + mine + other.spelling[place + there :],
                )
            at, place = at + here, place + there

    def _lattice(self, spelling: Spelling) -> TextLattice:
        return TextLattice(self.symbols.written(spelling), self.symbols)

    def _probabilities(self) -> NDArray[np.float64]:
        return softmax(self.outputs.astype(np.float64))

    def _largest(self) -> NDArray[np.float64]:
        largest: NDArray[np.float64] = self._probabilities().max(axis=1)
        return largest

    def _deficits_of_probabilities(self) -> Deficits:
        return _deficits(self._probabilities())


def _text(answer: Answer) -> TranscriptAnswer:
    assert isinstance(answer, TranscriptAnswer)  # noqa: S101 - all answers are of one task
    return answer


def _deficits(outputs: Deficits) -> Deficits:
    """Return by how much each output falls short of the largest of its step."""
    return np.asarray(outputs.max(axis=1, keepdims=True) - outputs)


Deficits = NDArray[np.floating[Any]]
"""(steps, symbols), 0 for the largest output of each step and above 0 for the smaller ones."""

_NO_SYMBOL = -1


class TextLattice:
    """How much the outputs of a model would have to change for a text to be read, or another one.

    The deficit of a symbol in a step is by how much its output falls short of the largest. A path
    takes one symbol in each step, and needs that all its deficits are made up for: what it needs is
    the largest of them. Greedy decoding takes the path that needs 0. What a text needs is the least
    that any path needs which spells it, and the nearest other text is the one that needs the least.

    Both are exact, by one pass over a lattice of the text's beginnings, as in the forward pass of
    the CTC loss (Graves et al., 2006), with the largest deficit in place of the product of
    probabilities. They are continuous in the outputs: where greedy decoding goes over from one text
    to another, both need 0.

    The lattice has the states of a text that is being read: after each symbol, and between two
    symbols. State 2n + 1 is that the n-th symbol was just read, counted from 0; state 2n is that n
    symbols were read and a blank, or a separator that writes nothing, after the last of them. Such
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
        # The deficit of the symbol of each state: (steps, states).
        costs = np.full((len(deficits), 2 * len(self._read) + 1), inf)
        costs[:, 1::2] = deficits[:, self._read]
        if self._blank is not None:
            costs[:, 0::2] = deficits[:, self._blank, None]
        if self._silent is not None:
            silent = 2 * self._silent
            costs[:, silent] = np.minimum(costs[:, silent], deficits[:, self._space, None])
        states = costs.shape[1]
        reached = np.full((len(costs) + 1, states + 2), inf, costs.dtype)
        reached[0, 2] = 0.0
        for before, row, cost in zip(reached[:-1], reached[1:, 2:], costs, strict=True):
            np.add(before[:-2], self._skip, out=row)
            np.minimum(row, before[1:-1], out=row)
            np.minimum(row, before[2:] + self._stay, out=row)
            np.maximum(row, cost, out=row)
        return reached[:, 2:]

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
