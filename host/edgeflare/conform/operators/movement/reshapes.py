"""Operators that change the shape or the order of dimensions, or tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import SHARED_NAME
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    axis_within,
    fit_axis,
    same_size,
)
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
    Place,
    ShapeOf,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    Setting,
    Settings,
    Whole,
    dimensions,
    whole,
    word,
)
from edgeflare.conform.specification.whole_numbers import NewShape, Order, WholeNumbers

BUT_BOOL = (FLOAT, INT8, UINT8, INT16, INT32, INT64)
ALL = (*BUT_BOOL, BOOL)


class _NewShapeOf(ConstantOf):
    """The new shape of a tensor, in an operand or in an option."""

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        if 1 in parts.tensors:
            return super().read(parts)
        return OptionOf(self.parameter, "newShape").read(parts)


class _NewShapeIn(Place):
    """Where the new shape is; declared after it."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        shape = tuple(int(number) for number in parts.constant(1))
        if setting == "option":
            del parts.tensors[1]
            parts.options["newShape"] = shape

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return "operand" if 1 in parts.tensors else "option"


def _fit_new_shape(settings: Settings, changed: str) -> Settings:
    shape, new = dimensions(settings, "shape"), dimensions(settings, "new_shape")
    if changed == "new_shape" and -1 not in new:
        settings["shape"] = same_size(shape, new)
    else:
        settings["new_shape"] = same_size(new, shape)
    return settings


def _factored(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return the settings with another shape that has as many values."""
    size, new = prod(dimensions(settings, "shape")), []
    for _ in range(len(dimensions(settings, "new_shape"))):
        divisors = [divisor for divisor in range(1, size + 1) if size % divisor == 0] or [1]
        new.append(divisors[int(rng.integers(len(divisors)))])
        size //= new[-1]
    if new and rng.random() < 1 / 3:
        new[int(rng.integers(len(new)))] = -1
    return {**settings, "new_shape": tuple(map(int, rng.permutation(new)))}


def _name_variable(_: Configuration, parts: ModelParts, __: np.random.Generator) -> None:
    parts.options[SHARED_NAME] = "variable"


def _means_scalar(_: str, settings: Configuration) -> str | None:
    if settings["new_shape_in"] == "option" and settings["new_shape"] == (0,):
        return "an option of (0,) means a scalar"
    return None


def _fit_order(settings: Settings, changed: str) -> Settings:
    rank, order = len(dimensions(settings, "shape")), dimensions(settings, "perm")
    if changed == "perm":
        shape = dimensions(settings, "shape")
        settings["shape"] = (1,) * (len(order) - rank) + shape[max(0, rank - len(order)) :]
    else:
        # Dimensions that are new stay behind the others, where they are.
        kept = [axis for axis in order if axis < rank]
        settings["perm"] = (*kept, *(axis for axis in range(rank) if axis not in kept))
    return settings


def _fit_squeezed(settings: Settings, changed: str) -> Settings:
    shape, axes = dimensions(settings, "shape"), dimensions(settings, "axes")
    if not shape:
        return {**settings, "axes": ()}
    within = [axis_within(axis, len(shape)) for axis in axes]
    once = {axis % len(shape): axis for axis in within[::-1]}
    if changed == "shape":
        kept = [axis for axis in within if shape[axis] == 1 and once[axis % len(shape)] == axis]
        return {**settings, "axes": tuple(dict.fromkeys(kept))}
    fitting = (1 if at in once else size for at, size in enumerate(shape))
    kept = [axis for axis in dict.fromkeys(within) if once[axis % len(shape)] == axis]
    return {**settings, "axes": tuple(kept), "shape": tuple(fitting)}


def _few_axes(settings: Settings, rng: np.random.Generator) -> Settings:
    axes = dimensions(settings, "axes")
    return {**settings, "axes": axes[: int(rng.integers(3))]}


_SHAPE = ShapeOf(Dimensions("shape", (1, 5)))
_ANY_SHAPE = ShapeOf(Dimensions("shape"))


_TRANSPOSE_VERSIONS: Mapping[str, int] = {INT8: 2, BOOL: 3, INT16: 5}

RESHAPES = (
    MovementSpecification(
        "RESHAPE",
        ALL,
        (
            _ANY_SHAPE,
            _NewShapeOf(NewShape("new_shape")),
            _NewShapeIn(Choice("new_shape_in", ("operand", "option"))),
        ),
        lambda settings, raw: [raw[0].reshape(dimensions(settings, "new_shape"))],
        fit=_fit_new_shape,
        varied=_factored,
        refused=_means_scalar,
    ),
    MovementSpecification(
        "TRANSPOSE",
        ALL,
        (_SHAPE, ConstantOf(Order("perm"))),
        lambda settings, raw: [raw[0].transpose(dimensions(settings, "perm"))],
        fit=_fit_order,
        versions=_TRANSPOSE_VERSIONS,
        least_version=lambda settings: 4 if len(dimensions(settings, "shape")) > 4 else 1,
    ),
    MovementSpecification(
        "EXPAND_DIMS",
        ALL,
        (
            ShapeOf(Dimensions("shape", (0, 4))),
            ConstantOf(Whole("axis", -5, 4, simplest=0)),
            IndexTypeOf(1),
        ),
        lambda settings, raw: [np.expand_dims(raw[0], whole(settings, "axis"))],
        fit=fit_axis(beyond=1),
    ),
    MovementSpecification(
        "SQUEEZE",
        ALL,
        (_ANY_SHAPE, OptionOf(WholeNumbers("axes", -5, 4, counts=(0, 5)), "squeezeDims")),
        lambda settings, raw: [np.squeeze(raw[0], dimensions(settings, "axes") or None)],
        fit=_fit_squeezed,
        varied=_few_axes,
    ),
    MovementSpecification(
        "SHAPE",
        ALL,
        (_SHAPE, OptionOf(Choice("result_type", ("INT32", "INT64")), "outType")),
        lambda settings, raw: [np.array(raw[0].shape, word(settings, "result_type").lower())],
    ),
    MovementSpecification(
        "RANK", ALL, (_ANY_SHAPE,), lambda _, raw: [np.array(raw[0].ndim, np.int32)]
    ),
    # It is assigned what it reads first, and shares its variable with others of its graph; a
    # result without dimensions would be dynamic.
    MovementSpecification(
        "READ_VARIABLE",
        ALL,
        (_SHAPE,),
        lambda _, raw: [raw[0]],
        complete=_name_variable,
    ),
    MovementSpecification(
        "ZEROS_LIKE", (FLOAT, INT32, INT64), (_ANY_SHAPE,), lambda _, raw: [np.zeros_like(raw[0])]
    ),
)
