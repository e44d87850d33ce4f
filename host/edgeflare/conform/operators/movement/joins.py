"""Operators that join tensors along an axis, and that split them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Values
from edgeflare.conform.operators.movement.movement_specification import (
    MovementSpecification,
    fit_axis,
)
from edgeflare.conform.operators.movement.reshapes import ALL, BUT_BOOL
from edgeflare.conform.specification.activation_tensors import (
    BOOL,
    FLOAT,
    INT8,
    INT16,
    INT32,
    UINT8,
    Operands,
    Options,
    Results,
    UnknownOperatorForm,
    activation,
    quantization_parameters,
    quantization_settings,
)
from edgeflare.conform.specification.exact_answer import ExactAnswers, steps
from edgeflare.conform.specification.model_parts import (
    RESULT,
    ConstantOf,
    CountOf,
    IndexTypeOf,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    ShapeOf,
    quantization_places,
)
from edgeflare.conform.specification.operator_specification import OperatorReading
from edgeflare.conform.specification.parameter import (
    Configuration,
    Dimensions,
    Setting,
    Settings,
    Whole,
    dimensions,
    number,
    whole,
)
from edgeflare.conform.specification.whole_numbers import WholeNumbers, whole_numbers

_OTHER, _OUTPUT = "other", "output"


class _Concatenation(MovementSpecification):
    """A concatenation; of uint8 all tensors but the first, and the result, have own scales.

    Models of older converters have these. For all other types the scales are equal.
    """

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        known = super().places_of(type_)
        if type_ != UINT8:
            return known
        others = (
            ReadFrom(parameter, partial(_read_others, parameter.name))
            for parameter in quantization_parameters(type_, _OTHER)
        )
        return (*known, *others, *quantization_places(type_, output=RESULT))

    def form(self, type_: str, configuration: Configuration, role: str) -> GraphValue:
        """Return a tensor with the dtype and the quantization of those of a role."""
        return super().form(type_, configuration, role if type_ == UINT8 else "input")

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the tensor that a valid configuration writes."""
        (joined,) = super().results(type_, configuration, parts)
        return [replace(self.form(type_, configuration, _OUTPUT), shape=joined.shape)]

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless tensors that share their scale have one."""
        (result,), (first, *others) = parts.results, parts.tensors.values()
        tensors = others if reading.type == UINT8 else (first, *others, result)
        if len({tensor.quantization for tensor in tensors}) > 1:
            raise UnknownOperatorForm("its tensors have several scales")

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answers: to the bit where all scales are equal."""
        present = [operand for operand in operands if operand is not None]
        every = (*results, *(operand.value for operand in present))
        if len({value.quantization for value in every}) == 1:
            return super().exact(options, operands, results)
        settings = self.known_settings(options, operands, results)
        values = [operand.real for operand in present]
        return (steps(np.concatenate(values, whole(settings, "axis"))),)


def _read_others(name: str, parts: ModelParts) -> Setting:
    # The first tensor stands for all others if it is alone.
    return quantization_settings(parts.tensors[max(parts.tensors)], _OTHER)[name]


def _scale_others(settings: Configuration, parts: ModelParts, _: np.random.Generator) -> None:
    if f"{_OTHER}_scale" in settings:
        known = activation(UINT8, (), settings, _OTHER).quantization
        for at in range(1, len(parts.tensors)):
            parts.tensors[at] = replace(parts.tensors[at], quantization=known)


def _near_scales(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings whose scales differ by a factor of 8 at most, often equal ones."""
    if f"{_OTHER}_scale" not in settings:
        return settings
    near = dict(settings)
    for role in (_OTHER, _OUTPUT):
        if rng.random() < 1 / 3:
            near[f"{role}_scale"] = settings["input_scale"]
            near[f"{role}_zero_point"] = settings["input_zero_point"]
        else:
            scale = number(settings, "input_scale") * 2 ** rng.uniform(-3, 3)
            near[f"{role}_scale"] = float(np.float32(scale))
    return near


class _OthersAlong(Place):
    """The sizes along the axis of all tensors but the first; declared after shape and axis."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        for at, size in enumerate(whole_numbers(setting), start=1):
            shape = list(parts.tensors[0].shape)
            shape[int(str(parts.options["axis"]))] = size
            parts.tensors[at] = replace(parts.tensors[0], shape=tuple(shape))

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        axis = int(str(parts.options["axis"]))
        return tuple(parts.tensors[at].shape[axis] for at in range(1, len(parts.tensors)))


def _count_along(settings: Configuration, parts: ModelParts, _: np.random.Generator) -> None:
    parts.options["num"] = dimensions(settings, "shape")[whole(settings, "axis")]


def _with_size(settings: Settings, axis: int, size: int) -> Settings:
    shape = list(dimensions(settings, "shape"))
    shape[axis] = size
    return {**settings, "shape": tuple(shape)}


def _fit_unpacked(settings: Settings, changed: str) -> Settings:
    settings = fit_axis()(settings, changed)
    axis = whole(settings, "axis")
    if dimensions(settings, "shape")[axis] == 0 and changed != "shape":
        return _with_size(settings, axis, 1)
    return settings


def _empty(_: str, settings: Configuration) -> str | None:
    return "UNPACK takes no tensor without values" if 0 in dimensions(settings, "shape") else None


def _fit_parts(settings: Settings, changed: str) -> Settings:
    settings = fit_axis()(settings, changed)
    axis, count = whole(settings, "axis"), whole(settings, "parts")
    size = dimensions(settings, "shape")[axis]
    if changed != "shape":
        return _with_size(settings, axis, -(-size // count) * count)
    settings["parts"] = next(
        parts for parts in range(min(count, max(size, 1)), 0, -1) if size % parts == 0
    )
    return settings


def _fit_sizes(settings: Settings, changed: str) -> Settings:
    settings = fit_axis()(settings, changed)
    axis, sizes = whole(settings, "axis"), list(dimensions(settings, "sizes"))
    for at, size in enumerate(sizes):
        if size == -1 and -1 in sizes[:at]:
            sizes[at] = 1
    shape, known = dimensions(settings, "shape"), sum(size for size in sizes if size != -1)
    if -1 in sizes and known <= shape[axis]:
        return {**settings, "sizes": tuple(sizes)}
    if changed != "shape":
        settings = _with_size(settings, axis, known)
    else:
        left = shape[axis]
        for at, size in enumerate(sizes):
            sizes[at] = min(max(size, 0), left) if at < len(sizes) - 1 else left
            left -= sizes[at]
    return {**settings, "sizes": tuple(sizes)}


def _count_sizes(settings: Configuration, parts: ModelParts, _: np.random.Generator) -> None:
    parts.options["numSplits"] = len(dimensions(settings, "sizes"))


def _split_by_sizes(settings: Configuration, raw: Sequence[Values]) -> Sequence[Values]:
    axis, sizes = whole(settings, "axis"), dimensions(settings, "sizes")
    left = raw[0].shape[axis] - sum(size for size in sizes if size != -1)
    ends = np.cumsum([left if size == -1 else size for size in sizes])
    return np.split(raw[0], ends[:-1], axis)


_SHAPE = Dimensions("shape", (1, 5), most_values=300)
_AXIS = Whole("axis", -5, 4, simplest=0)
_AXIS_OPTION = OptionOf(_AXIS, "axis")

JOINS = (
    _Concatenation(
        "CONCATENATION",
        ALL,
        (
            ShapeOf(_SHAPE),
            _AXIS_OPTION,
            _OthersAlong(WholeNumbers("other_sizes", 1, 9, usual=1, counts=(0, 4), kind="shape")),
        ),
        lambda settings, raw: [np.concatenate(raw, whole(settings, "axis"))],
        fit=lambda settings, changed: _fit_scales(fit_axis()(settings, changed)),
        versions={INT8: 2, INT16: 3},
        varied=_near_scales,
        complete=_scale_others,
        fixed={"fusedActivationFunction": "NONE"},
    ),
    MovementSpecification(
        "PACK",
        BUT_BOOL,
        (
            ShapeOf(Dimensions("shape", (0, 4), most_values=200)),
            OptionOf(_AXIS, "axis"),
            CountOf(Whole("tensors", 1, 5, limit=1000), "valuesCount"),
        ),
        lambda settings, raw: [np.stack(raw, whole(settings, "axis"))],
        fit=fit_axis(beyond=1),
        versions={INT8: 2, INT16: 3},
    ),
    MovementSpecification(
        "UNPACK",
        (FLOAT, INT8, UINT8, INT16, INT32, BOOL),
        (ShapeOf(_SHAPE), _AXIS_OPTION),
        lambda settings, raw: list(np.moveaxis(raw[0], whole(settings, "axis"), 0)),
        fit=_fit_unpacked,
        versions={INT8: 2, UINT8: 2, BOOL: 3, INT16: 4},
        complete=_count_along,
        refused=_empty,
    ),
    MovementSpecification(
        "SPLIT",
        BUT_BOOL,
        (
            ShapeOf(_SHAPE, 1),
            ConstantOf(_AXIS, 0),
            OptionOf(Whole("parts", 1, 6, limit=1000), "numSplits"),
        ),
        lambda settings, raw: np.split(raw[1], whole(settings, "parts"), whole(settings, "axis")),
        fit=_fit_parts,
        versions={INT8: 2, INT32: 3, INT16: 4},
        data=1,
    ),
    MovementSpecification(
        "SPLIT_V",
        BUT_BOOL,
        (
            ShapeOf(_SHAPE),
            ConstantOf(WholeNumbers("sizes", -1, 9, usual=1, counts=(1, 5), kind="shape")),
            ConstantOf(_AXIS, 2),
            IndexTypeOf(1),
        ),
        _split_by_sizes,
        fit=_fit_sizes,
        versions={INT8: 2},
        complete=_count_sizes,
    ),
)


def _fit_scales(settings: Settings) -> Settings:
    """Return settings whose other tensors, if there are none, have the scale of the first."""
    if f"{_OTHER}_scale" in settings and not dimensions(settings, "other_sizes"):
        settings[f"{_OTHER}_scale"] = settings["input_scale"]
        settings[f"{_OTHER}_zero_point"] = settings["input_zero_point"]
    return settings
