"""Who was right on an input on which two arms decide differently, by the label of its seed.

A deviation on which the compressed side alone is wrong is what compression cost. One on which that
side is right, or both are wrong, is no loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.models.seeds import is_label

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
    if first is None or device is None or first.label is None or device.label is None:
        return None
    if not is_label(label, len(device.probabilities)):
        return None
    if label == first.label:
        return "twin-right" if goal.compared[0] is Arm.TWIN else "original-right"
    return "device-right" if label == device.label else "both-wrong"


def is_harmful(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of a document counts as harmful.

    A failure of the device does, and so does what has no label: nothing says that it is harmless.
    """
    harm = entry.get("harm")
    return entry["kind"] != "deviation" or harm is None or harm in HARMFUL


def rank(entry: Mapping[str, Any]) -> int:
    """Return the place of an entry by harm: failures, harmful, unlabelled, the others."""
    if entry["kind"] != "deviation":
        return 0
    harm = entry.get("harm")
    return {None: 2, "both-wrong": 3, "device-right": 4}.get(harm, 1)


def count_harms(harms: Iterable[str | None]) -> dict[str, int]:
    """Return how many there are of each, in the order of `HARMS`, then of those without a label."""
    counts = Counter(harm or UNLABELLED for harm in harms)
    return {name: counts[name] for name in (*HARMS, UNLABELLED) if counts[name]}


def who_was_right(entry: Mapping[str, Any]) -> str | None:
    """Return who was right in a word for a table: "original", "device", "neither"; or None."""
    harm = entry.get("harm")
    return None if harm is None else {"both-wrong": "neither"}.get(harm, harm.partition("-")[0])


def in_words(counts: Mapping[str, int]) -> str:
    """Return counts by harm as a line: "2 original right, 1 both wrong"."""
    return ", ".join(f"{count:,} {name.replace('-', ' ')}" for name, count in counts.items())


def in_lines(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return to read who was right on the findings; nothing where no seed has a label."""
    counts = document["totals"].get("harm", {}).get("findings")
    return [("by their labels", in_words(counts))] if counts else []
