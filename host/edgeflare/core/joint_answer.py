"""The answer about several parts at once: the heads of a classifier, or the frames of a clip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from math import inf, prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_VALUES, Answer, Confusion

MOST_SCORES = 10_000
"""Joint decisions at most that have a score each; of more there are too many to keep."""


@dataclass(frozen=True, slots=True)
class JointAnswer(Answer):
    """Several answers as one, which differs from another where any of its parts does.

    Its decision counts through the decisions of all parts, the last part fastest; see
    `split_decision`. Probabilities and scores are those of the joint decisions: products and sums
    over the parts. They are empty where there are more than `MOST_SCORES`.

    Attributes:
        parts: the answers, each with scores; at least one.

    """

    truth_measure: ClassVar[str] = "share of right parts"

    parts: tuple[Answer, ...] = field(kw_only=True)

    def differs_by_tie(self, other: Answer) -> bool:
        """Whether every part that differs hangs on a tie."""
        return all(answer.differs_by_tie(its) for answer, its in self._differing(other))

    def strength_against(self, other: Answer) -> float | None:
        """Return the greatest strength of a part that differs; None where an arm failed."""
        if self.decision is None or other.decision is None:
            return None
        return max(
            (answer.strength_against(its) or 0.0 for answer, its in self._differing(other)),
            default=0.0,
        )

    def margin(self, home: Answer) -> float:
        """Return the least margin of a part for its own part of a decision."""
        return min(answer.margin(its) for answer, its in self._pairs(home))

    def departure(self, home: Answer, other: Answer) -> float:
        """Return the sum over the parts that differ; where none does, that of the least margin."""
        its = _parts(home), _parts(other)
        parts = list(zip(self.parts, *its, strict=True))
        differing = [part for part in parts if part[1].differs(part[2])]
        nearest = min(parts, key=lambda part: part[2].margin(part[1]))
        return sum(answer.departure(at, to) for answer, at, to in differing or [nearest])

    def confusion(self, other: Answer) -> Confusion:
        """Return the classes that the two give in each part, such as each frame of a clip."""
        return np.concatenate([answer.confusion(its) for answer, its in self._pairs(other)])

    def support(self, home: Answer) -> NDArray[np.float64]:
        """Return the mean support of the parts of a decision."""
        support = [answer.support(its) for answer, its in self._pairs(home)]
        return np.asarray(np.mean(support, axis=0))

    def support_words(self) -> tuple[str, float]:
        """Return what the support of a part is."""
        return self.parts[0].support_words()

    def lead(self) -> float:
        """Return the least lead of a part; infinite where joint decisions have no scores."""
        return min(part.lead() for part in self.parts) if len(self.scores) else inf

    def certainty(self, k: int) -> float:
        """Return the certainty of the joint decisions, or the least of a part without scores."""
        if len(self.probabilities):
            return super(JointAnswer, self).certainty(k)
        return min(part.certainty(k) for part in self.parts)

    def distance(self, other: Answer) -> float:
        """Return the greatest distance of a part."""
        return max(answer.distance(its) for answer, its in self._pairs(other))

    def against_truth(self, truth: Answer) -> float:
        """Return the share of the parts that are right."""
        return float(np.mean([not answer.differs(its) for answer, its in self._pairs(truth)]))

    def state(self) -> NDArray[np.float64]:
        """Return the states of all parts, one after the other."""
        return np.concatenate([part.state() for part in self.parts])

    def equals(self, other: Answer) -> bool:
        """Whether all parts are equal, to the bit."""
        return all(answer.equals(its) for answer, its in self._pairs(other))

    def _pairs(self, other: Answer) -> list[tuple[Answer, Answer]]:
        return list(zip(self.parts, _parts(other), strict=True))

    def _differing(self, other: Answer) -> list[tuple[Answer, Answer]]:
        return [(answer, its) for answer, its in self._pairs(other) if answer.differs(its)]


def _parts(answer: Answer) -> tuple[Answer, ...]:
    assert isinstance(answer, JointAnswer)  # noqa: S101 - all answers are of one task
    return answer.parts


def joint_answer(parts: Sequence[Answer]) -> Answer:
    """Return several answers as one; a single one as it is.

    It fails as the first part does that fails.
    """
    if len(parts) == 1:
        return parts[0]
    choices = tuple(len(part.scores) for part in parts)
    failure = next((part.failure for part in parts if part.failure), None)
    if prod(choices) > MOST_SCORES:
        probabilities, scores = np.empty(0), np.empty(0)
    else:
        probabilities = reduce(np.multiply.outer, (part.probabilities for part in parts)).ravel()
        scores = reduce(np.add.outer, (part.scores for part in parts)).ravel()
    decision = None
    if failure is None:
        decision = join_decisions([part.decision or 0 for part in parts], choices)
    tied = failure is None and any(part.tied for part in parts)
    return JointAnswer(decision, tied, probabilities, scores, failure, parts=tuple(parts))


def join_decisions(labels: Sequence[int], choices: Sequence[int]) -> int:
    """Return the number of a joint decision.

    Args:
        labels: the decision of each part, from 0.
        choices: how many there are to choose from, in each part.

    """
    decision = 0
    for label, count in zip(labels, choices, strict=True):
        decision = decision * count + label
    return decision


def split_decision(decision: int, choices: Sequence[int]) -> list[int]:
    """Return the decisions of the parts of a joint one: what `join_decisions` joined."""
    labels = []
    for count in reversed(choices):
        decision, label = divmod(decision, count)
        labels.append(label)
    return labels[::-1]


def joint_truth(labels: Sequence[int], choices: Sequence[int]) -> Answer | None:
    """Return the right answer where the label of each part is known; None where one is not.

    Args:
        labels: labels of the parts.
        choices: how many there are to choose from, in each part.

    """
    if not all(0 <= label < count for label, count in zip(labels, choices, strict=True)):
        return None
    parts = tuple(Answer(label, False, NO_VALUES, NO_VALUES) for label in labels)
    if len(parts) == 1:
        return parts[0]
    decision = join_decisions(labels, choices)
    return JointAnswer(decision, False, NO_VALUES, NO_VALUES, parts=parts)


def in_runs(labels: Iterable[str]) -> str:
    """Return decisions one behind the other, those that repeat as one, such as "3×20 7"."""
    runs = ((label, len(list(run))) for label, run in groupby(labels))
    return " ".join(f"{label}×{count}" if count > 1 else label for label, count in runs)
