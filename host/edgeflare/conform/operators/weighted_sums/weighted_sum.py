"""An operator that adds products of its input and constant weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue
from edgeflare.conform.operators.weighted_sums.sum_answer import (
    ACTIVATION,
    largest_of_batch,
    summed,
)
from edgeflare.conform.operators.weighted_sums.sum_tensors import (
    PER_CHANNEL,
    SUM_TYPES,
    bias_value,
    fitting_scales,
    has_bias,
    read_weights,
    rescaled,
    sum_type,
    usual_sum,
    weight_parameters,
    weights_value,
)
from edgeflare.conform.operators.window_settings import Work
from edgeflare.conform.specification.activation_tensors import (
    DTYPES,
    Operands,
    Options,
    Reals,
    Results,
    Shape,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.exact_answer import ExactAnswers
from edgeflare.conform.specification.model_parts import (
    RESULT,
    ModelParts,
    OptionOf,
    Place,
    ReadFrom,
    quantization_places,
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
    Settings,
    number,
    yes,
)

_BIAS = Choice("bias", (False, True))
_BIAS_TYPE = Choice("bias_type", ("int64", "int32"))


class _BiasTypeOf(Place):
    """The dtype of the bias of 16-bit activations, which is int64 unless an option says so."""

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        if setting == "int32":
            parts.options["quantizedBiasType"] = "INT32"

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        known = str(parts.options.get("quantizedBiasType", "FLOAT32"))
        return "int64" if known == "FLOAT32" else known.lower()


@dataclass(frozen=True, eq=False)
class WeightedSum(OperatorSpecification):
    """An operator that adds products of its input and constant weights, and a bias.

    Its `places` are those of shapes, and of how the operator goes over them.

    Attributes:
        channel_axis: the dimension of the weights that is the result's channels.
        weights: the place of the weights among the operands.
        bias: likewise.
        bias_types: whether the dtype of the bias of int16x8 is an option.
        always_per_channel: types whose weights have a scale for each channel in any case.
        needs_values: types whose input cannot be without values.

    """

    _: KW_ONLY
    channel_axis: int
    weights: int = 1
    bias: int = 2
    bias_types: bool = True
    always_per_channel: tuple[str, ...] = ()
    needs_values: tuple[str, ...] = ()

    @abstractmethod
    def result_shape(self, configuration: Configuration) -> Shape:
        """Return the shape of the result."""

    @abstractmethod
    def shape_fault(self, configuration: Configuration) -> str | None:
        """Return why shapes do not fit, or None."""

    @abstractmethod
    def terms(self, configuration: Configuration) -> int:
        """Return how many products are added for each value of the result."""

    @abstractmethod
    def product(
        self, configuration: Configuration, result: Shape
    ) -> Callable[[Reals, Reals], Reals]:
        """Return the sums of products as a function of input and weights."""

    @abstractmethod
    def fitting_shapes(self, drawn: Settings, rng: np.random.Generator) -> Settings:
        """Return settings drawn for `places` so that they fit each other and are not too large."""

    def sharing(self, configuration: Configuration) -> Callable[[Reals], Reals]:  # noqa: ARG002
        """Return what gives each value the largest that may share its scale; see `summed`."""
        return largest_of_batch

    def without_bias(self, parts: ModelParts, bias: GraphValue) -> None:
        """Write that there is no bias: converters mostly write zeros."""
        parts.tensors[self.bias] = bias.constant(np.zeros(bias.shape))

    def shapes(self, configuration: Configuration) -> tuple[Shape, Shape, Shape]:
        """Return the shapes of input, weights and result."""
        parts = ModelParts(GraphValue("", ()))
        for place in self.places:
            place.write(configuration[place.parameter.name], parts)
        data, weights = (parts.tensors[at].shape for at in (self.data, self.weights))
        return data, weights, self.result_shape(configuration)

    def work(self, configuration: Configuration) -> Work:
        """Return the work that a configuration makes."""
        data, weights, result = map(prod, self.shapes(configuration))
        return data, weights, result, result * self.terms(configuration)

    def places_of(self, type_: str) -> tuple[Place, ...]:
        """Return the places of all parameters of a type."""
        known = SUM_TYPES[type_]

        def read(parameter: OperatorParameter) -> Place:
            return ReadFrom(parameter, lambda parts: self._weights(type_, parts)[parameter.name])

        free = known.per_channel and type_ not in self.always_per_channel
        return (
            *self.places,
            OptionOf(ACTIVATION, "fusedActivationFunction"),
            ReadFrom(_BIAS, lambda parts: has_bias(parts.tensors.get(self.bias))),
            *([_BiasTypeOf(_BIAS_TYPE)] if DTYPES[type_] == "int16" and self.bias_types else []),
            *([read(PER_CHANNEL)] if free else []),
            *quantization_places(type_, input=self.data),
            *map(read, weight_parameters(type_)),
            *quantization_places(type_, output=RESULT),
        )

    def _weights(self, type_: str, parts: ModelParts) -> Settings:
        return read_weights(type_, parts.tensor(self.weights), self.channel_axis)

    def read_type(self, parts: ModelParts) -> str:
        """Return the type; UnknownOperatorForm if there is none."""
        (result,) = parts.results
        return sum_type(parts.tensor(self.data), parts.tensor(self.weights), result)

    def check(self, reading: OperatorReading, parts: ModelParts) -> None:
        """Raise UnknownOperatorForm unless weights and bias are constants of the type's dtypes.

        Of results files may say other shapes than kernels do.
        """
        if parts.tensors[self.weights].values is None:
            raise UnknownOperatorForm("weights that are computed")
        dtype = str(reading.configuration.get("bias_type", SUM_TYPES[reading.type].bias))
        bias = parts.tensors.get(self.bias)
        if bias is not None and (bias.values is None or bias.dtype != dtype):
            raise UnknownOperatorForm(
                f"a bias of {bias.dtype} in the place of a constant of {dtype}"
            )

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

    def fill(
        self, type_: str, configuration: Configuration, parts: ModelParts, rng: np.random.Generator
    ) -> None:
        """Add drawn weights and a bias."""
        shape, terms = parts.tensors[self.weights].shape, self.terms(configuration)
        several = type_ in self.always_per_channel or configuration.get("per_channel", False)
        axis = self.channel_axis if several else -1
        weights = weights_value(type_, shape, axis, configuration, rng)
        channels = shape[self.channel_axis]
        bias = bias_value(type_, weights, channels, terms, configuration, rng)
        parts.tensors[self.weights] = weights
        if yes(configuration, "bias"):
            parts.tensors[self.bias] = bias
        else:
            self.without_bias(parts, bias)

    def results(self, type_: str, configuration: Configuration, parts: ModelParts) -> Results:
        """Return the sums."""
        del parts
        shape = self.result_shape(configuration)
        return [replace(self.form(type_, configuration, "output"), shape=shape)]

    def exact(self, options: Options, operands: Operands, results: Results) -> ExactAnswers:
        """Return the exact answer."""
        data, weights = operands[self.data], operands[self.weights]
        if data is None or weights is None:
            raise ValueError("no input or no weights")
        settings = self.known_settings(options, operands, results)
        return (
            summed(
                self.product(settings, results[0].shape),
                (data, weights),
                operands[self.bias] if self.bias < len(operands) else None,
                results[0],
                str(options["fusedActivationFunction"]),
                self.terms(settings),
                self.sharing(settings),
            ),
        )

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        found = super().with_input(type_, configuration, value)
        if found is None or "input_scale" not in found:
            return found
        # Sums stay as large as they are, in steps of the result.
        ratio = number(configuration, "input_scale") / number(found, "input_scale")
        return {**found, "weight_scale": rescaled(configuration, "weight_scale", ratio)}

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        others = super().draw(type_, rng)
        drawn = {place.parameter.name: place.parameter.draw(rng) for place in self.places}
        settings = {**others, **self.fitting_shapes(drawn, rng)}
        if self.shape_fault(settings) is not None:
            return settings
        if self.shapes(settings)[1][self.channel_axis] == 1 and "per_channel" in settings:
            settings["per_channel"] = False
        if SUM_TYPES[type_].quantized:
            usual = usual_sum(type_, settings, self.terms(settings))
            dtype = SUM_TYPES[type_].data
            settings |= fitting_scales(dtype, usual, settings, "weight_scale", rng)
        return settings
