"""Operators that move blocks of space into depth or batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    as_many,
)
from edgeflare.conform.operators.movement.reshapes import ALL
from edgeflare.conform.specification.activation_tensors import (
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
)
from edgeflare.conform.specification.model_parts import ColumnOf, ConstantOf, OptionOf, ShapeOf
from edgeflare.conform.specification.parameter import (
    Configuration,
    Dimensions,
    Settings,
    Whole,
    dimensions,
    whole,
)
from edgeflare.conform.specification.whole_numbers import WholeNumbers


def _fit_space(settings: Settings, changed: str) -> Settings:
    batch, height, width, depth = dimensions(settings, "shape")
    block = whole(settings, "block")
    if changed == "shape":
        fitting = (side for side in range(block, 0, -1) if height % side == 0 == width % side)
        return {**settings, "block": next(fitting)}
    height, width = (-(-size // block) * block for size in (height, width))
    return {**settings, "shape": (batch, height, width, depth)}


def _fit_depth(settings: Settings, changed: str) -> Settings:
    *space, depth = dimensions(settings, "shape")
    block = whole(settings, "block")
    if changed == "shape":
        block = next(side for side in range(block, 0, -1) if depth % side**2 == 0)
        return {**settings, "block": block}
    return {**settings, "shape": (*space, -(-depth // block**2) * block**2)}


def _to_depth(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    batch, height, width, depth = raw[0].shape
    block = whole(settings, "block")
    rows, columns = height // block, width // block
    blocks = raw[0].reshape(batch, rows, block, columns, block, depth)
    return [blocks.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows, columns, block**2 * depth)]


def _to_space(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    batch, height, width, depth = raw[0].shape
    block = whole(settings, "block")
    left = depth // block**2
    blocks = raw[0].reshape(batch, height, width, block, block, left)
    moved = blocks.transpose(0, 1, 3, 2, 4, 5)
    return [moved.reshape(batch, height * block, width * block, left)]


def _fit_blocks(settings: Settings, _: str) -> Settings:
    space = len(dimensions(settings, "shape")) - 2
    fitting = {name: as_many(dimensions(settings, name), space, 0) for name in ("before", "after")}
    blocks = as_many(dimensions(settings, "block"), space, 1)
    sizes = dimensions(settings, "shape")[1:-1]
    padded = zip(sizes, blocks, fitting["before"], fitting["after"], strict=True)
    fitting["after"] = tuple(
        after - (size + before + after) % block + block
        if (size + before + after) % block
        else after
        for size, block, before, after in padded
    )
    return {**settings, "block": blocks, **fitting}


def _fit_crops(settings: Settings, changed: str) -> Settings:
    shape = dimensions(settings, "shape")
    space = len(shape) - 2
    blocks = as_many(dimensions(settings, "block"), space, 1)
    before = as_many(dimensions(settings, "before"), space, 0)
    after = as_many(dimensions(settings, "after"), space, 0)
    if changed == "shape" and shape[0] % prod(blocks):
        blocks = (1,) * space
    elif changed != "shape":
        shape = (-(-shape[0] // prod(blocks)) * prod(blocks), *shape[1:])
    sizes = [size * block for size, block in zip(shape[1:-1], blocks, strict=True)]
    before = tuple(min(front, max(size - 1, 0)) for front, size in zip(before, sizes, strict=True))
    left = (max(size - front - 1, 0) for front, size in zip(before, sizes, strict=True))
    after = tuple(min(pair) for pair in zip(after, left, strict=True))
    return {**settings, "shape": shape, "block": blocks, "before": before, "after": after}


def _to_batches(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    blocks = dimensions(settings, "block")
    paddings = zip(dimensions(settings, "before"), dimensions(settings, "after"), strict=True)
    zero = np.array(settings.get("input_zero_point", 0), raw[0].dtype)
    padded = np.pad(raw[0], [(0, 0), *paddings, (0, 0)], constant_values=zero)
    batch, *sizes, depth = padded.shape
    counts = [size // block for size, block in zip(sizes, blocks, strict=True)]
    split = [number for pair in zip(counts, blocks, strict=True) for number in pair]
    space = len(blocks)
    inner, outer = range(2, 2 * space + 1, 2), range(1, 2 * space, 2)
    moved = padded.reshape(batch, *split, depth).transpose(*inner, 0, *outer, 2 * space + 1)
    return [moved.reshape(batch * prod(blocks), *counts, depth)]


def _from_batches(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    blocks = dimensions(settings, "block")
    batches, *sizes, depth = raw[0].shape
    space = len(blocks)
    split = raw[0].reshape(*blocks, batches // prod(blocks), *sizes, depth)
    pairs = [at for place in range(space) for at in (space + 1 + place, place)]
    moved = split.transpose(space, *pairs, 2 * space + 1)
    joined = [size * block for size, block in zip(sizes, blocks, strict=True)]
    whole_ = moved.reshape(batches // prod(blocks), *joined, depth)
    crops = zip(dimensions(settings, "before"), dimensions(settings, "after"), joined, strict=True)
    kept = (slice(None), *(slice(low, size - high) for low, high, size in crops))
    return [whole_[kept]]


def _version(settings: Configuration) -> int:
    return 3 if len(dimensions(settings, "shape")) != 4 else 1


_SQUARE_TYPES = (FLOAT, INT8, UINT8, INT32, INT64)
_SQUARE = (
    ShapeOf(Dimensions("shape", (4, 4), most_values=400)),
    OptionOf(Whole("block", 1, 4, limit=1000), "blockSize"),
)
_BLOCKS = (
    ShapeOf(Dimensions("shape", (3, 4), most_values=300)),
    ConstantOf(WholeNumbers("block", 1, 3, usual=1, counts=(1, 2), kind="shape")),
    ColumnOf(WholeNumbers("before", 0, 3, counts=(1, 2), kind="shape"), 0, 2),
    ColumnOf(WholeNumbers("after", 0, 3, counts=(1, 2), kind="shape"), 1, 2),
)
_VERSIONS = {INT8: 2, INT16: 4}

BLOCK_MOVES = (
    MovementSpecification(
        "SPACE_TO_DEPTH", _SQUARE_TYPES, _SQUARE, _to_depth, fit=_fit_space, versions={INT8: 2}
    ),
    MovementSpecification(
        "DEPTH_TO_SPACE", _SQUARE_TYPES, _SQUARE, _to_space, fit=_fit_depth, versions={INT8: 2}
    ),
    MovementSpecification(
        "SPACE_TO_BATCH_ND",
        ALL,
        _BLOCKS,
        _to_batches,
        fit=_fit_blocks,
        versions=_VERSIONS,
        least_version=_version,
    ),
    MovementSpecification(
        "BATCH_TO_SPACE_ND",
        ALL,
        _BLOCKS,
        _from_batches,
        fit=_fit_crops,
        versions=_VERSIONS,
        least_version=_version,
    ),
)
