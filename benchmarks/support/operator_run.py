"""One operator as a kernel is asked for it, and what a right kernel answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import Operand
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.verdict.exact_rows import row_operands

Steps = NDArray[np.float64]
Rounding = Callable[[Steps, "np.iinfo[Any]", int], Steps]
"""What makes whole steps, before they are stored, of steps, the result's type and zero point."""


@dataclass(frozen=True)
class OperatorRun:
    """One operator with the values that it reads.

    Attributes:
        operator: its name in the schema.
        options: by their names there.
        operands: in its order.
        results: the tensors that it writes.

    """

    operator: str
    options: Mapping[str, Option]
    operands: tuple[Operand | None, ...]
    results: tuple[GraphValue, ...]

    @classmethod
    def of(cls, graph: OperatorGraph, given: Sequence[Values]) -> OperatorRun:
        """Return the run of a graph of one operator on one row."""
        (node,) = graph.nodes
        operands = row_operands(graph, given)
        return cls(node.operator, node.options, operands, graph.results(node))

    def exact(self) -> tuple[ExactAnswer, ...]:
        """Return the exact answers."""
        with np.errstate(all="ignore"):
            specification = known_operators()[self.operator]
            return specification.exact(self.options, self.operands, self.results)

    def answer(self, rounding: Rounding | None = None) -> list[Values]:
        """Return what a kernel answers that computes exactly and rounds at last.

        Its arrays have the shapes that follow from options and operands, which are not those of
        `results` where a fault has changed them.
        """
        rounding = rounding or nearest
        return [_stored(*both, rounding) for both in zip(self.exact(), self.results, strict=True)]

    def with_operand(self, at: int, operand: Operand) -> OperatorRun:
        """Return the run with another operand in a place."""
        operands = (*self.operands[:at], operand, *self.operands[at + 1 :])
        return replace(self, operands=operands)

    def with_options(self, **options: Option) -> OperatorRun:
        """Return the run with other options."""
        return replace(self, options={**self.options, **options})

    def given(self) -> int:
        """Return the place of the first operand that is no constant; 0 if all are."""
        given = (
            at
            for at, one in enumerate(self.operands)
            if one is not None and one.value.values is None
        )
        return next(given, 0)


def nearest(steps: Steps, known: np.iinfo[Any], middle: int) -> Steps:
    """Round to the nearest, and saturate."""
    return np.clip(np.rint(steps), known.min, known.max)


def _stored(exact: ExactAnswer, value: GraphValue, rounding: Rounding) -> Values:
    if exact.kind == "bits":
        return np.asarray(exact.values, value.dtype)
    with np.errstate(all="ignore"):
        if exact.kind == "reals" or value.quantization is None:
            return exact.values.astype(value.dtype)
        middle = value.quantization.zero_point
        steps = exact.values / value.quantization.spread(exact.values.ndim) + middle
        whole = rounding(steps, np.iinfo(value.dtype), middle)
        return np.nan_to_num(whole).astype(np.int64).astype(value.dtype)
