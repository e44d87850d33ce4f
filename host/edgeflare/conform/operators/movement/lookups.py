"""Operators that gather and scatter values by indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import Quantization, Values
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    axis_within,
)
from edgeflare.conform.operators.movement.reshapes import ALL, BUT_BOOL
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    DYNAMIC,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Operands,
    Options,
    Results,
    operand_values,
    single_quantization,
)
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswers, reals
from edgeflare.conform.specification.model_parts import (
    ConstantOf,
    IndexTypeOf,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    ShapeOf,
    whole_constant,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    ScaleParameter,
    Setting,
    Settings,
    Whole,
    dimensions,
    whole,
    word,
)
from edgeflare.conform.specification.whole_numbers import WholeNumbers


class _EmbeddingLookup(MovementSpecification):
    """The lookup of rows; of dynamic range, rows of 8 bits are answered as floats."""

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        return (*self.places, _TABLE_SCALE) if type_ == DYNAMIC else super().places_of(type_)

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        type_ = super().read_type(parts)
        return DYNAMIC if type_ == INT8 and parts.results[0].dtype == FLOAT else type_

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the rows."""
        (rows,) = super().results(type_, configuration, parts)
        return [replace(rows, dtype=FLOAT) if type_ == DYNAMIC else rows]

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answers."""
        indices, table = operands
        if (
            indices is None
            or table is None
            or (table.value.dtype, results[0].dtype) != (INT8, FLOAT)
        ):
            return super().exact(options, operands, results)
        rows = table.real[indices.raw]
        return (reals(rows, EPSILON * np.abs(rows)),)


class _TableScale(Place):
    """The scale of a table of eight bits, whose zero point is 0; declared after the table."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        scale = Quantization((float(str(setting)),))
        parts.tensors[1] = replace(parts.tensors[1], dtype=INT8, quantization=scale)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return single_quantization(parts.tensors[1])[0]


_TABLE_SCALE = _TableScale(ScaleParameter("input_scale"))


def _fit_gathered(settings: Settings, changed: str) -> Settings:
    shape, indices = dimensions(settings, "shape"), dimensions(settings, "indices_shape")
    axis = axis_within(whole(settings, "axis"), len(shape))
    batches = min(whole(settings, "batch_dims"), axis % len(shape), len(indices))
    if changed == "indices_shape":
        shape = indices[:batches] + shape[batches:]
    indices = shape[:batches] + indices[batches:]
    return {
        **settings,
        "shape": shape,
        "indices_shape": indices,
        "axis": axis,
        "batch_dims": batches,
    }


def _nothing_to_gather(_: str, settings: Configuration) -> str | None:
    if prod(dimensions(settings, "indices_shape")) and not _along(settings):
        return "an axis of size 0 has no indices"
    return None


def _along(settings: Configuration) -> int:
    return dimensions(settings, "shape")[whole(settings, "axis")]


def _draw_gathered(settings: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    if word(settings, "indices") == "constant":
        shape, dtype = dimensions(settings, "indices_shape"), word(settings, "index_type")
        drawn = rng.integers(0, max(_along(settings), 1), shape, dtype)
        parts.tensors[1] = whole_constant(np.asarray(drawn))


def _gathered(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    values, indices = raw
    batches = whole(settings, "batch_dims")
    axis = whole(settings, "axis") % values.ndim
    shape = values.shape[:axis] + indices.shape[batches:] + values.shape[axis + 1 :]
    gathered = np.zeros(shape, values.dtype)
    if gathered.size:
        for at in np.ndindex(values.shape[:batches]):
            gathered[at] = np.take(values[at], indices[at], axis - batches)
    return [gathered]


def _fit_depth(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "index_depth": min(whole(settings, "index_depth"), rank)}


def _shallow(settings: Settings, rng: np.random.Generator) -> Settings:
    depth = whole(settings, "index_depth")
    return {**settings, "index_depth": 1 if rng.random() < 1 / 2 else depth}


def _draw_deep(settings: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    sizes = dimensions(settings, "shape")[: whole(settings, "index_depth")]
    shape = (*dimensions(settings, "indices_shape"), len(sizes))
    drawn = rng.integers(0, np.maximum(sizes, 1), shape, word(settings, "index_type"))
    parts.tensors[1] = whole_constant(drawn)


def _no_deep(_: str, settings: Configuration) -> str | None:
    if prod(dimensions(settings, "indices_shape")) and 0 in dimensions(settings, "shape"):
        return "a tensor without values has none to pick"
    return None


def _fit_scattered(settings: Settings, _: str) -> Settings:
    shape, lead = dimensions(settings, "shape"), dimensions(settings, "lead")
    outer = min(whole(settings, "outer"), len(shape))
    # Each index is there once: what several updates of one place come to is not said.
    if (count := prod(shape[:outer])) > prod(lead):
        rest = prod(lead[1:])
        lead = (-(-count // max(rest, 1)), *(max(size, 1) for size in lead[1:]))
    return {**settings, "outer": outer, "lead": lead}


def _draw_scattered(settings: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    shape, lead = dimensions(settings, "shape"), dimensions(settings, "lead")
    outer = shape[: whole(settings, "outer")]
    places = rng.permutation(prod(lead))[: prod(outer)]
    indices = np.stack(np.unravel_index(places, lead), -1) if prod(lead) else np.zeros(0)
    parts.tensors[0] = whole_constant(indices.reshape(*outer, len(lead)).astype(np.int32))
    parts.tensors[2] = whole_constant(np.array((*lead, *shape[len(outer) :]), np.int32))


def _scattered(_: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    indices, updates, shape = raw
    scattered = np.zeros(tuple(shape), updates.dtype)
    scattered[tuple(np.moveaxis(indices, -1, 0))] = updates
    # The kernel adds to 0, which makes a negative 0 a positive one.
    return [scattered if updates.dtype == bool else scattered + np.zeros((), updates.dtype)]


def _lead_of(parts: ModelParts) -> Setting:
    depth = parts.constant(0).shape[-1]
    return tuple(int(size) for size in parts.constant(2)[:depth])


def _fit_one_hot(settings: Settings, _: str) -> Settings:
    rank, axis = len(dimensions(settings, "shape")), whole(settings, "axis")
    return {**settings, "axis": axis if -1 <= axis <= rank else rank}


def _draw_on_and_off(_: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    for at in (2, 3):
        parts.tensors[at] = parts.data.constant(operand_values(parts.data, "uniform", rng))


def _one_hot(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    indices, depth, on, off = raw
    axis = whole(settings, "axis") % (indices.ndim + 1)
    counted = np.arange(int(depth.reshape(-1)[0])).reshape(-1, *[1] * (indices.ndim - axis))
    return [np.where(np.expand_dims(indices, axis) == counted, on, off)]


def _draw_table(_: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    table = parts.tensors[1]
    parts.tensors[1] = table.constant(operand_values(table, "uniform", rng))


def _no_rows(_: str, settings: Configuration) -> str | None:
    return "a constant has values" if 0 in dimensions(settings, "shape") else None


_SHAPE = ShapeOf(Dimensions("shape", (1, 5), most_values=300))
_AXIS = Whole("axis", -5, 5, simplest=0, kind="mode")
_ANY_INDEX_TYPE = ("int32", "int64", "int16")

LOOKUPS = (
    MovementSpecification(
        "GATHER",
        ALL,
        (
            _SHAPE,
            ShapeOf(Dimensions("indices_shape", (0, 3), most_values=40), 1, "int32"),
            OptionOf(_AXIS, "axis"),
            OptionOf(Whole("batch_dims", 0, 3, kind="mode"), "batchDims"),
            IndexTypeOf(1, types=_ANY_INDEX_TYPE),
            ReadFrom(
                Choice("indices", ("constant", "given")),
                lambda parts: "given" if parts.tensors[1].values is None else "constant",
            ),
        ),
        _gathered,
        fit=_fit_gathered,
        versions={INT8: 2, BOOL: 3, INT16: 4},
        least_version=lambda settings: (
            6 if settings["index_type"] == "int16" else 5 if settings["batch_dims"] else 1
        ),
        complete=_draw_gathered,
        refused=_nothing_to_gather,
        limits=lambda settings: {1: (0, max(_along(settings) - 1, 0))},
    ),
    MovementSpecification(
        "GATHER_ND",
        ALL,
        (
            _SHAPE,
            ReadFrom(
                Dimensions("indices_shape", (0, 3), most_values=40),
                lambda parts: parts.constant(1).shape[:-1],
            ),
            ReadFrom(Whole("index_depth", 1, 5), lambda parts: parts.constant(1).shape[-1]),
            IndexTypeOf(1, types=_ANY_INDEX_TYPE),
        ),
        lambda _, raw: [raw[0][tuple(np.moveaxis(raw[1], -1, 0))]],
        fit=_fit_depth,
        versions={INT16: 3, BOOL: 5},
        least_version=lambda settings: 4 if settings["index_type"] == "int16" else 1,
        varied=_shallow,
        complete=_draw_deep,
        refused=_no_deep,
    ),
    MovementSpecification(
        "SCATTER_ND",
        (FLOAT, INT32, INT64, BOOL),
        (
            ShapeOf(Dimensions("shape", (1, 4), most_values=300), 1),
            ReadFrom(Whole("outer", 0, 3), lambda parts: parts.constant(0).ndim - 1),
            ReadFrom(WholeNumbers("lead", 1, 9, usual=1, counts=(1, 3), kind="shape"), _lead_of),
        ),
        _scattered,
        fit=_fit_scattered,
        data=1,
        complete=_draw_scattered,
    ),
    MovementSpecification(
        "ONE_HOT",
        (FLOAT, INT8, UINT8, INT32, INT64, BOOL),
        (
            ShapeOf(Dimensions("shape", (0, 4), most_values=60), 0, "int32"),
            ConstantOf(Whole("depth", 1, 33, limit=10**6)),
            OptionOf(Whole("axis", -1, 4, kind="mode"), "axis"),
            IndexTypeOf(0),
        ),
        _one_hot,
        fit=_fit_one_hot,
        data=2,
        complete=_draw_on_and_off,
        limits=lambda settings: {0: (-1, whole(settings, "depth"))},
        takes_any=True,
    ),
    _EmbeddingLookup(
        "EMBEDDING_LOOKUP",
        (*BUT_BOOL, DYNAMIC),
        (
            ShapeOf(Dimensions("indices_shape", (1, 1), most_values=40), 0, "int32"),
            ShapeOf(Dimensions("shape", (2, 4), most_values=300), 1),
        ),
        lambda _, raw: [raw[1][raw[0]]],
        data=1,
        complete=_draw_table,
        refused=_no_rows,
        limits=lambda settings: {0: (0, dimensions(settings, "shape")[0] - 1)},
    ),
)
