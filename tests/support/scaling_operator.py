"""An operator that multiplies by a constant, as a specification and as answers to be judged."""

# ruff: noqa: ARG002 - the arguments of a specification are those of all specifications

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer
from edgeflare.conform.graphs.operator_graph import (
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
    Values,
)
from edgeflare.conform.specification.exact_answer import ExactAnswer, bits, reals, steps
from edgeflare.conform.specification.operator_specification import (
    Operand,
    OperatorReading,
    OperatorSpecification,
)
from edgeflare.conform.specification.parameter import OperatorParameter
from edgeflare.conform.specification.settings import Configuration
from edgeflare.conform.verdict.judging import judged
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

FACTOR = 0.37


class ScalingOperator(OperatorSpecification):
    """Multiplies one operand by `FACTOR`; of int32 it is the identity, to the bit."""

    operator = "MUL"
    types = ("float32", "int8", "uint8", "int32")

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        return ()

    def fault(self, type_: str, configuration: Configuration) -> str | None:
        return None

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        return scaling(type_, (3, 5)).graph

    def read(self, graph: OperatorGraph) -> OperatorReading:
        return OperatorReading(graph.values[0].dtype, {})

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        (given,), (made,) = operands, results
        assert given is not None
        if made.quantization is not None:
            return (steps(given.real * FACTOR),)
        return (reals(given.real * FACTOR) if made.dtype == "float32" else bits(given.raw),)

    def with_input(
        self, type_: str, configuration: Configuration, value: GraphValue
    ) -> Configuration | None:
        return None


@dataclass(frozen=True)
class Scaling:
    """A model of the operator.

    Attributes:
        type: of the operator.
        graph: of the operator alone.

    """

    type: str
    graph: OperatorGraph

    @property
    def made(self) -> GraphValue:
        """Its result."""
        return self.graph.values[1]

    def right(self, given: Values) -> Values:
        """Return the answers that are rounded exactly: (rows, *shape)."""
        made = self.made
        if made.quantization is None:
            factor = FACTOR if made.dtype == "float32" else 1
            with np.errstate(all="ignore"):
                return np.asarray(given * np.asarray(factor, made.dtype), made.dtype)
        return self.rounded(np.rint(self.in_steps(given)))

    def in_steps(self, given: Values) -> NDArray[np.float64]:
        """Return the exact answers in steps of the result: (rows, *shape)."""
        assert self.made.quantization is not None
        real = self.graph.values[0].real(given) * FACTOR
        return np.asarray(real / self.made.quantization.scales[0]) + self.zero_point

    @property
    def zero_point(self) -> int:
        """That of its result."""
        assert self.made.quantization is not None
        return self.made.quantization.zero_point

    def rounded(self, steps: NDArray[np.float64]) -> Values:
        """Return steps saturated to the result's type."""
        known = np.iinfo(self.made.dtype)
        return np.clip(steps, known.min, known.max).astype(self.made.dtype)

    def judged(self, given: Values, **answers: Values | ModelAnswer) -> KernelJudgement:
        """Judge the answers of arms, by their names, to one operand: (rows, *shape) each."""
        known = {
            name: one if isinstance(one, ModelAnswer) else ModelAnswer((one,))
            for name, one in answers.items()
        }
        return judged(ScalingOperator(), self.type, self.graph, (given,), known)


def scaling(type_: str, shape: tuple[int, ...], step: float = 0.04) -> Scaling:
    """Return a model that takes and gives tensors of a shape; `step` is the result's scale."""
    quantization = made = None
    if type_ in ("int8", "uint8"):
        middle = 3 if type_ == "int8" else 131
        quantization, made = Quantization((0.1,), middle), Quantization((step,), middle + 9)
    given = GraphValue(type_, shape, quantization)
    result = GraphValue(type_, shape, made)
    return Scaling(type_, OperatorGraph.of_operator("MUL", [given], [result]))
