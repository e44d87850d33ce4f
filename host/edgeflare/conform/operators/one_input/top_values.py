"""The greatest values along the last axis, and where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.operators.one_input.constants_and_options import constant, only_value
from edgeflare.conform.operators.one_input.one_input_operator import (
    OneInputOperator,
    ResultQuantization,
)
from edgeflare.conform.specification.exact_answer import ExactAnswer, bits
from edgeflare.conform.specification.operator_specification import (
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Operand,
)
from edgeflare.conform.specification.parameter import Whole
from edgeflare.conform.specification.settings import Configuration, Setting, dimensions, whole


class TopValues(OneInputOperator):
    """The k greatest values along the last axis in falling order, the first of equal ones first."""

    quantized_result: ResultQuantization = "equal"
    constant_operands = 1
    own = (Whole("k", 0, 33, limit=2**20, rare=(0,)),)

    def constants(self, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return how many values: ()."""
        return (constant(whole(configuration, "k")),)

    def settings(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        constants: Sequence[Values],
    ) -> Mapping[str, Setting]:
        """Return how many values."""
        return {"k": only_value(constants)}

    def fitting(
        self, configuration: Configuration, rng: np.random.Generator
    ) -> Mapping[str, Setting]:
        """Return at most as many values as there are, or as were drawn."""
        size, k = dimensions(configuration, "shape")[-1], whole(configuration, "k")
        return {"k": k if k <= size else int(rng.integers(min(1, size), size + 1))}

    def fitted(self, configuration: Configuration) -> Mapping[str, Setting]:
        """Return at most as many values as there are."""
        return {"k": min(whole(configuration, "k"), dimensions(configuration, "shape")[-1])}

    def fault(self, type_: str, configuration: Configuration) -> str | None:  # noqa: ARG002
        """Return why a configuration is no valid model, or None."""
        size, k = dimensions(configuration, "shape")[-1], whole(configuration, "k")
        return f"the greatest {k} of {size} values" if k > size else None

    def results(self, type_: str, configuration: Configuration) -> tuple[GraphValue, ...]:
        """Return the values and their indexes."""
        shape = (*dimensions(configuration, "shape")[:-1], whole(configuration, "k"))
        return self.result(type_, configuration, shape), GraphValue("int32", shape)

    def answers(
        self,
        options: Mapping[str, Option],  # noqa: ARG002
        operand: Operand,
        constants: Sequence[Values],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        """Return raw values, and their indexes."""
        raw, k = operand.raw, only_value(constants)
        # The complement falls where a whole number rises, at the ends of its type as well.
        falling = -raw if raw.dtype.kind == "f" else ~raw
        indexes = np.argsort(falling, -1, kind="stable")[..., :k]
        return bits(np.take_along_axis(raw, indexes, -1)), bits(indexes.astype(np.int32))


TOP_VALUES = (TopValues("TOPK_V2", (FLOAT, INT8, UINT8, INT16, INT32, INT64), {INT8: 2, INT16: 3}),)
"""The operator that finds the greatest values."""
