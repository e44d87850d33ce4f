"""Find where a difference begins by bisection over prefixes of the network.

A prefix is the part of the network from its input to some layer. It is used for delegates whose
intermediate tensors cannot be observed. Rounding can make values equal again, so a bisection finds
*an* onset, a layer before which the two arms are equal and behind which they are not; it cannot say
whether they also differed earlier.
"""

from __future__ import annotations

from collections.abc import Callable


def find_onset(count: int, differ: Callable[[int], bool]) -> int:
    """Return a position behind which the arms differ and before which they do not.

    Asks at most ⌈log2 count⌉ times.

    Args:
        count: number of positions; behind the last one the arms are known to differ.
        differ: whether the arms differ behind a position, from 0 to count - 2.

    """
    equal, different = -1, count - 1
    while different - equal > 1:
        middle = (equal + different) // 2
        if differ(middle):
            different = middle
        else:
            equal = middle
    return different
