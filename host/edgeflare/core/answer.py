"""What one arm answered about one input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Failure = Literal["crash", "hang", "invalid-output"]
"""Why an arm gave no answer; such a failure is a kind of finding too."""

NO_VALUES: Final = np.empty(0)
"""The scores of an answer that is made from what is right, and of one that has none."""

FAILURES: Final[frozenset[str]] = frozenset(get_args(Failure))

LEAST_SUPPORT: Final = 0.02
"""Change of a probability that is worth a word: several times that of 8-bit quantization."""

PROBABILITY: Final = "probability of the decision"
"""What the score of a decision is where one of several is chosen."""

Confusion = NDArray[np.int64]
"""Classes that two answers give in the same places: (pairs, 3), a class of the first, one of the
second, and in how many places. -1 is no class, as where an object has vanished."""

NO_CONFUSION: Final[Confusion] = np.empty((0, 3), np.int64)

DEVIATION: Final = "deviation"
"""The kind of a finding on which two arms decide differently, where the task tells none apart."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one arm answered about one input, as the task of the pair reads it.

    These are the answers of a task that chooses one of several, such as classification: the
    decision is the index of the largest score. The answers of other tasks are subclasses; those of
    a task whose decisions have structure, such as texts or boxes, have the decision 0, no
    probabilities and no scores.

    Attributes:
        decision: what was decided; None where the arm failed.
        tied: the decision hangs on a tie of raw outputs, before dequantization and softmax.
        probabilities: (choices,) float64, summing to about 1; zeros where the arm failed.
        scores: (choices,) float64, unbounded and monotonic in the probabilities: the logits where
            the model gives logits, the logarithms of the probabilities elsewhere.
        failure: why there is no answer, or None.
        chooses: whether decisions are told apart by margins, so that a boundary lies between them;
            the same for all answers of a task.
        counted: whether `decision` says all that was decided, so that equal numbers are equal
            decisions; the same for all answers of a task.
        bordered: whether answers are equal up to a border, at which others begin; false where they
            differ by degrees, as values and masks do; the same for all answers of a task.
        measured_as: what `measured` returns, in words; the same for all answers of a task.
        truth_measure: what `against_truth` returns, in words; empty where being right says it all.
        pooled_measure: what `pooled` returns, in words; empty where the field has no such measure.

    """

    chooses: ClassVar[bool] = True
    counted: ClassVar[bool] = True
    bordered: ClassVar[bool] = True
    measured_as: ClassVar[str] = "distance"
    truth_measure: ClassVar[str] = ""
    pooled_measure: ClassVar[str] = ""

    decision: int | None
    tied: bool
    probabilities: NDArray[np.float64]
    scores: NDArray[np.float64]
    failure: Failure | None = None

    def differs(self, other: Answer) -> bool:
        """Whether the two decide differently; that an arm failed is a decision of its own."""
        return self.decision != other.decision

    def differs_by_tie(self, other: Answer) -> bool:
        """Whether that the two differ hangs on a tie, given that they do."""
        return self.tied or other.tied

    def differs_strictly(self, other: Answer) -> bool:
        """Whether the two decide differently, and not by a tie."""
        return self.differs(other) and not self.differs_by_tie(other)

    def kind_against(self, other: Answer) -> str:  # noqa: ARG002 - of decisions there is one kind
        """Return the kind of a deviation, given that the two differ and neither failed."""
        return DEVIATION

    def strength_against(self, other: Answer) -> float | None:
        """Return how confidently two answers differ: min(p_1[a] - p_1[b], p_2[b] - p_2[a]).

        a and b are their decisions. None where an arm failed; 0 where the decisions are equal.
        """
        a, b = self.decision, other.decision
        if a is None or b is None:
            return None
        p, q = self.probabilities, other.probabilities
        return min(p.item(a) - p.item(b), q.item(b) - q.item(a))

    def margin(self, home: Answer) -> float:
        """Return how far this answer is from deciding otherwise than another one, in scores.

        Here it is by how much the score of that decision exceeds the best of all others. It is
        below 0 where another one is decided. A failed arm has the margin 0.

        Args:
            home: the answer whose decision is meant, such as that to a seed.

        """
        others = self.scores.copy()
        others[home.decision or 0] = -np.inf
        return float(self.scores[home.decision or 0] - others.max())

    def departure(self, home: Answer, other: Answer) -> float:
        """Return how far this answer has gone from one answer towards another one.

        Of the scores of the two decisions it is by how much they are nearer to each other than
        those of home, or further apart in the other order; the runner-up of the other answer
        stands for its decision where both decide alike. Without scores it is by how much the
        margin is less. It is 0 for home itself. None of the three may have failed.

        Args:
            home: the answer that is departed from, such as the original's.
            other: answer of the arm whose difference from home is looked into.

        """
        if len(self.scores):
            a, b = home.decision or 0, other.decision or 0
            if a == b:
                b = int(np.where(np.arange(len(other.scores)) == a, -np.inf, other.scores).argmax())
            return float((home.scores[a] - home.scores[b]) - (self.scores[a] - self.scores[b]))
        least, spare = self.margin(home), home.margin(home)
        return spare - least if np.isfinite(spare) else self.distance(home)

    def confusion(self, other: Answer) -> Confusion:
        """Return which classes the two give in the same places: one pair of decisions here.

        Empty where an arm failed, and for tasks that have no classes.
        """
        if not self.counted or self.decision is None or other.decision is None:
            return NO_CONFUSION
        return np.array([[self.decision, other.decision, 1]], np.int64)

    def support(self, home: Answer) -> NDArray[np.float64]:
        """Return how strongly this answer supports what another one decided: (scores,).

        Here it is the probability of that decision. NaN where the task has no such score, or one of
        the two arms failed.
        """
        if self.decision is None or home.decision is None or not len(self.probabilities):
            return np.full(1, np.nan)
        return self.probabilities[home.decision : home.decision + 1]

    def support_words(self) -> tuple[str, float]:
        """Return what `support` is, in words, and the least change of it that is worth a word."""
        return PROBABILITY, LEAST_SUPPORT

    def lead(self) -> float:
        """Return by how much the largest probability exceeds the second: 0 for a tie."""
        second, first = np.sort(self.probabilities)[-2:]
        return float(first - second)

    def certainty(self, k: int) -> float:
        """Return the highest less the k-highest probability (DiffChaser's k-uncertainty, reversed).

        With fewer choices than k, the lowest probability stands for the k-highest.
        """
        highest = np.sort(self.probabilities)[-k:]
        return float(highest[-1] - highest[0])

    def distance(self, other: Answer) -> float:
        """Return D, which DFlare increases: the difference of the decisions' probabilities."""
        a, b = self.decision, other.decision
        first = 0.0 if a is None else self.probabilities.item(a)
        return abs(first - (0.0 if b is None else other.probabilities.item(b)))

    def measured(self, other: Answer) -> float:
        """Return how far apart or how near two answers are, as people say it: `measured_as`."""
        return self.distance(other)

    def against_truth(self, truth: Answer) -> float:
        """Return how far from what is right an answer is, or how near to it: `truth_measure`."""
        return self.measured(truth)

    @staticmethod
    def pooled(
        answers: Sequence[Answer],  # noqa: ARG004 - most tasks have no such measure
        truths: Sequence[Answer],  # noqa: ARG004
    ) -> float | None:
        """Return a measure of all answers of an arm together: `pooled_measure`.

        Args:
            answers: answers to some inputs, those that failed among them.
            truths: what is right for each.

        Returns:
            None where there is no such measure, or it is not defined for these.

        """
        return None

    def state(self) -> NDArray[np.float64]:
        """Return what tells this answer from others as a state (paper §3.3.2): (values,)."""
        return self.probabilities

    def equals(self, other: Answer) -> bool:
        """Whether both arms answered the same, to the bit."""
        same = np.array_equal(self.probabilities, other.probabilities)
        return same and self.failure == other.failure
