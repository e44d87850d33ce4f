"""Where a difference begins, found by running ever other beginnings of the network.

For delegates that hide what is between their input and their output. Differences can heal when
values are rounded again, so a bisection finds *an* onset, a place before which the two are equal
and behind which they are not, and cannot tell whether they differed earlier and met again.
"""

from __future__ import annotations

from collections.abc import Callable


def find_onset(count: int, parted: Callable[[int], bool]) -> int:
    """Return a position at which the arms are apart and before which they are not.

    Asks at most ⌈log2 count⌉ times.

    Args:
        count: positions; at the last one the arms are known to be apart.
        parted: whether the arms are apart behind a position, from 0 to count - 2.

    """
    together, apart = -1, count - 1
    while apart - together > 1:
        middle = (together + apart) // 2
        if parted(middle):
            apart = middle
        else:
            together = middle
    return apart
