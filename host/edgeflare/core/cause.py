"""The cause of a deviation, named from the decisions of the three arms alone."""

from __future__ import annotations

from typing import Literal

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find
from edgeflare.core.outcome import Outcome

Cause = Literal["compression", "kernel", "mixed"]


def cause(outcome: Outcome, find: Find = Find.ANY) -> Cause | None:
    """Name the cause of a deviation, from decisions alone; that an arm failed is one of its own.

    h = g != f: compression. g != h and f equal to one of them: kernel. All three differ, or the
    third arm, the one that `find` does not compare, is tied: mixed. Without an original, g != h is
    kernel all the same. None where nothing deviates, or the twin or the device was not asked.
    """
    original, twin, device = (outcome.answers.get(arm) for arm in Arm)
    if twin is None or device is None:
        return None
    if original is None:
        return "kernel" if twin.differs(device) else None
    third = original if find is Find.KERNEL else twin
    by_compression, by_kernels = original.differs(twin), twin.differs(device)
    if not (by_compression or by_kernels or original.differs(device)):
        return None
    if (by_compression and by_kernels and original.differs(device)) or third.tied:
        return "mixed"
    return "kernel" if by_kernels else "compression"
