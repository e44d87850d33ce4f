"""Operators that enlarge a tensor: that pad it, or repeat its values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    as_many,
)
from edgeflare.conform.operators.movement.reshapes import ALL
from edgeflare.conform.specification.activation_tensors import BOOL, INT8, INT16, operand_values
from edgeflare.conform.specification.model_parts import (
    ColumnOf,
    ConstantOf,
    IndexTypeOf,
    ModelParts,
    OptionOf,
    ShapeOf,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    Settings,
    dimensions,
    word,
)
from edgeflare.conform.specification.whole_numbers import WholeNumbers

_PADDINGS = ("before", "after")


def _fit_paddings(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return settings | {name: as_many(dimensions(settings, name), rank, 0) for name in _PADDINGS}


def _fit_mirrored(settings: Settings, changed: str) -> Settings:
    settings = _fit_paddings(settings, changed)
    edge = 1 if word(settings, "mode") == "REFLECT" else 0
    most = [max(size - edge, 0) for size in dimensions(settings, "shape")]
    for name in _PADDINGS:
        padded = zip(dimensions(settings, name), most, strict=True)
        settings[name] = tuple(min(pair) for pair in padded)
    return settings


def _paddings(settings: Configuration) -> list[tuple[int, int]]:
    return list(zip(*(dimensions(settings, name) for name in _PADDINGS), strict=True))


def _padded(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    # Raw values that stand for 0.
    zero = settings.get("input_zero_point", 0)
    return [np.pad(raw[0], _paddings(settings), constant_values=np.array(zero, raw[0].dtype))]


def _padded_with(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    return [np.pad(raw[0], _paddings(settings), constant_values=raw[2].reshape(-1)[0])]


def _draw_value(_: Configuration, parts: ModelParts, rng: np.random.Generator) -> None:
    parts.tensors[2] = parts.data.constant(operand_values(parts.data, "uniform", rng))


def _mirrored(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    mode = "reflect" if word(settings, "mode") == "REFLECT" else "symmetric"
    if not raw[0].size:
        return [np.pad(raw[0], _paddings(settings))]
    return [np.pad(raw[0], _paddings(settings), mode=mode)]  # type: ignore[call-overload]


def _nothing_to_reflect(_: str, settings: Configuration) -> str | None:
    if word(settings, "mode") == "REFLECT" and 0 in dimensions(settings, "shape"):
        return "a dimension of size 0 has nothing to reflect"
    return None


def _pad_version(settings: Configuration) -> int:
    return 4 if len(dimensions(settings, "shape")) > 4 else 1


_PLACES = (
    ShapeOf(Dimensions("shape", (1, 5), most_values=200)),
    *(
        ColumnOf(WholeNumbers(name, 0, 4, counts=(1, 5), kind="shape"), column)
        for column, name in enumerate(_PADDINGS)
    ),
    IndexTypeOf(1),
)
_VERSIONS = {INT8: 2, INT16: 3}

PADS = (
    MovementSpecification(
        "PAD",
        ALL,
        _PLACES,
        _padded,
        fit=_fit_paddings,
        versions=_VERSIONS,
        least_version=_pad_version,
    ),
    MovementSpecification(
        "PADV2",
        ALL,
        _PLACES,
        _padded_with,
        fit=_fit_paddings,
        versions=_VERSIONS,
        least_version=_pad_version,
        complete=_draw_value,
    ),
    MovementSpecification(
        "MIRROR_PAD",
        ALL,
        (*_PLACES, OptionOf(Choice("mode", ("REFLECT", "SYMMETRIC")), "mode")),
        _mirrored,
        fit=_fit_mirrored,
        versions=_VERSIONS,
        refused=_nothing_to_reflect,
    ),
)


def _fit_multiples(settings: Settings, _: str) -> Settings:
    rank = len(dimensions(settings, "shape"))
    return {**settings, "multiples": as_many(dimensions(settings, "multiples"), rank, 1)}


def _fit_broadcast(settings: Settings, changed: str) -> Settings:
    shape, new = dimensions(settings, "shape"), dimensions(settings, "new_shape")
    if changed == "new_shape":
        kept = shape[max(0, len(shape) - len(new)) :]
        ends = new[len(new) - len(kept) :]
        fitting = (size if size in {1, end} else 1 for size, end in zip(kept, ends, strict=True))
        return {**settings, "shape": tuple(fitting)}
    new = as_many(new, max(len(shape), len(new)), 1)
    front = len(new) - len(shape)
    spread = tuple(end if size == 1 else size for size, end in zip(shape, new[front:], strict=True))
    return {**settings, "new_shape": (*new[:front], *spread)}


def _narrowed(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return the settings with a shape that spreads over the new one along some dimensions."""
    new = dimensions(settings, "new_shape")
    kept = new[int(rng.integers(len(new))) if rng.random() < 1 / 3 else 0 :]
    return {**settings, "shape": tuple(1 if rng.random() < 1 / 2 else size for size in kept)}


def _add_scalar(_settings: Configuration, parts: ModelParts, _rng: np.random.Generator) -> None:
    parts.tensors[1] = parts.data


REPEATS = (
    MovementSpecification(
        "TILE",
        ALL,
        (
            ShapeOf(Dimensions("shape", (1, 5), most_values=200)),
            ConstantOf(WholeNumbers("multiples", 1, 4, usual=1, counts=(1, 5))),
            IndexTypeOf(1),
        ),
        lambda settings, raw: [np.tile(raw[0], dimensions(settings, "multiples"))],
        fit=_fit_multiples,
        versions={INT8: 3},
    ),
    MovementSpecification(
        "BROADCAST_TO",
        ALL,
        (
            ShapeOf(Dimensions("shape", (1, 5), most_values=200)),
            ConstantOf(Dimensions("new_shape", (1, 5))),
            IndexTypeOf(1),
        ),
        lambda settings, raw: [np.broadcast_to(raw[0], dimensions(settings, "new_shape"))],
        fit=_fit_broadcast,
        versions={INT8: 3, INT16: 3},
        least_version=lambda _: 2,
        varied=_narrowed,
    ),
    MovementSpecification(
        "FILL",
        ALL,
        (
            ConstantOf(Dimensions("new_shape"), 0),
            IndexTypeOf(0),
        ),
        lambda settings, raw: [np.broadcast_to(raw[1], dimensions(settings, "new_shape"))],
        versions={INT8: 3, INT16: 3, BOOL: 2},
        data=1,
        complete=_add_scalar,
    ),
)
