"""Who was right on an input on which two arms decide differently, by its seed's label or target.

A deviation on which the compressed side alone is wrong is what compression cost. One on which that
side is right, or both are wrong, is no loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from edgeflare.core.answer import FAILURES, Answer
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.core.truths import is_right
from edgeflare.run.run_document import Finding, Harm

HARMFUL: Final = frozenset({"original-right", "twin-right"})

HARMS: Final = ("original-right", "twin-right", "both-wrong", "both-right", "device-right")
"""What `harm` may be, the most harmful first: the arm of the host alone was right, or neither, or
both, as values on either side of a target may be, or the device alone. With `--find kernel` the
twin stands where the original does."""

UNLABELLED: Final = "unlabelled"

NO_ANSWER: Final = "no-answer"
"""Name where nobody can be said to be right, since an arm failed."""

NOBODY: Final = frozenset({UNLABELLED, NO_ANSWER})
"""Names that say that it is not known who is right."""


def harm_of(goal: Goal, outcome: Outcome | None, truth: Answer | None) -> Harm | None:
    """Return one of `HARMS`; None where nothing is known to be right, or an arm failed.

    Args:
        goal: names the two arms that are compared.
        outcome: what they answered; None where they were not asked yet.
        truth: the right answer to the seed; None where it is not known.

    """
    if outcome is None or truth is None:
        return None
    first, device = (outcome.answers.get(arm) for arm in goal.compared)
    if first is None or device is None or first.decision is None or device.decision is None:
        return None
    if is_right(device, truth):
        return "both-right" if is_right(first, truth) else "device-right"
    if is_right(first, truth):
        return "twin-right" if goal.compared[0] is Arm.TWIN else "original-right"
    return "both-wrong"


def harm_or_why_not(goal: Goal, outcome: Outcome, truth: Answer | None) -> str:
    """Return one of `HARMS`, or of `NOBODY` where there is none; see `harm_of`."""
    failed = any(outcome[arm].decision is None for arm in goal.compared)
    return harm_of(goal, outcome, truth) or (NO_ANSWER if failed else UNLABELLED)


def harm_of_entry(entry: Finding) -> str:
    """Return the harm of an entry, or one of `NOBODY` where it has none."""
    return entry.harm or (NO_ANSWER if entry.kind in FAILURES else UNLABELLED)


def right_by_arm(
    outcomes: Sequence[Outcome], truths: Sequence[Answer | None]
) -> tuple[int, dict[Arm, int]]:
    """Return of how many inputs is known what is right, and on how many of them each arm is.

    Args:
        outcomes: outcomes of the inputs.
        truths: the right answer to each; None where it is not known.

    """
    known = [
        (outcome.answers, truth)
        for outcome, truth in zip(outcomes, truths, strict=True)
        if truth is not None
    ]
    arms = [arm for arm in Arm if known and all(arm in answers for answers, _ in known)]
    right = {arm: sum(is_right(answers[arm], truth) for answers, truth in known) for arm in arms}
    return len(known), right


def is_harmful(entry: Finding) -> bool:
    """Whether an entry of a document counts as harmful.

    A failure of the device does, and so does what has no label: nothing says that it is harmless.
    """
    return entry.kind in FAILURES or not entry.harm or entry.harm in HARMFUL


def rank(entry: Finding) -> int:
    """Return the place of an entry by harm: failures, harmful, unlabelled, the others."""
    return 0 if entry.kind in FAILURES else rank_of_harm(entry.harm)


def rank_of_harm(harm: Harm | None) -> int:
    """Return the place of a deviation by its harm: harmful, unlabelled, the others."""
    if not harm:
        return 2
    return {"both-wrong": 3, "both-right": 4, "device-right": 5}.get(harm, 1)


def count_harms(harms: Iterable[str]) -> dict[str, int]:
    """Return how many there are of each, in the order of `HARMS`, then of `NOBODY`."""
    counts = Counter(harms)
    return {name: counts[name] for name in (*HARMS, NO_ANSWER, UNLABELLED) if counts[name]}
