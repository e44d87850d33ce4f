"""The operator that adds any number of tensors of one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.operators.elementwise.activation_tensors import DTYPES, type_of
from edgeflare.conform.operators.elementwise.real_answers import Loss, answer
from edgeflare.conform.specification.operator_specification import (
    EPSILON,
    FLOAT,
    INT32,
    ExactAnswer,
    Operand,
    OperatorReading,
    OperatorSpecification,
    UnknownOperatorForm,
    reals,
)
from edgeflare.conform.specification.parameter import (
    Configuration,
    Dimensions,
    OperatorParameter,
    Setting,
    Whole,
    dimensions,
    whole,
)


class SumOfMany(OperatorSpecification):
    """ADD_N."""

    operator = "ADD_N"
    types = (FLOAT, INT32)

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the shape and the number of operands."""
        del type_
        return (Dimensions("shape"), Whole("terms", 2, 5))

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        """Return None: any shape can be added to itself."""
        del type_, configuration
        return None

    def build(
        self,
        type_: str,
        configuration: Configuration,
        rng: np.random.Generator,  # noqa: ARG002 - there are no constants
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        one = GraphValue(DTYPES[type_], dimensions(configuration, "shape"))
        return OperatorGraph.of_operator(
            self.operator, [one] * whole(configuration, "terms"), [one]
        )

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        (written,) = graph.results(node)
        read = [one for one in graph.operands(node) if one is not None]
        type_ = type_of(written)
        forms = {(one.dtype, one.shape, one.values is None) for one in (*read, written)}
        if type_ not in self.types or len(forms) > 1 or not 2 <= len(read) <= 5:
            raise UnknownOperatorForm(f"{self.operator} of {len(read)} tensors, {type_}")
        return OperatorReading(type_, {"shape": written.shape, "terms": len(read)})

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the sum of the operands."""
        del options
        present = [one for one in operands if one is not None]
        exact = answer(_total, present, results[0], loss=Loss(1))
        if exact.kind == "bits":
            return (exact,)
        with np.errstate(all="ignore"):
            magnitude = sum(np.abs(one.real) for one in present)
        return (reals(exact.values, exact.slack + len(present) * EPSILON * magnitude),)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        """Return a configuration of the tensor's shape."""
        if value.dtype != DTYPES[type_] or value.quantization is not None:
            return None
        return {**configuration, "shape": value.shape}

    def facts(self, type_: str, configuration: Configuration) -> Mapping[str, Setting]:
        """Return the size of the result."""
        del type_
        return {"size": prod(dimensions(configuration, "shape"))}


def _total(*terms: Values) -> Values:
    return np.asarray(sum(terms))
