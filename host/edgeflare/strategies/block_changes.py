"""Changes of one block of an input."""

from __future__ import annotations

from math import inf

import numpy as np

from edgeflare.core.bounds import Bounds
from edgeflare.core.input_space import Input, InputSpace, Real

SMALLEST = 1 / 64
"""Share of an axis that a block has at least."""

GROWTH = 4.0
"""Factor by which a change is scaled at most, either way."""

LEAST_WAVE = 1 / 8
"""Height of the lowest waves, as a share of the highest."""

UNBOUNDED_WAVE = 128.0
"""Height of the highest waves in levels where nothing bounds it: half the span of an image."""

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


def grown(space: InputSpace, seed: Input, input_: Input, rng: np.random.Generator) -> Input:
    """Return an input whose change of the seed is scaled by a random factor."""
    origin = space.levels(seed)
    factor = GROWTH ** rng.uniform(-1.0, 1.0)
    return space.dithered(origin + factor * (space.levels(input_) - origin), rng)


def with_wave(
    space: InputSpace, bounds: Bounds, input_: Input, block: Block, rng: np.random.Generator
) -> Input:
    """Return an input with a wave added in one block.

    The highest waves are as high as the bounds allow of a change of the block alone. Cells of
    several values get the wave in a random direction of theirs, such as a colour.
    """
    levels = space.levels(input_)
    wave = random_wave(tuple(part.stop - part.start for part in block), rng)
    wave = np.multiply.outer(wave, rng.normal(size=levels.shape[len(block) :]))
    allowed = _most_height(space, bounds, wave)
    levels[block] += wave * (allowed * LEAST_WAVE ** rng.random())
    return space.dithered(levels, rng)


def random_wave(cells: tuple[int, ...], rng: np.random.Generator) -> Real:
    """Return a cosine of random phase, and of a random period along each axis.

    The periods reach from 2 cells to 4 times the block, where the wave is a slope or a constant;
    long ones are as likely as short ones.
    """
    phase = np.full(cells, 2.0 * np.pi * rng.random())
    for axis, size in enumerate(cells):
        period = 2.0 * (2.0 * size) ** rng.random()
        turns = np.arange(size) / (period * rng.choice((-1.0, 1.0)))
        phase += 2.0 * np.pi * turns.reshape(-1, *(1 for _ in cells[axis + 1 :]))
    return np.asarray(np.cos(phase))


def _most_height(space: InputSpace, bounds: Bounds, wave: Real) -> float:
    """Return the factor of a wave with which it is as high as the bounds and the space allow."""
    highest = min(inf if bounds.max_linf is None else bounds.max_linf, space.span / 2)
    highest = UNBOUNDED_WAVE if highest == inf else highest
    longest = inf if bounds.max_l2 is None else bounds.max_l2
    length = max(float(np.linalg.norm(wave)), 1e-9)
    return min(highest / max(float(np.abs(wave).max()), 1e-9), longest / length)
