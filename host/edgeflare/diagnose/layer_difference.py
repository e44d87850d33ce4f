"""Where device and twin begin to differ along a network, and how much behind each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeflare.diagnose.tensor_difference import Difference
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.record.json_types import Count, Share

Method = Literal["capture", "exposure", "prefix", "none"]
"""How the layers were observed: by capturing all tensors, by making all tensors outputs, by
bisection over prefixes of the network, or not at all."""


@dataclass(frozen=True, slots=True)
class LayerName:
    """The name of a layer, which is an operator of the network, as reports show it.

    Attributes:
        operator: position in execution order.
        name: the operator, as CONV_2D; a custom operator's own name.
        tensor: name of the first tensor that it puts out; empty where that or the tensor is
            missing.

    """

    operator: Count
    name: str
    tensor: str

    def __str__(self) -> str:
        return "the input" if self.operator < 0 else f"{self.name} (operator {self.operator})"


def layer_name(graph: Graph, one: GraphOp) -> LayerName:
    """Return the name of an operator's layer."""
    made = one.outputs[:1]
    return LayerName(one.index, one.name, graph.tensors[made[0]].name if made else "")


@dataclass(frozen=True, slots=True)
class LayerDifference(LayerName):
    """How much device and twin differ behind a layer.

    Attributes:
        total: the difference that all layers up to here have caused; null where it was not
            observed.
        own: what the operator adds, when both sides give it the twin's inputs; null where it was
            not run in isolation.
        new_share: share of the total difference that this layer causes; null where not known.
        hidden: whether the device shows something else of it than what it computes, so that the
            total difference is not known.

    """

    total: Difference | None
    own: Difference | None
    new_share: Share | None
    hidden: bool


@dataclass(frozen=True, slots=True)
class KernelOnset:
    """Where device and twin begin to differ on one input.

    Attributes:
        method: how it was found: by capturing all tensors, by making all tensors outputs, by
            bisection over prefixes of the network, or not at all.
        onset: the layer where they begin to differ; null where they do not, or it was not found.
        first: whether no earlier layer differs; else the onset is one of perhaps several.
        most: the layer that adds most by itself; null where that is not known, or none does.
        layers: those that were observed, in execution order.
        perturbation: how far looking moved an output; null where it did not.
        device_runs: device queries spent.
        note: what could not be done, as a sentence without its full stop; else empty.

    """

    method: Method
    onset: LayerName | None = None
    first: bool = False
    most: LayerName | None = None
    layers: tuple[LayerDifference, ...] = ()
    perturbation: Difference | None = None
    device_runs: Count = 0
    note: str = ""

    @property
    def in_layer(self) -> bool | None:
        """Whether some layer makes device and twin differ, given the same inputs.

        Either it does in isolation, or a layer before it was equal. An operator in isolation may
        run elsewhere than in its network: where the rest of a network falls back to the CPU, an
        accelerator may take one of these operators alone.

        Returns:
            None where no layer was observed.

        """
        own = [layer.own for layer in self.layers if layer.own is not None]
        if any(one.parted for one in own):
            return True
        equal = any(
            one.total is not None and not one.total.parted
            for one in self.layers
            if self.onset is None or one.operator < self.onset.operator
        )
        if equal and (self.onset is not None or self.layers[-1].hidden):
            return True
        return False if own else None


def layer_difference(
    layer: LayerName, total: Difference | None, own: Difference | None, *, hidden: bool = False
) -> LayerDifference:
    """Return how much device and twin differ behind a layer, by what was observed of it."""
    new_share = None
    if total is not None and own is not None:
        new_share = min(1.0, own.rms_real / total.rms_real) if total.rms_real else 0.0
    return LayerDifference(layer.operator, layer.name, layer.tensor, total, own, new_share, hidden)
