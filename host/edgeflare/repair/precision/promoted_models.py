"""Files of a compressed model with some of its blocks promoted, and the error of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeflare.errors import UserError
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import Rewritten, float_operators, int16_operators
from edgeflare.repair.fitting.weight_rounding import RoundedLayer
from edgeflare.repair.precision.blocks import operators_of
from edgeflare.repair.precision.margin_comparison import MarginComparison, MarginDifference
from edgeflare.repair.precision_details import Block, Precision


@dataclass(frozen=True, slots=True)
class PromotedModel:
    """A file with some blocks promoted, as it was measured.

    Attributes:
        blocks: the promoted ones, in the order of their promotion.
        error: of its margins on the inputs to fit with.
        size: in bytes.

    """

    blocks: tuple[Block, ...]
    error: MarginDifference
    size: int


Measure = Callable[[Sequence[Block]], PromotedModel | None]
"""Returns the file with some blocks in float; None where there is none that runs."""


class PromotedModels:
    """Makes files of a network with blocks promoted to float, and measures each set once."""

    def __init__(
        self,
        network: QuantizedNetwork,
        comparison: MarginComparison,
        rounded: Sequence[RoundedLayer] = (),
    ) -> None:
        """Take a network; nothing is made yet.

        Args:
            network: whose other blocks stay as they are.
            comparison: with the original's answers.
            rounded: layers of the original whose weights are rounded already, as blocks in float
                have them.

        """
        self._network = network
        self._rounded = rounded
        self._comparison = comparison
        self._known: dict[tuple[int, ...], tuple[MarginDifference, int] | None] = {}

    def measured(self, blocks: Sequence[Block]) -> PromotedModel | None:
        """Return the file with these blocks in float; None where there is none that runs.

        Raises:
            InfrastructureError: a worker process is lost.

        """
        operators = operators_of(blocks)
        if operators not in self._known:
            self._known[operators] = self._measured(operators)
        found = self._known[operators]
        return None if found is None else PromotedModel(tuple(blocks), *found)

    def made(self, blocks: Sequence[Block], precision: Precision = "float") -> Rewritten:
        """Make the file with some blocks promoted, one at least.

        Raises:
            UserError: the quantizer does not rewrite the model so.

        """
        if precision == "int16":
            return int16_operators(self._network, operators_of(blocks))
        return float_operators(self._network, operators_of(blocks), self._rounded)

    def _measured(self, operators: tuple[int, ...]) -> tuple[MarginDifference, int] | None:
        content = self._network.content
        try:
            if operators:
                content = float_operators(self._network, operators, self._rounded).content
            return self._comparison.error(content), len(content)
        except UserError:  # the quantizer or the runtime refuses this one file
            return None
