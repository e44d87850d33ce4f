"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM, of full kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option
from edgeflare.conform.operators.recurrent.bidirectional_operator import (
    BidirectionalOperator,
    direction_places,
)
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.recurrent.integer_lstm import (
    CELL_EXPONENT,
    PLAIN,
    PLAIN_OPTIONS,
    check_integer,
    integer_direction,
    integer_settings,
    integer_values,
    read_exponent,
)
from edgeflare.conform.operators.recurrent.lstm_step import LstmDirection, LstmPlaces
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    RecurrentOperator,
    RecurrentTensors,
    sequence_places,
    step_places,
)
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import (
    DYNAMIC,
    FLOAT,
    INT8,
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
from edgeflare.conform.specification.operand import Reals, Results
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
        exponent = ReadFrom(CELL_EXPONENT, lambda parts: read_exponent(parts.tensor(_SINGLE.cell)))
        scaled = quantization_places(type_, input=0, output=RESULT)
        return (*free, exponent, *scaled)

    def fixed_options(self, type_: str) -> Mapping[str, Option]:
        """Return the options of a type that no parameter stands in."""
        return {**self.fixed, **PLAIN_OPTIONS} if type_ == INT8 else self.fixed

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        integer = parts.tensor(0).dtype == parts.tensor(self.read_weights).dtype == "int8"
        return INT8 if integer else super().read_type(parts)

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        drawn = super().draw(type_, rng)
        return integer_settings(dict(drawn), rng) if type_ == INT8 else drawn

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
        parts.tensors.update(integer_values(configuration, _SINGLE, tensors, rng))
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
        check_integer(_SINGLE, self.tensors(reading.configuration), parts)

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
            direction = integer_direction(direction, tensors[_SINGLE.cell], tensors[RESULT])
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
