"""The ways in which an operator is tried in graphs: its settings, constants and operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import (
    Cell,
    cell_parameters,
    drawn_configuration,
    drawn_seed,
    with_setting,
)
from edgeflare.conform.drafts.draft import DraftNode, NodeGraphs, fits, node_fed
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.graph_arrangement import VIEWS
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.operator_graph import GraphValue, Quantization
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import DTYPES

SHAPES: Final = ((1, 4, 4, 8), (1, 8), (2, 3, 4), (6,))
"""Shapes of what is given, those first that most operators and all accelerators take."""

BATCHES: Final = ((3, 4, 4, 8), (5, 8))
"""Shapes of batches, that of images first."""

_QUANTIZATIONS: Final[Mapping[str, Quantization]] = {
    "int8": Quantization((0.0625,), -3),
    "uint8": Quantization((0.0625,), 125),
    "int16": Quantization((2.0**-11,), 0),
}
"""How what is given is quantized, by its dtype."""

TRIES: Final = 4
"""Draws of a node until it takes what it is to be fed with."""

_SEVERAL: Final = ("SPLIT", "SPLIT_V", "UNPACK")
"""Operators that are tried with several results: with one they do nothing."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An operator, and how it is fed.

    Attributes:
        node: the operator, as it is fed with a base value.
        twice: whether its first two operands are the same tensor.

    """

    node: DraftNode
    twice: bool = False


DrawnGraph = tuple[tuple[Variant, ...], PosedModel]
"""A graph with what it is given, and the variants of its operators in their order."""


@dataclass(frozen=True, slots=True)
class OperatorVariants:
    """Draws the ways in which operators are tried.

    Attributes:
        rng: every draw.
        graphs: builds operators.

    """

    rng: np.random.Generator
    graphs: NodeGraphs

    def of(self, cell: Cell) -> Iterator[Variant]:
        """Yield the ways in which an operator is tried: its constants, and one operand twice."""
        choices = next((p for p in cell_parameters(cell) if p.name == "constant"), None)
        for constant in ("none", "second") if choices is not None else (None,):
            found = self._plain(cell, constant)
            if found is None:
                continue
            yield Variant(found)
            if constant != "second" and self._takes_twice(found):
                yield Variant(found, twice=True)

    def _plain(self, cell: Cell, constant: str | None) -> DraftNode | None:
        """Return an operator with settings as plain as can be, or None."""
        tries = TRIES if cell[0] not in _SEVERAL else 4 * TRIES
        for shape in SHAPES:
            for _ in range(tries):
                drawn = drawn_configuration(cell, self.rng)
                if drawn is None:
                    return None
                for parameter in cell_parameters(cell):
                    name, wanted = parameter.name, parameter.simplest
                    if parameter.kind != "mode" and "broadcast" not in name:
                        continue
                    wanted = constant if name == "constant" and constant else wanted
                    drawn = with_setting(cell, drawn, name, wanted) or drawn
                node = DraftNode(*cell, drawn, drawn_seed(self.rng), ())
                fed = node_fed(node, {0: base_value(cell[1], shape)}, self.graphs)
                if fed is not None and cell[0] in _SEVERAL and not self.has_several(fed):
                    continue
                if fed is not None and (constant is None or drawn["constant"] == constant):
                    return fed
        return None

    def has_several(self, node: DraftNode) -> bool:
        """Return whether an operator has two results that are read together, and no empty one."""
        graph = self.graphs.graph(node)
        several = [graph.values[at] for at in graph.outputs]
        return len(several) > 1 and fits(*several[:2]) and all(value.size for value in several)

    def _takes_twice(self, node: DraftNode) -> bool:
        operands = self.graphs.operands(node)
        if len(operands) < 2:
            return False
        return node_fed(node, {0: operands[0], 1: operands[0]}, self.graphs) is not None

    def rescaled(self, variant: Variant) -> Variant:
        """Return an operator that reads a tensor twice, with another scale of its result."""
        scale = 2.0 ** int(self.rng.integers(-8, 3))
        node = variant.node
        drawn = {**node.configuration, "output_scale": scale}
        fault = known_operators()[node.operator].invalid(node.type, drawn)
        return variant if fault else Variant(replace(node, configuration=drawn), twice=True)

    def reading(
        self,
        builder: GraphBuilder,
        variant: Variant,
        reads: Mapping[int, int],
        tries: int = TRIES,
    ) -> tuple[int, ...] | None:
        """Add an operator that reads some tensors, with other settings if its own do not fit.

        Args:
            builder: the graph that grows.
            variant: the operator.
            reads: the tensors that it reads, by which of its operands they are.
            tries: draws of other settings at most.

        Returns:
            The tensors that it writes; None, with nothing added, where it cannot read them.

        """
        written = builder.add(variant.node, reads)
        for _ in range(tries):
            drawn = drawn_configuration(variant.node.cell, self.rng)
            if written is not None or drawn is None or variant.twice:
                break
            written = builder.add(replace(variant.node, configuration=drawn), reads)
        return written

    def other_view(self, variant: Variant) -> Variant:
        """Return a view with other settings, such as another shape, and all else as it is."""
        cell = variant.node.cell
        drawn = drawn_configuration(cell, self.rng) if cell[0] in VIEWS else None
        if drawn is None:
            return variant
        return Variant(replace(variant.node, configuration=drawn))

    def other_settings(self, variant: Variant) -> Variant:
        """Return a variant with other settings, such as an activation."""
        drawn = drawn_configuration(variant.node.cell, self.rng)
        if drawn is None or variant.twice:
            return variant
        return Variant(
            replace(variant.node, configuration=drawn, constants_seed=drawn_seed(self.rng))
        )


def base_value(type_: str, shape: tuple[int, ...]) -> GraphValue:
    """Return a tensor of a type that is given to graphs."""
    dtype = DTYPES[type_]
    return GraphValue(dtype, shape, _QUANTIZATIONS.get(dtype))
