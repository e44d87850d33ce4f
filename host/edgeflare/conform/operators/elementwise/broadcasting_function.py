"""What an operator with several operands computes, as a row of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from edgeflare.conform.graphs.operator_graph import Option, Values
from edgeflare.conform.operators.elementwise.real_answers import NO_LOSS, Loss
from edgeflare.conform.specification.operator_specification import Operand
from edgeflare.conform.specification.settings import Configuration


@dataclass(frozen=True, slots=True)
class BroadcastingFunction:
    """What one operator computes, and in which models.

    Attributes:
        operator: its name in the schema.
        versions: of each type, the lowest version that has it.
        of: the function of float64 values, or of int64 ones of whole numbers.
        loss: what float32 arithmetic may lose.
        kind: "choice" of one of the operands' values as it stands, "order" of their values, or
            "arithmetic".
        roles: of the operands, in their order; "condition" is bool.
        scales: "each" operand and the result have their own, "operands" have their own and the
            result none, or "one" is that of all.
        result: the type of the result, if it is not that of the operands.
        activations: fused ones; () for an operator without that option.
        most_rank: of results of which operands are broadcast.
        stretched: operands that may be broadcast.
        constants: operands that may be constants.
        fixed_options: options of the schema that are always the same, by type.
        raised_version: the lowest version for an operand of a shape, or for scales.
        least_output: the least scale of the result for a configuration that kernels take.
        adjust: changes the values of the operands in place, to ones for which there is a result,
            or which show more.

    """

    operator: str
    versions: Mapping[str, int]
    of: Callable[..., Values]
    loss: Loss = NO_LOSS
    kind: Literal["arithmetic", "choice", "order"] = "arithmetic"
    roles: tuple[str, ...] = ("first", "second")
    scales: Literal["each", "operands", "one"] = "each"
    result: str | None = None
    activations: tuple[str, ...] = ()
    most_rank: int = 5
    stretched: tuple[str, ...] = ("first", "second")
    constants: tuple[str, ...] = ("second", "first")
    fixed_options: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)
    raised_version: Callable[[Configuration], int] = lambda _: 1
    least_output: Callable[[str, Configuration], float] = lambda _, __: 0.0
    adjust: Callable[[Sequence[Operand]], None] = lambda _: None
