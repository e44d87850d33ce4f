"""Lines between seeds, whose ends lie in one half of the seeds: to choose units on, or held out.

What is a property of a seed is one of every line that ends at it. So a line of one half has no seed
in common with a line of the other, or what was chosen on one would be right on the other by
chance. And no two lines that are held out have a seed in common, so that they are independent of
each other, as permutations and intervals take them to be. To choose on, seeds are used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.near_boundary import drawn_lines

MOST_CHOOSING: Final = 3
"""Lines to choose on for each that is held out, at most: where seeds are few, further ones between
the same seeds say little that is new."""

Ends = NDArray[np.int64]
"""(lines, 2), the positions of the seeds that lines begin and end at."""


@dataclass(frozen=True, slots=True)
class SeedHalves:
    """Lines of each half, in a drawn order.

    Attributes:
        choosing: each pair of ends once.
        held_out: each end once.

    """

    choosing: Ends
    held_out: Ends


def seed_halves(labels: NDArray[np.int64], most: int, rng: np.random.Generator) -> SeedHalves:
    """Divide seeds at random, and draw lines between those of different labels within each half.

    As many are held out as to choose on, or all that the seeds allow.

    Args:
        labels: (seeds,), the original's.
        most: lines of both halves together.
        rng: of all that is drawn.

    """
    order = rng.permutation(len(labels))
    choosing, others = order[0::2], order[1::2]
    held_out = others[disjoint_lines(labels[others])][: most // 2]
    wanted = min(MOST_CHOOSING * len(held_out), most - len(held_out))
    return SeedHalves(choosing[drawn_lines(labels[choosing], wanted, rng)], held_out)


def disjoint_lines(labels: NDArray[np.int64]) -> Ends:
    """Pair positions of different labels, each position once at most.

    Those that are left over are all of one label.

    Args:
        labels: (n,), in a drawn order, which decides the pairs.

    """
    waiting: list[int] = []  # all of one label
    pairs: list[tuple[int, int]] = []
    for position, label in enumerate(labels.tolist()):
        if waiting and labels[waiting[-1]] != label:
            pairs.append((waiting.pop(), position))
        else:
            waiting.append(position)
    return np.array(pairs, np.int64).reshape(-1, 2)
