"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM, of full kernels.

An LSTM of int8 activations is as converters write it: without peepholes, projection or
normalization, and with the activation tanh. Its weights have one scale each and no zero point, its
biases the scale of the products, and the result's state the quantization of the result. The scale
of its cells is a power of 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Final

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.recurrent.lstm_step import LstmDirection, LstmPlaces, LstmSteps
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    MOST_RAW,
    BidirectionalOperator,
    RecurrentOperator,
    RecurrentTensors,
    direction_places,
    int8_weights,
    sequence_places,
    step_places,
    weight_size,
)
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import (
    DYNAMIC,
    FLOAT,
    INT8,
    Reals,
    Results,
    UnknownOperatorForm,
    activation,
)
from edgeflare.conform.specification.model_parts import (
    RESULT,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    SizeOf,
    quantization_places,
)
from edgeflare.conform.specification.operator_specification import OperatorReading
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    OperatorParameter,
    ParameterKind,
    Setting,
    Settings,
    number,
    whole,
    word,
    yes,
)

_SINGLE: Final = LstmPlaces(1, 5, 9, 12, 16, 18, 19, normalization=20)
_FORWARD: Final = LstmPlaces(1, 5, 9, 12, 16, 35, 36, auxiliary=40)
_BACKWARD: Final = LstmPlaces(18, 22, 26, 29, 33, 37, 38, auxiliary=44)
_AUX: Final = 39
"""The place of a second sequence."""

_CELL_EXPONENT: Final = Choice("cell_exponent", (-11, -9, -10, -12, -13, -14, -15), "quantization")
"""The scale of the cells as a power of 2, that of the usual clip of 10 first."""

PLAIN: Final[Mapping[str, Setting]] = {
    "peephole": False,
    "projection": "none",
    "normalized": False,
    "activation": "TANH",
    "projection_clip": 0.0,
    "outputs": 0,
}
"""Settings that no parameter stands for: there are as many outputs as units."""

_PLAIN_OPTIONS: Final[Mapping[str, Option]] = {
    "fusedActivationFunction": "TANH",
    "projClip": 0.0,
}
"""Likewise options."""


class _ClippingLimit(OperatorParameter):
    """A limit of magnitudes, 0 for none."""

    kind: ParameterKind = "mode"
    unit = ""
    simplest: Setting = 0.0
    buckets = ("none", "below 1", "at least 1")

    def __init__(self, name: str) -> None:
        self.name = name

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if not isinstance(setting, int | float) or not setting >= 0:
            raise ValueError(f"{self.name} {setting}")
        return self.buckets[0 if not setting else 1 if setting < 1 else 2]

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        limit = (0.0, rng.uniform(0.1, 0.9), rng.uniform(1, 10))[int(rng.integers(3))]
        return float(np.float32(limit))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        yield from (simple for simple in (0.0, 1.0) if simple != setting)


def _projection(parts: ModelParts) -> str:
    at = _SINGLE.projection
    return "none" if at not in parts.tensors else "bias" if at + 1 in parts.tensors else "weights"


def _outputs(parts: ModelParts) -> int:
    shape = parts.tensor(_SINGLE.recurrent + 1).shape
    if len(shape) != 2:
        raise UnknownOperatorForm(f"recurrent weights of {shape}, which are no matrix")
    return shape[1]


_SHAPE_PLACES: Final[tuple[Place, ...]] = (
    SizeOf(size_parameter("units", 17, unit="units"), 0, 2, _SINGLE.weights + 1),
    ReadFrom(size_parameter("outputs", 17, unit="units"), _outputs),
)

_MODE_PLACES: Final[tuple[Place, ...]] = (
    OptionOf(Choice("activation", ("TANH", "RELU", "RELU6")), "fusedActivationFunction"),
    OptionOf(_ClippingLimit("cell_clip"), "cellClip", default=0.0),
    OptionOf(_ClippingLimit("projection_clip"), "projClip", default=0.0),
    ReadFrom(Choice("coupled", (False, True)), lambda parts: _SINGLE.weights not in parts.tensors),
    ReadFrom(
        Choice("peephole", (False, True)), lambda parts: _SINGLE.peephole + 1 in parts.tensors
    ),
    ReadFrom(Choice("projection", ("none", "weights", "bias")), _projection),
)

_NORMALIZED: Final = ReadFrom(
    Choice("normalized", (False, True)), lambda parts: _SINGLE.normalization + 1 in parts.tensors
)


def _fitting(settings: Settings, changed: str) -> Settings:
    """Return settings with as many outputs as units, or fewer where there is a projection."""
    if "projection" not in settings:
        return settings
    units, outputs = (whole(settings, name) for name in ("units", "outputs"))
    if word(settings, "projection") == "none":
        same = outputs if changed == "outputs" else units
        return settings | {"units": same, "outputs": same}
    if changed == "outputs":
        return settings | {"units": max(units, outputs)}
    return settings | {"outputs": min(units, outputs)}


def _refusal(type_: str, settings: Configuration) -> str | None:
    if type_ == INT8:
        return None
    units, outputs = (whole(settings, name) for name in ("units", "outputs"))
    if word(settings, "projection") == "none" and units != outputs:
        return "without a projection there are as many outputs as units"
    if outputs > units:
        # Kernels write beyond their memory then, of which other models die that run later.
        return "a projection has no more outputs than units"
    return None


def _direction(configuration: Configuration, *, rounds: bool) -> LstmDirection:
    settings = {**PLAIN, "outputs": configuration["units"], **configuration}
    return LstmDirection(
        _SINGLE,
        batch=whole(settings, "batch"),
        features=whole(settings, "features"),
        units=whole(settings, "units"),
        outputs=whole(settings, "outputs"),
        coupled=yes(settings, "coupled"),
        peephole=yes(settings, "peephole"),
        projection=word(settings, "projection"),
        normalized=yes(settings, "normalized") if "normalized" in settings else False,
        activation=word(settings, "activation"),
        cell_clip=number(settings, "cell_clip"),
        projection_clip=number(settings, "projection_clip"),
        rounds=rounds,
    )


@dataclass(frozen=True, eq=False)
class _Lstm(RecurrentOperator):
    """One direction, over a sequence or one step."""

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        if type_ != INT8:
            return super().places_of(type_)
        free = (place for place in self.places if place.parameter.name not in PLAIN)
        exponent = ReadFrom(
            _CELL_EXPONENT, lambda parts: _read_exponent(parts.tensor(_SINGLE.cell))
        )
        scaled = quantization_places(type_, input=0, output=RESULT)
        return (*free, exponent, *scaled)

    def fixed_options(self, type_: str) -> Mapping[str, Option]:
        """Return the options of a type that no parameter stands in."""
        return {**self.fixed, **_PLAIN_OPTIONS} if type_ == INT8 else self.fixed

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        integer = parts.tensor(0).dtype == parts.tensor(self.read_weights).dtype == "int8"
        return INT8 if integer else super().read_type(parts)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        drawn = super().draw(type_, rng)
        return _integer_settings(dict(drawn), rng) if type_ == INT8 else drawn

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        return 1 if type_ == INT8 else super().version(type_, configuration)

    def fill(
        self, type_: str, configuration: Configuration, parts: ModelParts, rng: np.random.Generator
    ) -> None:
        """Add drawn weights, and the states."""
        if type_ != INT8:
            super().fill(type_, configuration, parts, rng)
            return
        tensors = self.tensors(configuration)
        parts.tensors.update(_integer_values(configuration, _SINGLE, tensors, rng))
        parts.left_out = self.reads - 1 - max(tensors)

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the result of all steps."""
        (result,) = super().results(type_, configuration, parts)
        if type_ != INT8:
            return [result]
        return [activation(type_, result.shape, configuration, "output")]

    def check_tensors(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless all tensors are as models of the settings have them."""
        if reading.type != INT8:
            super().check_tensors(reading, parts)
            return
        _check_integer(_SINGLE, self.tensors(reading.configuration), parts)

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""
        return _direction(configuration, rounds=False).tensors()

    def widths(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the last dimension of each result."""
        return (_direction(configuration, rounds=False).outputs,)

    def run(
        self,
        configuration: Configuration,
        sequence: Reals,
        read: Mapping[int, Reals],
        rounds: bool,
        tensors: Mapping[int, GraphValue],
    ) -> Sequence[Sequence[BoundedReals]]:
        """Return what the result is at each step."""
        direction = _direction(configuration, rounds=rounds)
        if tensors[_SINGLE.cell].quantization is not None:
            direction = _integer_direction(direction, tensors[_SINGLE.cell], tensors[RESULT])
        return [list(direction.steps(sequence, read))]


@dataclass(frozen=True, eq=False)
class _BidirectionalLstm(BidirectionalOperator):
    """Both directions, which have the same sizes and modes."""

    def directions(
        self, configuration: Configuration, *, rounds: bool
    ) -> tuple[LstmDirection, LstmDirection]:
        """Return the forward and the backward direction."""
        weighted = word(configuration, "auxiliary") == "weighted"
        forward = replace(_direction(configuration, rounds=rounds), at=_FORWARD, weighted=weighted)
        return forward, replace(forward, at=_BACKWARD)


LSTMS = (
    _Lstm(
        "LSTM",
        (FLOAT, DYNAMIC, INT8),
        (*step_places(), *_SHAPE_PLACES, *_MODE_PLACES, _NORMALIZED),
        fixed={"kernelType": 0},
        fit=_fitting,
        refused=_refusal,
        read_weights=_SINGLE.weights + 1,
        reads=24,
        first_versions=(1, 3, 4),
    ),
    _Lstm(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        (FLOAT, DYNAMIC, INT8),
        (*sequence_places(), *_SHAPE_PLACES, *_MODE_PLACES, _NORMALIZED),
        fixed={"diagonalRecurrentTensors": False},
        fit=_fitting,
        refused=_refusal,
        read_weights=_SINGLE.weights + 1,
        reads=24,
        first_versions=(1, 2, 3),
    ),
    _BidirectionalLstm(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        (FLOAT, DYNAMIC),
        (
            *sequence_places(),
            *_SHAPE_PLACES,
            *_MODE_PLACES,
            *direction_places(_AUX, _FORWARD.auxiliary + 1),
        ),
        fit=_fitting,
        refused=_refusal,
        read_weights=_SINGLE.weights + 1,
        reads=48,
        first_versions=(1, 2, 3),
        second=_AUX,
        width_settings=("outputs", "outputs"),
    ),
)


def _integer_direction(
    direction: LstmDirection, cell: GraphValue, result: GraphValue
) -> LstmDirection:
    """Return a direction whose states are rounded as those of some tensors."""
    known, shown = cell.quantization, result.quantization
    if known is None or shown is None:
        raise ValueError("cells or a result without a scale")
    steps = LstmSteps(known.scales[0], shown.scales[0], shown.zero_point)
    return replace(direction, steps_of=steps, rounds=False)


def _integer_settings(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return drawn settings with a scale by which the result can be seen."""
    found = dict(settings)
    # A result is from -1 to 1.
    found["output_scale"] = float(np.float32(rng.uniform(0.3, 1.2) / MOST_RAW))
    if rng.random() < 3 / 4:
        found["output_zero_point"] = int(rng.integers(-30, 31))
    return found


def _read_exponent(cell: GraphValue) -> int:
    """Return the scale of cells as a power of 2; UnknownOperatorForm if it is none."""
    known = cell.quantization
    if cell.dtype != "int16" or known is None or len(known.scales) != 1 or known.zero_point:
        raise UnknownOperatorForm("its cells are no int16 with one scale")
    exponent = log2(known.scales[0])
    if exponent != round(exponent):
        raise UnknownOperatorForm(f"the scale of its cells is {known.scales[0]}, no power of 2")
    return int(exponent)


def _integer_values(
    configuration: Configuration,
    at: LstmPlaces,
    tensors: RecurrentTensors,
    rng: np.random.Generator,
) -> Mapping[int, GraphValue]:
    """Return drawn weights and biases, and the states."""
    given, shown = (number(configuration, f"{role}_scale") for role in ("input", "output"))
    found: dict[int, GraphValue] = {}
    scales: dict[int, float] = {}
    for place, (kind, shape) in tensors.items():
        if kind == "weights":
            recurrent = at.recurrent <= place < at.recurrent + 4
            usual = (shown if recurrent else given) * MOST_RAW
            scale = float(np.float32(weight_size(shape, rng) / (usual * MOST_RAW)))
            scales[place] = scale
            found[place] = int8_weights(shape, scale, rng)
        elif kind == "float":
            scale = float(np.float32(given * scales[at.weights + place - at.bias]))
            raw = np.round(rng.uniform(-1, 1, shape) / scale)
            found[place] = GraphValue("int32", shape, Quantization((scale,))).constant(raw)
    hidden = Quantization((shown,), whole(configuration, "output_zero_point"))
    cell = Quantization((2.0 ** whole(configuration, "cell_exponent"),))
    found[at.hidden] = GraphValue("int8", tensors[at.hidden].shape, hidden).state()
    found[at.cell] = GraphValue("int16", tensors[at.cell].shape, cell).state()
    return found


def _check_integer(at: LstmPlaces, tensors: RecurrentTensors, parts: ModelParts) -> None:
    """Raise UnknownOperatorForm unless tensors are as the converter writes them."""
    kinds = {"weights": "int8", "float": "int32"}
    for place, (kind, shape) in tensors.items():
        found = parts.tensors[place]
        wanted = "int16" if place == at.cell else kinds.get(kind, "int8")
        if (found.dtype, found.shape) != (wanted, shape):
            raise UnknownOperatorForm(f"its operand {place} is {found.dtype} {found.shape}")
        if found.values is None or found.variable != (kind == "state"):
            raise UnknownOperatorForm(f"its operand {place} is no {kind}")
        known = found.quantization
        if known is None or len(known.scales) != 1 or (known.zero_point and kind != "state"):
            raise UnknownOperatorForm(f"its operand {place} has not one scale, or a zero point")
    if parts.tensors[at.hidden].quantization != parts.results[0].quantization:
        raise UnknownOperatorForm("its state has another scale than its result")
    _check_biases(at, tensors, parts)


def _check_biases(at: LstmPlaces, tensors: RecurrentTensors, parts: ModelParts) -> None:
    """Raise UnknownOperatorForm unless biases have the scale of the products they are added to."""
    for gate in range(4):
        if at.bias + gate not in tensors:
            continue
        read, weights, bias = (
            parts.tensors[place].quantization for place in (0, at.weights + gate, at.bias + gate)
        )
        if read is None or weights is None or bias is None:
            raise UnknownOperatorForm("its tensors have no scales")
        product = read.scales[0] * weights.scales[0]
        if not np.isclose(bias.scales[0], product, rtol=1e-5, atol=0):
            raise UnknownOperatorForm("a bias has another scale than the products")
