"""Who was right on an input on which two arms decide differently, by the label of its seed.

A deviation on which the compressed side alone is wrong is what compression cost. One on which that
side is right, or both are wrong, is no loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import UnsetType

from edgeflare.core.answer import FAILURES
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.seeds import is_label
from edgeflare.run.run_document import Finding

HARMFUL: Final = frozenset({"original-right", "twin-right"})

HARMS: Final = ("original-right", "twin-right", "both-wrong", "device-right")
"""What `harm` may be, the most harmful first: the arm of the host was right, or neither, or the
device. With `--find kernel` the twin stands where the original does."""

UNLABELLED: Final = "unlabelled"


def harm_of(goal: Goal, outcome: Outcome | None, label: int | None) -> str | None:
    """Return one of `HARMS`; None where the seed has no label, or an arm gave none.

    Args:
        goal: names the two arms that are compared.
        outcome: what they answered; None where they were not asked yet.
        label: the seed's.

    """
    if outcome is None:
        return None
    first, device = (outcome.answers.get(arm) for arm in goal.compared)
    if first is None or device is None or first.decision is None or device.decision is None:
        return None
    if not is_label(label, len(device.probabilities)):
        return None
    if label == first.decision:
        return "twin-right" if goal.compared[0] is Arm.TWIN else "original-right"
    return "device-right" if label == device.decision else "both-wrong"


def is_harmful(entry: Finding) -> bool:
    """Whether an entry of a document counts as harmful.

    A failure of the device does, and so does what has no label: nothing says that it is harmless.
    """
    return entry.kind in FAILURES or not entry.harm or entry.harm in HARMFUL


def rank(entry: Finding) -> int:
    """Return the place of an entry by harm: failures, harmful, unlabelled, the others."""
    if entry.kind in FAILURES:
        return 0
    return {None: 2, "both-wrong": 3, "device-right": 4}.get(entry.harm or None, 1)


def count_harms(harms: Iterable[str | UnsetType | None]) -> dict[str, int]:
    """Return how many there are of each, in the order of `HARMS`, then of those without a label."""
    counts = Counter(harm or UNLABELLED for harm in harms)
    return {name: counts[name] for name in (*HARMS, UNLABELLED) if counts[name]}
