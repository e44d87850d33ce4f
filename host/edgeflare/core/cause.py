"""The cause of a deviation, named from the labels of the three arms alone."""

from __future__ import annotations

from typing import Literal

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find
from edgeflare.core.outcome import Outcome

Cause = Literal["compression", "kernel", "mixed"]


def cause(outcome: Outcome, find: Find = Find.ANY) -> Cause | None:
    """Name the cause of a deviation, from labels alone; a failed arm's None is a label of its own.

    h = g != f: compression. g != h and f equal to one of them: kernel. All three differ, or the
    third arm, the one that `find` does not compare, is tied: mixed. Without an original, g != h is
    kernel all the same. None where nothing deviates, or the twin or the device was not asked.
    """
    original, twin, device = (outcome.answers.get(arm) for arm in Arm)
    if twin is None or device is None:
        return None
    if original is None:
        return "kernel" if twin.label != device.label else None
    third = original if find is Find.KERNEL else twin
    distinct = len({original.label, twin.label, device.label})
    if distinct == 1:
        return None
    if distinct == 3 or third.tied:
        return "mixed"
    return "compression" if twin.label == device.label else "kernel"
