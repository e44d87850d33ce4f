"""What is known of one layer of the network on one finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgeflare.diagnose.tensor_difference import Difference
from edgeflare.models.tflite_graph import Graph, GraphOp


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """An operator, as a report names it.

    Attributes:
        operator: position in execution order.
        name: "CONV_2D", or a custom operator's own name.
        tensor: name of the first tensor that it puts out; may be empty.

    """

    operator: int
    name: str
    tensor: str

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"operator": self.operator, "name": self.name, "tensor": self.tensor}

    def __str__(self) -> str:
        return f"{self.name} (operator {self.operator})"


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """How far the two sides are apart behind a layer.

    Attributes:
        layer: which.
        total: what has gathered up to here; None where this was not seen.
        own: what this operator adds, when both sides give it the same inputs; None where it was
            not run by itself.

    """

    layer: LayerFigures
    total: Difference | None
    own: Difference | None

    @property
    def new_share(self) -> float | None:
        """Share of the difference that is new here, from 0 to 1; None where not known."""
        if self.total is None or self.own is None:
            return None
        if not self.total.rms_real:
            return 0.0
        return min(1.0, self.own.rms_real / self.total.rms_real)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **self.layer.to_json(),
            "total": None if self.total is None else self.total.to_json(),
            "own": None if self.own is None else self.own.to_json(),
            "new_share": self.new_share,
        }


def layer_of(graph: Graph, one: GraphOp) -> LayerFigures:
    """Name an operator."""
    return LayerFigures(one.index, one.name, graph.tensors[one.outputs[0]].name)
