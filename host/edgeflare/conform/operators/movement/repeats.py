"""Operators that repeat values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.movement.model_parts import (
    ConstantOf,
    IndexTypeOf,
    ModelParts,
    ShapeOf,
)
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    Settings,
    as_many,
)
from edgeflare.conform.operators.movement.reshapes import ALL
from edgeflare.conform.specification.parameter import Choice, Configuration, Dimensions, dimensions
from edgeflare.conform.specification.whole_numbers import WholeNumbers


def _fit_multiples(settings: Settings, changed: str) -> Settings:
    del changed
    rank = len(dimensions(settings, "shape"))
    return {**settings, "multiples": as_many(dimensions(settings, "multiples"), rank, 1)}


def _tiled(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    return [np.tile(raw[0], dimensions(settings, "multiples"))]


def _fit_broadcast(settings: Settings, changed: str) -> Settings:
    shape, new = dimensions(settings, "shape"), dimensions(settings, "new_shape")
    if changed == "new_shape":
        kept = shape[max(0, len(shape) - len(new)) :]
        ends = new[len(new) - len(kept) :]
        fitting = (one if one in {1, end} else 1 for one, end in zip(kept, ends, strict=True))
        return {**settings, "shape": tuple(fitting)}
    new = as_many(new, max(len(shape), len(new)), 1)
    front = len(new) - len(shape)
    spread = tuple(end if one == 1 else one for one, end in zip(shape, new[front:], strict=True))
    return {**settings, "new_shape": (*new[:front], *spread)}


def _narrowed(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return the settings with a shape that spreads over the new one along some dimensions."""
    new = dimensions(settings, "new_shape")
    kept = new[int(rng.integers(len(new))) if rng.random() < 1 / 3 else 0 :]
    return {**settings, "shape": tuple(1 if rng.random() < 1 / 2 else one for one in kept)}


def _broadcast(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    return [np.broadcast_to(raw[0], dimensions(settings, "new_shape"))]


def _add_scalar(settings: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    del settings, rng
    parts.tensors[1] = parts.data


def _filled(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    return [np.broadcast_to(raw[1], dimensions(settings, "new_shape"))]


_INDEX_TYPE = IndexTypeOf(Choice("index_type", ("int32", "int64")), 1)

REPEATS = (
    MovementSpecification(
        "TILE",
        ALL,
        (
            ShapeOf(Dimensions("shape", (1, 5), most_values=200)),
            ConstantOf(WholeNumbers("multiples", 1, 4, usual=1, counts=(1, 5))),
            _INDEX_TYPE,
        ),
        _tiled,
        _fit_multiples,
        {"int8": 3},
    ),
    MovementSpecification(
        "BROADCAST_TO",
        ALL,
        (
            ShapeOf(Dimensions("shape", (1, 5), most_values=200)),
            ConstantOf(Dimensions("new_shape", (1, 5))),
            _INDEX_TYPE,
        ),
        _broadcast,
        _fit_broadcast,
        {"int8": 3, "int16": 3},
        lambda _: 2,
        varied=_narrowed,
    ),
    MovementSpecification(
        "FILL",
        ALL,
        (
            ConstantOf(Dimensions("new_shape"), 0),
            IndexTypeOf(Choice("index_type", ("int32", "int64")), 0),
        ),
        _filled,
        versions={"int8": 3, "int16": 3, "bool": 2},
        data=1,
        complete=_add_scalar,
    ),
)
