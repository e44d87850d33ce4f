"""A compressed model that is fitted, its original, and the inputs that it is fitted with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.matched_layers import MatchedLayer, matched_layers


@dataclass(frozen=True, eq=False)
class QuantizedNetwork:
    """A compressed model as it is now, and what it is fitted to.

    Attributes:
        content: the compressed model's `.tflite` file.
        original: the float model's.
        rows: inputs to fit with, (n, ...), encoded for the compressed model.
        original_rows: the same inputs, encoded for the float model.

    """

    content: bytes
    original: bytes
    rows: NDArray[np.generic]
    original_rows: NDArray[np.float32]

    @cached_property
    def graph(self) -> Graph:
        """The compressed model's graph."""
        return Graph(self.content, "the compressed model")

    @cached_property
    def original_graph(self) -> Graph:
        """The float model's graph."""
        return Graph(self.original, "the original")

    @cached_property
    def layers(self) -> tuple[MatchedLayer, ...]:
        """The layers that have a counterpart, in execution order; see `matched_layers`."""
        return matched_layers(self.graph, self.original_graph)

    def with_content(self, content: bytes) -> QuantizedNetwork:
        """Return the network with another file in the place of the compressed model's."""
        return replace(self, content=content)
