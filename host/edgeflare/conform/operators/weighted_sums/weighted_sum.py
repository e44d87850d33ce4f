"""An operator that adds products of its input and constant weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option
from edgeflare.conform.operators.weighted_sums.sum_answer import (
    ACTIVATION,
    Reals,
    known_activation,
    largest_of_batch,
    summed,
)
from edgeflare.conform.operators.weighted_sums.sum_tensors import (
    PER_CHANNEL,
    SUM_TYPES,
    bias_value,
    data_value,
    fitting_scales,
    quantization_parameters,
    read_bias,
    read_data,
    read_type,
    read_weights,
    rescaled,
    usual_sum,
    weights_value,
)
from edgeflare.conform.specification.operator_specification import (
    INT16,
    ExactAnswer,
    Operand,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    OperatorParameter,
    Setting,
    number,
    word,
    yes,
)

Shape = tuple[int, ...]
T = TypeVar("T")

_BIAS = Choice("bias", (False, True))
_BIAS_TYPE = Choice("bias_type", ("int64", "int32"))


class WeightedSum(OperatorSpecification):
    """An operator that adds products of its input and constant weights, and a bias.

    Attributes:
        shape_parameters: all that say something of shapes and of how the operator goes over them.
        channel_axis: the dimension of the weights that is the result's channels.
        bias_types: whether the dtype of the bias of int16x8 is an option.
        always_per_channel: types whose weights have a scale for each channel in any case.
        needs_values: types whose input cannot be without values.

    """

    types = tuple(SUM_TYPES)
    shape_parameters: tuple[OperatorParameter, ...]
    channel_axis: int
    bias_types = True
    always_per_channel: tuple[str, ...] = ()
    needs_values: tuple[str, ...] = ()

    @abstractmethod
    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""

    @abstractmethod
    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""

    @abstractmethod
    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result."""

    @abstractmethod
    def options(self, configuration: Configuration) -> Mapping[str, Option]:
        """Return the options but for the activation and the type of the bias."""

    @abstractmethod
    def version(self, type_: str, configuration: Configuration) -> int:
        """Return the lowest version that does it."""

    @abstractmethod
    def read_shapes(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Mapping[str, Setting]:
        """Return the settings of `shape_parameters`."""

    @abstractmethod
    def product(
        self, options: Mapping[str, Option], data: Shape, weights: Shape, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""

    @abstractmethod
    def drawn_shapes(self, rng: np.random.Generator) -> dict[str, Setting]:
        """Return settings of `shape_parameters` that fit each other and are not too large."""

    @abstractmethod
    def shaped(self, configuration: Configuration, shape: Shape) -> Mapping[str, Setting] | None:
        """Return the settings of shapes for an input of another shape, None if there are none."""

    def placed(
        self,
        data: GraphValue,
        weights: GraphValue,
        bias: GraphValue,
        result: GraphValue,  # noqa: ARG002
        configuration: Configuration,
    ) -> Sequence[GraphValue | None]:
        """Return the operands in the operator's order.

        Converters write zeros where there is no bias.
        """
        biased = yes(configuration, "bias")
        return data, weights, bias if biased else bias.constant(np.zeros(bias.shape))

    def found(self, operands: Sequence[T | None]) -> tuple[T | None, T | None, T | None]:
        """Return input, weights and bias among the operands."""
        data, weights, *others = operands
        return data, weights, others[0] if others else None

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        known = SUM_TYPES[type_]
        free = known.per_channel and type_ not in self.always_per_channel
        channels = (PER_CHANNEL,) if free else ()
        bias_types = (_BIAS_TYPE,) if type_ == INT16 and self.bias_types else ()
        modes = (*self.shape_parameters, ACTIVATION, _BIAS, *bias_types, *channels)
        return (*modes, *quantization_parameters(type_))

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return why a configuration is no valid model, or None."""
        if (found := self.shape_fault(configuration)) is not None:
            return found
        data, weights, _ = self.shapes(configuration)
        if type_ in self.needs_values and 0 in data:
            return f"an input of {data} has no values to round to eight bits"
        if weights[self.channel_axis] == 1 and configuration.get("per_channel"):
            return "a scale for each channel needs several channels"
        return None

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        known = SUM_TYPES[type_]
        shape, weights_shape, result_shape = self.shapes(configuration)
        data = data_value(known.data, shape, configuration, "input")
        result = data_value(known.data, result_shape, configuration, "output")
        several = type_ in self.always_per_channel or configuration.get("per_channel", False)
        axis = self.channel_axis if several else -1
        weights = weights_value(type_, weights_shape, axis, configuration, rng)
        channels, terms = weights_shape[self.channel_axis], self.terms(configuration)
        bias = bias_value(type_, weights, channels, terms, configuration, rng)
        options = dict(self.options(configuration))
        options["fusedActivationFunction"] = word(configuration, "activation")
        if configuration.get("bias_type") == "int32":
            options["quantizedBiasType"] = "INT32"
        placed = self.placed(data, weights, bias, result, configuration)
        version = self.version(type_, configuration)
        return OperatorGraph.of_operator(self.operator, placed, (result,), options, version)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        node = graph.nodes[0]
        data, weights, bias = self.found(graph.operands(node))
        (result,) = graph.results(node)
        if data is None or weights is None:
            raise UnknownOperatorForm("no input or no weights")
        type_ = read_type(data, weights, result)
        shapes = data.shape, weights.shape, result.shape
        settings = dict(self.read_shapes(node.options, *shapes))
        settings["activation"] = known_activation(node.options.get("fusedActivationFunction"))
        bias_type = node.options.get("quantizedBiasType", "FLOAT32") if self.bias_types else None
        settings |= read_bias(type_, bias, bias_type) | read_data(data, "input")
        settings |= read_weights(type_, weights, self.channel_axis) | read_data(result, "output")
        known = {one.name for one in self.parameters(type_)}
        return OperatorReading(type_, {one: settings[one] for one in settings if one in known})

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answer."""
        data, weights, bias = self.found(operands)
        if data is None or weights is None:
            raise ValueError("no input or no weights")
        shapes = data.value.shape, weights.value.shape, results[0].shape
        terms = self.terms(self.read_shapes(options, *shapes))
        return (
            summed(
                self.product(options, *shapes),
                (data, weights),
                bias,
                results[0],
                str(options["fusedActivationFunction"]),
                terms,
                self.sharing(shapes[1]),
            ),
        )

    def sharing(self, weights: Shape) -> Callable[[Reals], Reals]:  # noqa: ARG002
        """Return what gives each value the largest that may share its scale; see `summed`."""
        return largest_of_batch

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        if value.dtype != SUM_TYPES[type_].data:
            return None
        shaped = self.shaped(configuration, value.shape)
        if shaped is None:
            return None
        try:
            given = read_data(value, "input")
        except UnknownOperatorForm:
            return None
        found = {**configuration, **shaped, **given}
        if given:
            # Sums stay as large as they are, in steps of the result.
            ratio = number(configuration, "input_scale") / number(given, "input_scale")
            found["weight_scale"] = rescaled(configuration, "weight_scale", ratio)
        return found

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        drawn = {one.name: one.draw(rng) for one in self.parameters(type_)}
        settings = drawn | self.drawn_shapes(rng)
        if self.shape_fault(settings) is not None:
            return settings
        if self.shapes(settings)[1][self.channel_axis] == 1 and "per_channel" in settings:
            settings["per_channel"] = False
        if SUM_TYPES[type_].quantized:
            usual = usual_sum(type_, settings, self.terms(settings))
            dtype = SUM_TYPES[type_].data
            settings |= fitting_scales(dtype, usual, settings, "weight_scale", rng)
        return settings
