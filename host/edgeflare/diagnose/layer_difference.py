"""The difference between two arms behind one layer of the network, on one finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgeflare.diagnose.tensor_difference import Difference
from edgeflare.models.tflite_graph import Graph, GraphOp


@dataclass(frozen=True, slots=True)
class LayerName:
    """The name of a layer, which is an operator of the graph, as reports show it.

    Attributes:
        operator: position in execution order; -1 for the model's input.
        name: "CONV_2D", or a custom operator's own name.
        tensor: name of its first output tensor; empty where that or the tensor is missing.

    """

    operator: int
    name: str
    tensor: str

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"operator": self.operator, "name": self.name, "tensor": self.tensor}

    def __str__(self) -> str:
        return "the input" if self.operator < 0 else f"{self.name} (operator {self.operator})"


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """How much two arms differ behind a layer.

    Attributes:
        layer: the layer.
        total: the difference that all layers up to here have caused; None where it was not
            observed.
        own: the difference that this operator alone causes, when both arms give it the same
            inputs; None where it was not run in isolation.
        hidden: the device shows something else of this layer than what it computes, so the total
            difference is not known.

    """

    layer: LayerName
    total: Difference | None
    own: Difference | None
    hidden: bool = False

    @property
    def new_share(self) -> float | None:
        """Share of the total difference that this layer causes, 0 to 1; None where not known."""
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
            "hidden": self.hidden,
        }


def layer_name(graph: Graph, one: GraphOp) -> LayerName:
    """Return the name of an operator's layer."""
    made = one.outputs[:1]
    return LayerName(one.index, one.name, graph.tensors[made[0]].name if made else "")
