"""Operators that reverse values along an axis, and that write diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    axis_within,
)
from edgeflare.conform.operators.movement.reshapes import ALL, BUT_BOOL
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
)
from edgeflare.conform.specification.model_parts import (
    ConstantOf,
    IndexTypeOf,
    ModelParts,
    OptionOf,
    ShapeOf,
    whole_constant,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Dimensions,
    Settings,
    Whole,
    dimensions,
    whole,
)
from edgeflare.conform.specification.whole_numbers import WholeNumbers


def _fit_axes(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    within = [axis_within(axis, rank) for axis in dimensions(settings, "axes")]
    once = {axis % rank: axis for axis in within[::-1]}
    kept = tuple(dict.fromkeys(axis for axis in within if once[axis % rank] == axis))
    # Kernels take only axes that lie side by side.
    joined = max(once) - min(once) == len(once) - 1
    return {**settings, "axes": kept if joined else kept[:1]}


def _fit_sequence(settings: Settings, changed: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    axis, batch = whole(settings, "axis") % rank, whole(settings, "batch_axis") % rank
    if axis == batch:
        if changed == "batch_axis":
            axis = (batch + 1) % rank
        else:
            batch = (axis + 1) % rank
    return {**settings, "axis": axis, "batch_axis": batch}


def _draw_lengths(settings: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    shape = dimensions(settings, "shape")
    most, count = shape[whole(settings, "axis")], shape[whole(settings, "batch_axis")]
    parts.tensors[1] = whole_constant(
        rng.integers(0, most, count, str(settings["index_type"]), endpoint=True)
    )


def _reversed_sequences(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    moved = np.moveaxis(
        raw[0].copy(), (whole(settings, "batch_axis"), whole(settings, "axis")), (0, 1)
    )
    for row, length in zip(moved, raw[1], strict=True):
        row[:length] = row[:length][::-1].copy()
    return [np.moveaxis(moved, (0, 1), (whole(settings, "batch_axis"), whole(settings, "axis")))]


def _diagonal(_: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    size = raw[0].shape[-1]
    return [np.where(np.eye(size, dtype=bool), raw[0][..., None], np.zeros((), raw[0].dtype))]


def _add_diagonal(settings: Configuration, parts: ModelParts, _: np.random.Generator) -> None:
    shape = dimensions(settings, "shape")
    parts.tensors[1] = replace(parts.data, shape=(*shape[:-2], min(shape[-2:])))


def _with_diagonal(_: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    written, along = raw[0].copy(), np.arange(raw[1].shape[-1])
    written[..., along, along] = raw[1]
    return [written]


REVERSALS = (
    MovementSpecification(
        "REVERSE_V2",
        ALL,
        (
            ShapeOf(Dimensions("shape", (1, 5))),
            ConstantOf(WholeNumbers("axes", -5, 4, counts=(1, 3))),
        ),
        lambda settings, raw: [np.flip(raw[0], dimensions(settings, "axes"))],
        fit=_fit_axes,
        versions={INT8: 3, BOOL: 2},
    ),
    MovementSpecification(
        "REVERSE_SEQUENCE",
        (FLOAT, UINT8, INT16, INT32, INT64),
        (
            ShapeOf(Dimensions("shape", (2, 5))),
            OptionOf(Whole("axis", 0, 4, kind="mode"), "seqDim"),
            OptionOf(Whole("batch_axis", 0, 4, kind="mode"), "batchDim"),
            IndexTypeOf(1),
        ),
        _reversed_sequences,
        fit=_fit_sequence,
        complete=_draw_lengths,
    ),
    MovementSpecification(
        "MATRIX_DIAG", BUT_BOOL, (ShapeOf(Dimensions("shape", (1, 4), most_values=100)),), _diagonal
    ),
    MovementSpecification(
        "MATRIX_SET_DIAG",
        BUT_BOOL,
        (ShapeOf(Dimensions("shape", (2, 5))),),
        _with_diagonal,
        complete=_add_diagonal,
    ),
)
