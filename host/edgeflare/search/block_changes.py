"""Changes of one block of an input."""

from __future__ import annotations

import numpy as np

from edgeflare.core.input import Input
from edgeflare.core.input_space import InputSpace

SMALLEST = 1 / 64
"""Share of an axis that a block has at least."""

GROWTH = 4.0
"""Factor by which a change is scaled at most, either way."""

Block = tuple[slice, ...]
"""The part of an input that is changed, along the axes of its cells."""


def random_block(cells: tuple[int, ...], rng: np.random.Generator) -> Block:
    """Return a block of a random place and size; small ones are as likely as large ones."""
    block = []
    for size in cells:
        length = max(1, round(size * SMALLEST ** float(rng.random())))
        begin = int(rng.integers(size - length + 1))
        block.append(slice(begin, begin + length))
    return tuple(block)


def with_block(one: Input, other: Input, block: Block) -> Input:
    """Return an input with one block of another one."""
    spliced: Input = one.copy()
    spliced[block] = other[block]
    return spliced


def grown(space: InputSpace, seed: Input, one: Input, rng: np.random.Generator) -> Input:
    """Return an input whose change of the seed is scaled by a random factor."""
    origin = space.levels(seed)
    factor = GROWTH ** rng.uniform(-1.0, 1.0)
    return space.dithered(origin + factor * (space.levels(one) - origin), rng)
