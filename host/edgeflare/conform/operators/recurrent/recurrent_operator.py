"""What RNN and LSTM have in common: a sequence, constant weights, and states that begin at zero.

In an operator of two directions the backward one begins with the last step. A second sequence is
multiplied with weights of its own in both directions, or read by the backward direction in place of
the first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import sqrt
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Quantization
from edgeflare.conform.operators.recurrent.bounded_reals import BoundedReals
from edgeflare.conform.operators.window_settings import size_parameter
from edgeflare.conform.specification.activation_tensors import (
    DYNAMIC,
    FLOAT,
    Operands,
    Options,
    Reals,
    Results,
    Shape,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.exact_answer import ExactAnswers, reals, steps
from edgeflare.conform.specification.model_parts import (
    ASYMMETRIC_INPUTS,
    RESULT,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    SizeOf,
)
from edgeflare.conform.specification.operator_specification import (
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    OperatorParameter,
    Setting,
    whole,
    word,
    yes,
)

TensorKind = Literal["weights", "float", "state", "given"]
"""What a tensor besides the sequence is: weights, which a type may have as int8; biases and
coefficients, which are always floats; a state; or a second sequence."""

_AUXILIARY: Final = Choice("auxiliary", ("none", "weighted", "backward"))
"""What a second sequence is for."""


class RecurrentTensor(NamedTuple):
    """A tensor that a recurrent operator reads besides its sequence."""

    kind: TensorKind
    shape: Shape


RecurrentTensors = Mapping[int, RecurrentTensor]
"""Tensors by their places among the operands."""

_TIME_MAJOR: Final = Choice("time_major", (False, True))
MOST_RAW: Final = 127
"""The greatest raw value of int8 weights, which are symmetric."""


class _SequenceSize(SizeOf):
    """Batch or steps of a sequence, which come in the order that an option says."""

    def __init__(self, parameter: OperatorParameter, dimension: int) -> None:
        """Declare a place in (batch, steps, features), declared after the option."""
        super().__init__(parameter, dimension, 3)
        self._orders = tuple(SizeOf(parameter, at, 3) for at in (dimension, 1 - dimension))

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        self._orders[bool(parts.options.get("timeMajor"))].write(setting, parts)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return self._orders[bool(parts.options.get("timeMajor"))].read(parts)


def sequence_places() -> tuple[Place, ...]:
    """Return the places of what says the shape of (batch, steps, features)."""
    return (
        OptionOf(_TIME_MAJOR, "timeMajor", default=False),
        _SequenceSize(size_parameter("batch", 4), 0),
        _SequenceSize(size_parameter("steps", 8), 1),
        SizeOf(size_parameter("features", 17), 2, 3),
    )


def step_places() -> tuple[Place, ...]:
    """Return the places of what says the shape of (batch, features), a sequence of one step."""
    return (
        SizeOf(size_parameter("batch", 4), 0, 2),
        SizeOf(size_parameter("features", 17), 1, 2),
    )


@dataclass(frozen=True, eq=False)
class RecurrentOperator(OperatorSpecification):
    """An operator that goes over a sequence step by step.

    Weights have one scale each, if they are of int8, which like their values is drawn: gates that
    are saturated throughout would show nothing. States are variables, which are zero at first.

    Attributes:
        read_weights: the place of a matrix of weights that there always is.
        reads: how many operands a model names, those that are left out at the end included.
        first_versions: the lowest version of float weights, of int8 weights, and of these with
            asymmetric inputs.

    """

    _: KW_ONLY
    read_weights: int
    reads: int
    first_versions: tuple[int, int, int]

    @abstractmethod
    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""

    @abstractmethod
    def widths(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the last dimension of each result."""

    @abstractmethod
    def run(
        self,
        configuration: Configuration,
        sequence: Reals,
        read: Mapping[int, Reals],
        rounds: bool,
        tensors: Mapping[int, GraphValue],
    ) -> Sequence[Sequence[BoundedReals]]:
        """Return what each result is at each step: (batch, width).

        Args:
            configuration: the operator's settings.
            sequence: (steps, batch, features).
            read: all other tensors by their places, a second sequence likewise.
            rounds: whether what is multiplied with weights is rounded to eight bits.
            tensors: the tensors of `read`, and the first result as `RESULT`.

        """

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        return (*self.places, ASYMMETRIC_INPUTS) if type_ == DYNAMIC else self.places

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        data, weights = parts.tensor(0).dtype, parts.tensor(self.read_weights).dtype
        types = {("float32", "float32"): FLOAT, ("float32", "int8"): DYNAMIC}
        if (type_ := types.get((data, weights))) is None:
            raise UnknownOperatorForm(f"{data} with weights of {weights}")
        return type_

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless all tensors are as models of the settings have them."""
        super().check(reading, parts)
        if (why := self.fault(reading.type, reading.configuration)) is not None:
            raise UnknownOperatorForm(why)
        if set(parts.tensors) - {0} != set(self.tensors(reading.configuration)):
            raise UnknownOperatorForm("it reads other tensors than its settings say")
        self.check_tensors(reading, parts)

    def check_tensors(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless what is read has the right dtypes, shapes and kinds."""
        for at, (kind, shape) in self.tensors(reading.configuration).items():
            found = parts.tensors[at]
            wanted = "int8" if kind == "weights" and reading.type == DYNAMIC else "float32"
            if (found.dtype, found.shape) != (wanted, shape):
                raise UnknownOperatorForm(f"its operand {at} is {found.dtype} {found.shape}")
            if (found.values is None, found.variable) != (kind == "given", kind == "state"):
                raise UnknownOperatorForm(f"its operand {at} is no {kind}")
            known = found.quantization
            if wanted == "int8" and (known is None or len(known.scales) > 1 or known.zero_point):
                raise UnknownOperatorForm(f"its operand {at} has not one scale, or a zero point")

    def fill(
        self, type_: str, configuration: Configuration, parts: ModelParts, rng: np.random.Generator
    ) -> None:
        """Add drawn weights, and the states."""
        expected = self.tensors(configuration)
        parts.left_out = self.reads - 1 - max(expected)
        for at, (kind, shape) in expected.items():
            plain = GraphValue("float32", shape)
            if kind == "state":
                parts.tensors[at] = plain.state()
            elif kind == "given":
                parts.tensors[at] = plain
            elif kind == "weights" and type_ == DYNAMIC:
                scale = float(np.float32(weight_size(shape, rng) / MOST_RAW))
                parts.tensors[at] = int8_weights(shape, scale, rng)
            else:
                size = weight_size(shape, rng) if kind == "weights" else 1.0
                parts.tensors[at] = plain.constant(rng.uniform(-size, size, shape))

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        return self.fit(dict(super().draw(type_, rng)), "")

    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""
        float_, int8, asymmetric = self.first_versions
        if type_ == FLOAT:
            return float_
        return asymmetric if yes(configuration, "asymmetric_inputs") else int8

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the results of all steps."""
        del type_
        leading = parts.tensors[0].shape[:-1]
        return [GraphValue("float32", (*leading, width)) for width in self.widths(configuration)]

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        found = super().with_input(type_, configuration, value)
        if found is None or not configuration.get("time_major", False):
            return found
        return {**found, "batch": found["steps"], "steps": found["batch"]}

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answer, with a bound of what all steps before it may have lost."""
        settings = self.known_settings(options, operands, results)
        first, *others = operands
        if first is None:
            raise ValueError("no sequence")
        read = {at: operand for at, operand in enumerate(others, 1) if operand is not None}
        known = {at: operand.real for at, operand in read.items()}
        stepwise = first.real.ndim == 2
        time_major = stepwise or yes(settings, "time_major")

        def by_step(values: Reals) -> Reals:
            if stepwise:
                return values[np.newaxis]
            return values if time_major else values.swapaxes(0, 1)

        sequences = [at for at, (kind, _) in self.tensors(settings).items() if kind == "given"]
        known |= {at: by_step(known[at]) for at in sequences}
        tensors = {at: operand.value for at, operand in read.items()}
        rounds = tensors[self.read_weights].quantization is not None
        tensors[RESULT] = results[0]
        found = self.run(settings, by_step(first.real), known, rounds, tensors)
        answer = reals if results[0].quantization is None else steps

        def joined(several: list[Reals]) -> Reals:
            return several[0] if stepwise else np.stack(several, axis=0 if time_major else 1)

        return tuple(
            answer(
                joined([step.values for step in result]), joined([step.bound for step in result])
            )
            for result in found
        )


def weight_size(shape: Shape, rng: np.random.Generator) -> float:
    """Return the size of weights, with which sums are mostly of the size of one value."""
    size = (1.0, 1.0, 2.0, 0.3)[int(rng.integers(4))]
    return size / sqrt(shape[-1]) if len(shape) > 1 else size


def int8_weights(shape: Shape, scale: float, rng: np.random.Generator) -> GraphValue:
    """Return drawn weights of int8 with one scale."""
    raw = rng.integers(-MOST_RAW, MOST_RAW, shape, np.int8, endpoint=True)
    return GraphValue("int8", shape, Quantization((scale,))).constant(raw)


class Direction(Protocol):
    """A direction of a recurrent operator."""

    def tensors(self) -> RecurrentTensors:
        """Return the tensors that it reads besides the sequence."""
        ...

    def steps(
        self, sequence: Reals, read: Mapping[int, Reals], auxiliary: Reals | None = None
    ) -> Iterator[BoundedReals]:
        """Yield the results after each step: (batch, width).

        Args:
            sequence: (steps, batch, features), the first step first.
            read: all tensors by their places.
            auxiliary: a second sequence that has weights, in the same order.

        """
        ...


def direction_places(sequence: int, weights: int) -> tuple[Place, ...]:
    """Return the places of what says how two directions are joined, and what is read besides.

    Args:
        sequence: the operand that is a second sequence.
        weights: an operand that there is where that has weights.

    """

    def auxiliary(parts: ModelParts) -> str:
        if weights in parts.tensors:
            return "weighted"
        return "backward" if sequence in parts.tensors else "none"

    merged = OptionOf(Choice("merged", (False, True)), "mergeOutputs", default=False)
    return merged, ReadFrom(_AUXILIARY, auxiliary)


@dataclass(frozen=True, eq=False)
class BidirectionalOperator(RecurrentOperator):
    """An operator that goes over a sequence in both directions.

    Attributes:
        second: the operand that is a second sequence.
        width_settings: the settings that are the last dimensions of the directions' results.

    """

    _: KW_ONLY
    second: int
    width_settings: tuple[str, str]

    @abstractmethod
    def directions(
        self, configuration: Configuration, *, rounds: bool
    ) -> tuple[Direction, Direction]:
        """Return the forward and the backward direction.

        Args:
            configuration: the operator's settings.
            rounds: whether what is multiplied with weights is rounded to eight bits.

        """

    def tensors(self, configuration: Configuration) -> RecurrentTensors:
        """Return the tensors that are read besides the sequence."""
        forward, backward = self.directions(configuration, rounds=False)
        found = {**forward.tensors(), **backward.tensors()}
        if word(configuration, "auxiliary") != "none":
            order = ("steps", "batch") if yes(configuration, "time_major") else ("batch", "steps")
            shape = tuple(whole(configuration, name) for name in (*order, "features"))
            found[self.second] = RecurrentTensor("given", shape)
        return found

    def widths(self, configuration: Configuration) -> tuple[int, ...]:
        """Return the last dimension of each result."""
        widths = tuple(whole(configuration, name) for name in self.width_settings)
        return (sum(widths),) if yes(configuration, "merged") else widths

    def run(
        self,
        configuration: Configuration,
        sequence: Reals,
        read: Mapping[int, Reals],
        rounds: bool,
        tensors: Mapping[int, GraphValue],
    ) -> Sequence[Sequence[BoundedReals]]:
        """Return what each result is at each step."""
        del tensors
        use = word(configuration, "auxiliary")
        ahead, back = self.directions(configuration, rounds=rounds)
        reverse = read[self.second] if use == "backward" else sequence
        weighted = read[self.second] if use == "weighted" else None
        forward = list(ahead.steps(sequence, read, weighted))
        weighted = None if weighted is None else weighted[::-1]
        backward = list(back.steps(reverse[::-1], read, weighted))[::-1]
        if yes(configuration, "merged"):
            return [[_concatenated(both) for both in zip(forward, backward, strict=True)]]
        return [forward, backward]


def _concatenated(parts: Sequence[BoundedReals]) -> BoundedReals:
    """Return values side by side in the last dimension."""
    return BoundedReals(
        np.concatenate([part.values for part in parts], axis=-1),
        np.concatenate([part.bound for part in parts], axis=-1),
    )
