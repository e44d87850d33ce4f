"""The text that one arm read, and how near it is to others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.word_edits import Edit, EditKind, word_edits
from edgeflare.tasks.classification import softmax
from edgeflare.tasks.transcript.text_lattice import Deficits, TextLattice
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
    most, for greedy decoding to read it; see `text_lattice`.

    Attributes:
        outputs: (steps, symbols) float32, the logits, or the logarithms of the probabilities; zeros
            where the arm failed.
        spelling: the words, by their symbols.
        words: the words.
        symbols: what the outputs of a step stand for.

    """

    counted: ClassVar[bool] = False
    truth_measure: ClassVar[str] = "word error rate"

    outputs: NDArray[np.float32] = field(kw_only=True)
    spelling: Spelling = field(kw_only=True)
    words: tuple[str, ...] = field(kw_only=True)
    symbols: TranscriptSymbols = field(kw_only=True)

    def differs(self, other: Answer) -> bool:
        """Whether a word differs, or one of the two failed alone."""
        return self.failure != other.failure or self.words != _text(other).words

    def kind_against(self, other: Answer) -> str:
        """Return what became of the first word that differs, from this text to the other."""
        return next(KINDS[one.kind] for one in self._edits(other) if one.kind != "same")

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
        return -self._bounded(self._lattice(wanted.spelling).need(deficits))

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
        wrong = sum(one.kind != "same" for one in self._edits(truth))
        return wrong / max(1, len(_text(truth).words))

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
            Edit(_MIRRORED[one.kind], one.second, one.first) for one in word_edits(its, self.words)
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

    def _bounded(self, need: float) -> float:
        """Return a need; that of the worst path where no path spells the text."""
        return need if need < inf else float(_deficits(self.outputs).max())

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
