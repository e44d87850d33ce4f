"""Operators that cut a part out of a tensor, or put one in its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    as_many,
)
from edgeflare.conform.operators.movement.reshapes import ALL
from edgeflare.conform.specification.activation_tensors import BOOL, INT8, INT16
from edgeflare.conform.specification.model_parts import ConstantOf, IndexTypeOf, OptionOf, ShapeOf
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    Settings,
    Whole,
    dimensions,
    whole,
    yes,
)
from edgeflare.conform.specification.whole_numbers import WholeNumbers

_ALL_OF_IT = -1
_NUMBERS = {"begin": 0, "end": 0, "strides": 1}
_MASKS = {
    "begin_mask": "beginMask",
    "end_mask": "endMask",
    "shrink_axis_mask": "shrinkAxisMask",
}
"""Masks and their options; bit 0 stands for the first dimension."""


def _fit_slice(settings: Settings, _: str) -> Settings:
    shape = dimensions(settings, "shape")
    begins = as_many(dimensions(settings, "begin"), len(shape), 0)
    sizes = as_many(dimensions(settings, "size"), len(shape), _ALL_OF_IT)
    begins = tuple(
        begin if begin <= size else begin % (size + 1)
        for begin, size in zip(begins, shape, strict=True)
    )
    left = [size - begin for size, begin in zip(shape, begins, strict=True)]
    sizes = tuple(min(size, most) for size, most in zip(sizes, left, strict=True))
    return {**settings, "begin": begins, "size": sizes}


def _some_left(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return the settings with a part that has values, mostly."""
    shape = dimensions(settings, "shape")
    sizes = as_many(dimensions(settings, "size"), len(shape), _ALL_OF_IT)
    begins = as_many(dimensions(settings, "begin"), len(shape), 0)
    if rng.random() < 1 / 24:
        return settings
    return {
        **settings,
        "begin": tuple(begin % max(size, 1) for begin, size in zip(begins, shape, strict=True)),
        "size": tuple(number or _ALL_OF_IT for number in sizes),
    }


def _sliced(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    parts = zip(dimensions(settings, "begin"), dimensions(settings, "size"), strict=True)
    return [raw[0][tuple(slice(at, None if n == _ALL_OF_IT else at + n) for at, n in parts)]]


def _bits(mask: int) -> set[int]:
    return {at for at in range(mask.bit_length()) if mask >> at & 1}


def _fit_strides(settings: Settings, changed: str) -> Settings:
    shape = dimensions(settings, "shape")
    longest = changed if changed in _NUMBERS else "begin"
    count = max(1, min(len(dimensions(settings, longest)), len(shape)))
    for name, usual in _NUMBERS.items():
        settings[name] = as_many(dimensions(settings, name), count, usual)
    settings["strides"] = tuple(stride or 1 for stride in dimensions(settings, "strides"))
    for name in _MASKS:
        settings[name] = whole(settings, name) % (1 << count)
    return _fit_single(_fit_offset(settings) if yes(settings, "offset") else settings)


def _fit_offset(settings: Settings) -> Settings:
    """Return the settings with ends that count from the beginnings, and lie within the shape."""
    shape = dimensions(settings, "shape")
    begin = tuple(
        dimension if 0 <= dimension <= size else dimension % (size + 1)
        for dimension, size in zip(dimensions(settings, "begin"), shape, strict=False)
    )
    left = [size - start for start, size in zip(begin, shape, strict=False)]
    end = tuple(
        min(max(dimension, 0), most)
        for dimension, most in zip(dimensions(settings, "end"), left, strict=True)
    )
    strides = tuple(abs(stride) for stride in dimensions(settings, "strides"))
    fitting = {**settings, "begin": begin, "end": end, "strides": strides}
    return {**fitting, "begin_mask": 0, "end_mask": 0}


def _fit_single(settings: Settings) -> Settings:
    """Return the settings with single indices within the shape, as converters write them."""
    shape, single = dimensions(settings, "shape"), whole(settings, "shrink_axis_mask")
    begin, end = list(dimensions(settings, "begin")), list(dimensions(settings, "end"))
    strides = list(dimensions(settings, "strides"))
    for at, size in enumerate(shape[: len(begin)]):
        if single >> at & 1:
            begin[at] = begin[at] if -size <= begin[at] < size else begin[at] % max(size, 1)
            end[at] = 1 if yes(settings, "offset") else begin[at] + 1
            strides[at] = 1
    settings |= {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides)}
    return {**settings, "begin_mask": whole(settings, "begin_mask") & ~single}


def _mostly_filled(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return the settings with ends behind the beginnings, mostly, and few single indices."""
    shape = dimensions(settings, "shape")
    numbers = [dimensions(settings, name) for name in _NUMBERS]
    begin, end, strides = (as_many(number, len(shape), 1) for number in numbers)
    # Ends that count from the beginnings are newer than most models.
    offset = yes(settings, "offset") and rng.random() < 1 / 3
    if offset:
        strides = tuple(abs(stride) for stride in strides)
    if offset or rng.random() < 7 / 8:
        spans = [_span(*axis, rng) for axis in zip(shape, strides, strict=True)]
        begin, end = (tuple(span[at] for span in spans) for at in (0, 1))
    if offset:
        end = tuple(last - first for first, last in zip(begin, end, strict=True))
    elif rng.random() < 1 / 3:
        # Counted from the end.
        counted = zip(begin, shape, strict=True)
        begin = tuple(place - size if 0 <= place < size else place for place, size in counted)
    mask = whole(settings, "shrink_axis_mask") if rng.random() < 1 / 3 else 0
    drawn = {"begin": begin, "end": end, "strides": strides}
    return {**settings, **drawn, "offset": offset, "shrink_axis_mask": mask}


def _span(size: int, stride: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return the beginning and the end of some indices, often of all."""
    low = int(rng.integers(max(size, 1))) if rng.random() < 1 / 2 else 0
    high = int(rng.integers(low + 1, size + 2)) if rng.random() < 1 / 2 else size
    if stride >= 0:
        return low, high
    # Backwards the end is before the first, which only a number below all others says.
    return high - 1, low - 1 if low else -size - 1


def _strided(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    masks = [whole(settings, name) for name in _MASKS]
    numbers = (dimensions(settings, name) for name in _NUMBERS)
    index: list[int | slice] = []
    for at, (begin, end, stride) in enumerate(zip(*numbers, strict=True)):
        no_begin, no_end, single = (bool(mask >> at & 1) for mask in masks)
        if single:
            index.append(begin)
            continue
        last = begin + end if settings["offset"] else end
        index.append(slice(None if no_begin else begin, None if no_end else last, stride))
    return [raw[0][tuple(index)]]


def _no_single(_: str, settings: Configuration) -> str | None:
    empty = [at for at, size in enumerate(dimensions(settings, "shape")) if not size]
    if any(whole(settings, "shrink_axis_mask") >> at & 1 for at in empty):
        return "a dimension of size 0 has no single index"
    return None


def _fit_update(settings: Settings, changed: str) -> Settings:
    shape = dimensions(settings, "shape")
    update = as_many(dimensions(settings, "update_shape"), len(shape), 1)
    if changed == "update_shape":
        shape = as_many(shape, len(dimensions(settings, "update_shape")), 1)
        update = dimensions(settings, "update_shape")
        shape = tuple(max(pair) for pair in zip(shape, update, strict=True))
    update = tuple(min(pair) for pair in zip(update, shape, strict=True))
    begin = as_many(dimensions(settings, "begin"), len(shape), 0)
    return {**settings, "shape": shape, "update_shape": update, "begin": begin}


def _updated(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    updated = raw[0].copy()
    # A part that would reach beyond the tensor is moved back into it.
    begins = (
        min(max(begin, 0), whole_ - part)
        for begin, whole_, part in zip(
            dimensions(settings, "begin"), raw[0].shape, raw[1].shape, strict=True
        )
    )
    place = tuple(slice(at, at + n) for at, n in zip(begins, raw[1].shape, strict=True))
    updated[place] = raw[1]
    return [updated]


def _stride_version(settings: Configuration) -> int:
    if settings["offset"]:
        return 8
    return 4 if len(dimensions(settings, "shape")) > 4 else 1


_SHAPE = ShapeOf(Dimensions("shape", (1, 5)))

CUTS = (
    MovementSpecification(
        "SLICE",
        ALL,
        (
            _SHAPE,
            ConstantOf(WholeNumbers("begin", 0, 7, counts=(1, 5))),
            ConstantOf(WholeNumbers("size", -1, 9, usual=_ALL_OF_IT, counts=(1, 5)), 2),
            IndexTypeOf(1, 2),
        ),
        _sliced,
        fit=_fit_slice,
        versions={INT8: 2, INT16: 4},
        least_version=lambda settings: 5 if len(dimensions(settings, "shape")) > 4 else 1,
        varied=_some_left,
    ),
    MovementSpecification(
        "STRIDED_SLICE",
        ALL,
        (
            _SHAPE,
            ConstantOf(WholeNumbers("begin", -9, 9, counts=(1, 5))),
            ConstantOf(WholeNumbers("end", -9, 9, usual=9, counts=(1, 5)), 2),
            ConstantOf(WholeNumbers("strides", -3, 4, usual=1, counts=(1, 5)), 3),
            *(OptionOf(Whole(name, 0, 31, kind="mode"), option) for name, option in _MASKS.items()),
            OptionOf(Choice("offset", (False, True)), "offset"),
        ),
        _strided,
        fit=_fit_strides,
        versions={INT8: 2, BOOL: 3},
        least_version=_stride_version,
        # Converters mostly write what an ellipsis and new axes come to.
        fixed={"ellipsisMask": 0, "newAxisMask": 0},
        varied=_mostly_filled,
        refused=_no_single,
    ),
    MovementSpecification(
        "DYNAMIC_UPDATE_SLICE",
        ALL,
        (
            _SHAPE,
            ShapeOf(Dimensions("update_shape", (1, 5)), 1),
            ConstantOf(WholeNumbers("begin", -2, 9, counts=(1, 5)), 2),
            IndexTypeOf(2),
        ),
        _updated,
        fit=_fit_update,
    ),
)
