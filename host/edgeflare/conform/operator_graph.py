"""A graph of operators, as it is drawn, written, evaluated and shrunk: plain values throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Option = bool | int | float | str | tuple[int, ...]
"""The value of an operator's option; an enumeration by its name in the schema."""

SHARED_NAME = "sharedName"
"""The option that names a variable: operators of a graph that name the same one share it."""

ABSENT = -1
"""Stands in place of a tensor for an optional input that is left out."""

_HELD_AS = {"int4": "int8"}
"""numpy's dtypes for values of types that numpy lacks."""


def held_as(dtype: str) -> np.dtype[Any]:
    """Return the dtype of arrays with the values of a tensor's type."""
    return np.dtype(_HELD_AS.get(dtype, dtype))


@dataclass(frozen=True, slots=True)
class Quantization:
    """How raw values stand for real ones: real = scale · (raw − zero point).

    Attributes:
        scales: one, or one for each index along `axis`; float32 values. With a `block` one for
            each block of each row, row after row; float16 values.
        zero_point: the raw value of 0 for all scales; 0 where there is more than one scale.
        axis: the dimension that the scales are along.
        block: neighbouring values of a row of a matrix that share a scale; 0 where none do.

    """

    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int = 0
    block: int = 0

    def real(self, raw: Values) -> NDArray[np.float64]:
        """Return the real values of raw ones, in their shape."""
        steps = raw.astype(np.float64) - self.zero_point
        if not self.block:
            return steps * self.spread(raw.ndim)
        scales = np.asarray(self.scales, np.float64).reshape(len(raw), -1)
        return steps * np.repeat(scales, self.block, axis=1)

    def spread(self, rank: int) -> NDArray[np.float64]:
        """Return the scales in a shape that broadcasts with a tensor of a rank."""
        scales = np.asarray(self.scales, np.float64)
        if len(self.scales) == 1:
            return scales.reshape(())
        return scales.reshape([-1 if at == self.axis else 1 for at in range(rank)])


@dataclass(frozen=True, slots=True, eq=False)
class GraphValue:
    """A tensor of a graph.

    Attributes:
        dtype: numpy's name, such as "float32" or "int8"; or "int4", whose values are held as int8.
        shape: dimensions, any of which may be 0.
        quantization: None where raw values are what they are.
        values: a constant's values, or those that a variable has at first, (*shape); None for what
            is given or computed.
        variable: it keeps its values from one invocation to the next, until it is reset.

    """

    dtype: str
    shape: tuple[int, ...]
    quantization: Quantization | None = None
    values: Values | None = None
    variable: bool = False

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)

    def real(self, raw: Values) -> Values:
        """Return the real values of raw ones; those of an unquantized tensor as they are."""
        return raw if self.quantization is None else self.quantization.real(raw)

    def constant(self, values: Values) -> GraphValue:
        """Return this tensor as a constant."""
        held = np.asarray(values, held_as(self.dtype), order="C")
        return replace(self, values=held, shape=values.shape)

    def state(self) -> GraphValue:
        """Return this tensor as a variable, which stands for zeros at first."""
        zero = 0 if self.quantization is None else self.quantization.zero_point
        return replace(self.constant(np.full(self.shape, zero)), variable=True)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An operator of a graph.

    Attributes:
        operator: name in the schema, such as "CONV_2D".
        inputs: indexes of tensors, `ABSENT` for an optional one that is left out.
        outputs: likewise.
        options: options by their names in the schema, such as `strideH`.
        version: the operator's lowest version that does it.

    """

    operator: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Option] = field(default_factory=dict)
    version: int = 1

    def moved(self, places: Mapping[int, int]) -> GraphNode:
        """Return the operator in a graph that has its tensors at other places, by those of now."""
        inputs = tuple(at if at == ABSENT else places[at] for at in self.inputs)
        return replace(self, inputs=inputs, outputs=tuple(places[at] for at in self.outputs))


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """Operators in the order of their execution.

    Attributes:
        values: all tensors.
        nodes: the operators.
        inputs: indexes of the tensors that are given.
        outputs: indexes of the tensors that are answered.

    """

    values: tuple[GraphValue, ...]
    nodes: tuple[GraphNode, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of_operator(
        cls,
        operator: str,
        inputs: Sequence[GraphValue | None],
        outputs: Sequence[GraphValue],
        options: Mapping[str, Option] | None = None,
        version: int = 1,
    ) -> OperatorGraph:
        """Return a graph of one operator; constants among its inputs are not given."""
        present = [value for value in inputs if value is not None]
        places = iter(range(len(present)))
        read = tuple(ABSENT if value is None else next(places) for value in inputs)
        written = tuple(range(len(present), len(present) + len(outputs)))
        given = tuple(at for at, value in enumerate(present) if value.values is None)
        node = GraphNode(operator, read, written, dict(options or {}), version)
        return cls((*present, *outputs), (node,), given, written)

    def alone(self, place: int) -> OperatorGraph:
        """Return one operator, none of whose operands is the same tensor as another."""
        node = self.nodes[place]
        return OperatorGraph.of_operator(
            node.operator, self.operands(node), self.results(node), node.options, node.version
        )

    def operands(self, node: GraphNode) -> tuple[GraphValue | None, ...]:
        """Return the tensors that an operator reads."""
        return tuple(None if at == ABSENT else self.values[at] for at in node.inputs)

    def given_to(self, node: GraphNode) -> tuple[int, ...]:
        """Return the places of the tensors that an operator reads and that are no constants."""
        return tuple(at for at in node.inputs if at != ABSENT and self.values[at].values is None)

    def results(self, node: GraphNode) -> tuple[GraphValue, ...]:
        """Return the tensors that an operator writes."""
        return tuple(self.values[at] for at in node.outputs)


def side_by_side(graphs: Sequence[OperatorGraph]) -> OperatorGraph:
    """Return one graph of several, which share nothing; inputs and outputs in their order."""
    values: list[GraphValue] = []
    nodes: list[GraphNode] = []
    inputs: list[int] = []
    outputs: list[int] = []
    for graph in graphs:
        begin = len(values)
        values.extend(graph.values)
        nodes.extend(_moved(node, begin) for node in graph.nodes)
        inputs.extend(begin + at for at in graph.inputs)
        outputs.extend(begin + at for at in graph.outputs)
    return OperatorGraph(tuple(values), tuple(nodes), tuple(inputs), tuple(outputs))


def _moved(node: GraphNode, by: int) -> GraphNode:
    moved = tuple(at if at == ABSENT else at + by for at in node.inputs)
    options = node.options
    if SHARED_NAME in options:
        options = {**options, SHARED_NAME: f"{options[SHARED_NAME]} {by}"}
    return replace(
        node, inputs=moved, outputs=tuple(at + by for at in node.outputs), options=options
    )
