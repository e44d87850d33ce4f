"""The operators of the user's model as they stand, and then what is near them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.drafts.cells import (
    Cell,
    cell_parameters,
    drawn_configuration,
    drawn_seed,
    with_setting,
)
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import FRESH, DraftNode, NodeGraphs
from edgeflare.conform.drafts.drawing import NodeDrawing
from edgeflare.conform.drafts.model_reading import ReadOperator
from edgeflare.conform.specification.parameter import Configuration, Setting

_MOST_TRIES = 6
"""Changes of one configuration that are tried before more of its settings give way."""

_MOST_VALUES = 4096
"""Most values of a tensor in models near the user's: an operator on a large image takes a device as
long as hundreds of small ones, and its kernels are the same."""

_LEAST_HALVED = 8
"""Sizes below it stay: kernels treat the ends of a row otherwise than its middle."""


class NearDrawing(NodeDrawing):
    """Draws each operator of a model as it stands, then models with one or two other settings."""

    def __init__(
        self, operators: Sequence[ReadOperator], coverage: Coverage, rng: np.random.Generator
    ) -> None:
        """Begin.

        Args:
            operators: distinct operators of the model.
            coverage: is told what is drawn; operators of cells that it lacks are left out.
            rng: every draw.

        """
        super().__init__(coverage, rng)
        known = [operator for operator in operators if operator.cell in coverage.cells]
        self._standing = deque(read_node(read) for read in known)
        self._nodes = [
            replace(read_node(read), configuration=smaller_configuration(read)) for read in known
        ]

    @property
    def most_failed(self) -> int:
        """As many as there are operators."""
        return len(self._nodes)

    def drawn(self) -> DraftNode | None:
        """Return the next operator as it stands, or one near any of them."""
        if self._standing:
            return self._standing.popleft()
        if not self._nodes:
            return None
        node = self._nodes[int(self._rng.integers(len(self._nodes)))]
        configuration = near_configuration(node, self._rng)
        if configuration is None:
            return None
        near = DraftNode(*node.cell, configuration, drawn_seed(self._rng), ())
        return replace(near, sources=(FRESH,) * len(self._graphs.operands(near)))


def read_node(read: ReadOperator) -> DraftNode:
    """Return an operator of a model as a node that nothing feeds."""
    fresh = (FRESH,) * len(read.graph.inputs)
    return DraftNode(*read.cell, read.reading.configuration, 0, fresh, read.place)


def near_configuration(node: DraftNode, rng: np.random.Generator) -> Configuration | None:
    """Return a valid configuration with one or two settings unlike a node's.

    Settings beyond what is ever drawn, such as the size of a large image, are drawn anew as well.
    Where others depend on those, as few as can be are unlike.
    """
    parameters = cell_parameters(node.cell)
    large = [
        known for known in parameters if known.fault(node.configuration[known.name]) is not None
    ]
    for _ in range(_MOST_TRIES):
        changed = [parameters[at] for at in rng.permutation(len(parameters))[: rng.integers(1, 3)]]
        configuration: Configuration | None = node.configuration
        for parameter in (*large, *changed):
            if configuration is not None:
                configuration = with_setting(
                    node.cell, configuration, parameter.name, parameter.draw(rng)
                )
        if configuration is not None:
            return configuration
    near = drawn_configuration(node.cell, rng)
    if near is None:
        return None
    for at in rng.permutation(len(parameters))[2:]:
        name = parameters[at].name
        near = with_setting(node.cell, near, name, node.configuration[name]) or near
    return near


def smaller_configuration(read: ReadOperator) -> Configuration:
    """Return an operator's configuration with its sizes halved until its tensors are small.

    As far as that is valid: the number of channels may be bound to that of weights.
    """
    configuration = read.reading.configuration
    graph = read.graph
    while max(value.size for value in graph.values) > _MOST_VALUES:
        smaller = next(_halved(read.cell, configuration), None)
        if smaller is None:
            break
        configuration = smaller
        graph = NodeGraphs().graph(DraftNode(*read.cell, configuration, 0, ()))
    return configuration


def _halved(cell: Cell, configuration: Configuration) -> Iterator[Configuration]:
    """Yield valid configurations with one size halved, the largest first."""
    sizes = [
        (max(setting) if isinstance(setting, tuple) else setting, parameter.name)
        for parameter in cell_parameters(cell)
        if parameter.kind == "shape" and (setting := configuration[parameter.name])
    ]
    whole = [(size, name) for size, name in sizes if isinstance(size, int)]
    for size, name in sorted(whole, reverse=True):
        if size >= 2 * _LEAST_HALVED:
            setting = configuration[name]
            half: Setting = size // 2
            if isinstance(setting, tuple):
                at = setting.index(size)
                half = (*setting[:at], size // 2, *setting[at + 1 :])
            smaller = with_setting(cell, configuration, name, half)
            if smaller is not None:
                yield smaller
