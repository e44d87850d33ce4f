"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option
from edgeflare.conform.operators.weighted_sums.sum_answer import (
    ACTIVATION,
    clamp_limits,
    clamped,
    known_activation,
)
from edgeflare.conform.operators.weighted_sums.sum_tensors import (
    data_parameters,
    data_value,
    read_data,
)
from edgeflare.conform.operators.window_settings import (
    Window,
    Work,
    fitted_sizes,
    read_windows,
    size_parameter,
    tamed_windows,
    widened,
    window_facts,
    window_options,
    window_parameters,
    window_values,
    windows_fault,
    windows_of,
)
from edgeflare.conform.specification.operator_specification import (
    EPSILON,
    FLOAT,
    INT8,
    INT16,
    UINT8,
    ExactAnswer,
    Operand,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
    bits,
    reals,
    steps,
    sum_slack,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    Setting,
    whole,
    word,
)

_AXES = "hw"
_KERNEL_AXES = (3, 4)
"""The kernel's axes in values of windows: (batch, rows, columns, kernel rows, kernel columns,
channels)."""

_DTYPES = {FLOAT: "float32", INT8: "int8", UINT8: "uint8", INT16: "int16"}
_TYPES = {dtype: type_ for type_, dtype in _DTYPES.items()}


class Pool(OperatorSpecification):
    """One value for each window and channel; input and result have one quantization."""

    types: tuple[str, ...] = tuple(_DTYPES)
    shape_parameters: tuple[OperatorParameter, ...] = (
        size_parameter("batch", 3, (0,)),
        *window_parameters(_AXES, 33, dilated=1),
        size_parameter("channels", 33),
    )

    @abstractmethod
    def pooled(
        self, data: Operand, windows: tuple[Window, ...], activation: str, result: GraphValue
    ) -> ExactAnswer:
        """Return the exact answer."""

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        scales = () if type_ == FLOAT else data_parameters(_DTYPES[type_], "input")
        return (*self.shape_parameters, ACTIVATION, *scales)

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        return windows_fault(configuration, _AXES)

    def build(
        self,
        type_: str,
        configuration: Configuration,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        data, result = (
            data_value(_DTYPES[type_], shape, configuration, "input")
            for shape in _shapes(configuration)
        )
        options = {
            **window_options(configuration, _AXES),
            "filterHeight": whole(configuration, "kernel_h"),
            "filterWidth": whole(configuration, "kernel_w"),
            "fusedActivationFunction": word(configuration, "activation"),
        }
        version = {INT8: 2, INT16: 3}.get(type_, 1)
        return OperatorGraph.of_operator(self.operator, [data], [result], options, version)

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        node = graph.nodes[0]
        (data,), (result,) = graph.operands(node), graph.results(node)
        if data is None or data.dtype not in _TYPES or len(data.shape) != len(_AXES) + 2:
            raise UnknownOperatorForm(f"a pool of {data and (data.dtype, data.shape)}")
        if data.quantization != result.quantization:
            raise UnknownOperatorForm("a pool whose result has another quantization")
        activation = known_activation(node.options.get("fusedActivationFunction"))
        settings = _window_settings(node.options, data) | {"activation": activation}
        ends = {"batch": data.shape[0], "channels": data.shape[-1]}
        return OperatorReading(_TYPES[data.dtype], settings | ends | read_data(data, "input"))

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answer."""
        (data,) = operands
        if data is None:
            raise ValueError("no input")
        windows = windows_of(_window_settings(options, data.value), _AXES)
        activation = str(options["fusedActivationFunction"])
        with np.errstate(all="ignore"):
            return (self.pooled(data, windows, activation, results[0]),)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration near another that reads a tensor of another model."""
        if value.dtype != _DTYPES[type_] or len(value.shape) != len(_AXES) + 2:
            return None
        sizes = zip(("batch", "height", "width", "channels"), value.shape, strict=True)
        try:
            return {**configuration, **dict(sizes), **read_data(value, "input")}
        except UnknownOperatorForm:
            return None

    def draw(self, type_: str, rng: np.random.Generator) -> Configuration:
        """Return settings at random."""
        drawn = {one.name: one.draw(rng) for one in self.parameters(type_)}
        drawn = tamed_windows(drawn, _AXES, rng)
        sizes = ("batch", "height", "width", "channels")
        return fitted_sizes(drawn, sizes, lambda one: widened(one, _AXES), _work, rng)

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:  # noqa: ARG002
        """Return the sizes of result and windows, and what is padded."""
        terms = prod(whole(configuration, f"kernel_{one}") for one in _AXES)
        sizes = {"result_size": prod(_shapes(configuration)[1]), "terms": terms}
        return {**window_facts(configuration, _AXES), **sizes}


class AveragePool(Pool):
    """AVERAGE_POOL_2D: what is padded counts for nothing."""

    operator = "AVERAGE_POOL_2D"

    def pooled(
        self, data: Operand, windows: tuple[Window, ...], activation: str, result: GraphValue
    ) -> ExactAnswer:
        """Return the exact answer."""
        mean = clamped(_means(data.real, windows), activation)
        if result.quantization is not None:
            return steps(mean)
        terms = prod(one.kernel for one in windows)
        return reals(mean, sum_slack(terms, _means(np.abs(data.real), windows)))


class MaxPool(Pool):
    """MAX_POOL_2D: one of the values, as it stands unless the activation clamps it."""

    operator = "MAX_POOL_2D"

    def pooled(
        self, data: Operand, windows: tuple[Window, ...], activation: str, result: GraphValue
    ) -> ExactAnswer:
        """Return the exact answer."""
        known = result.quantization
        if known is None:
            values = window_values(data.real, windows, -np.inf)
            return reals(clamped(values.max(axis=_KERNEL_AXES, initial=-np.inf), activation))
        ends = np.iinfo(result.dtype)
        values = window_values(data.raw.astype(np.int64), windows, ends.min)
        limits = np.asarray(clamp_limits(activation)) / known.scales[0]
        # Kernels round halves away from zero.
        rounded = np.copysign(np.floor(np.abs(limits) + 0.5), limits) + known.zero_point
        low, high = np.clip(rounded, ends.min, ends.max)
        largest = values.max(axis=_KERNEL_AXES, initial=ends.min)
        return bits(np.clip(largest, low, high).astype(result.dtype))


class L2Pool(Pool):
    """L2_POOL_2D: the root of the mean of squares."""

    operator = "L2_POOL_2D"
    types = (FLOAT,)

    def pooled(
        self,
        data: Operand,
        windows: tuple[Window, ...],
        activation: str,
        result: GraphValue,  # noqa: ARG002
    ) -> ExactAnswer:
        """Return the exact answer."""
        root = np.sqrt(_means(data.real**2, windows))
        terms = prod(one.kernel for one in windows)
        return reals(clamped(root, activation), (terms / 2 + 3) * EPSILON * root)


POOLS: tuple[OperatorSpecification, ...] = (AveragePool(), MaxPool(), L2Pool())


def _means(values: NDArray[np.float64], windows: tuple[Window, ...]) -> NDArray[np.float64]:
    sums = window_values(values, windows).sum(axis=_KERNEL_AXES)
    ones = np.ones((1, *values.shape[1:-1], 1))
    counts = window_values(ones, windows).sum(axis=_KERNEL_AXES)
    found: NDArray[np.float64] = sums / counts
    return found


def _shapes(configuration: Configuration) -> tuple[tuple[int, ...], tuple[int, ...]]:
    windows = windows_of(configuration, _AXES)
    batch, channels = whole(configuration, "batch"), whole(configuration, "channels")
    sizes, counts = (one.size for one in windows), (one.count for one in windows)
    return (batch, *sizes, channels), (batch, *counts, channels)


def _work(configuration: Configuration) -> Work:
    data, result = map(prod, _shapes(configuration))
    terms = prod(whole(configuration, f"kernel_{one}") for one in _AXES)
    return data, 0, result, result * terms


def _window_settings(options: Mapping[str, Option], data: GraphValue) -> dict[str, Setting]:
    try:
        kernels = [options["filterHeight"], options["filterWidth"]]
    except KeyError as error:
        raise UnknownOperatorForm(f"no option {error}") from error
    return read_windows(options, data.shape[1:-1], [int(str(one)) for one in kernels], _AXES)
