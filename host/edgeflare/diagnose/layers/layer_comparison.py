"""The layers of a pair, looked into on one input after the other.

*Entire* is how far a layer's output is off in the network, where the errors of all layers before
add up. *Single* is how far the twin's operator by itself is off from the original's, both given the
original's values, rounded as the twin's reads them. The *sensitivity* of a layer is by how much the
margin of the original's decision changes where that error is added to its output, and nothing else
is changed.

A device is held against the twin: entire where its runtime captures all tensors, single where both
run each operator by itself, given the same. What an accelerator shows of its inner tensors in other
ways is not what it computes with, also where the model's output is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from edgeflare.diagnose.arm_probe import OpenProbe, ProbedArm
from edgeflare.diagnose.layer_difference import LayerName, layer_name
from edgeflare.diagnose.layer_graphs import LayeredModel
from edgeflare.diagnose.layers.device_comparison import DeviceComparison, DeviceSide
from edgeflare.diagnose.layers.layer_figures import ComparisonNotes, LayerFigures, RangeUse
from edgeflare.diagnose.layers.original_comparison import OriginalComparison, OriginalSide
from edgeflare.errors import UserError
from edgeflare.models.model_probe import ProbeFailed, Values


class LayerComparison:
    """Looks into the layers of a pair, input by input.

    Args:
        compressed: the compressed model.
        twin: opens models on the host, with the twin's kernels; its second argument is true to
            capture tensors.
        original: None where there is none whose layers can be seen.
        device: None where none is asked.

    Attributes:
        notes: what could not be seen.
        inputs: how many inputs were looked into.

    """

    def __init__(
        self,
        compressed: LayeredModel,
        twin: OpenProbe,
        original: OriginalSide | None,
        device: DeviceSide | None,
    ) -> None:
        self._graph = compressed.graph
        self.notes = ComparisonNotes()
        self.inputs = 0
        self._twin = ProbedArm(compressed.graph, compressed.content, twin)
        self._original = None
        if original is not None:
            self._original = OriginalComparison(self._graph, original, twin, self.notes)
        self._device = None
        if device is not None:
            self._device = DeviceComparison(compressed, device, self.notes)

    def close(self) -> None:
        """Close all that was opened."""
        self._twin.close()
        for side in (self._original, self._device):
            if side is not None:
                side.close()

    def add(self, input_: ComparedInput, stopped: Callable[[], bool] = lambda: False) -> None:
        """Look into an input; what takes long on a device ends where it is stopped."""
        try:
            outputs = self._twin.outputs([input_.encoded])
            twin = self._twin.observe([input_.encoded], outputs)
        except (ProbeFailed, UserError) as failed:
            self.notes.add("twin", f"the twin gives no answer: {failed}")
            return
        if twin.method is None:
            self.notes.add("layers", "the twin's layers cannot be seen")
        seen = self._original is None
        if self._original is not None and input_.original is not None:
            try:
                self._original.add(
                    self._twin, twin.state, input_.original, sensitivity=input_.sensitivity
                )
                seen = True
            except (ProbeFailed, UserError) as failed:
                self.notes.add("original", f"the original's layers cannot be seen: {failed}")
        if self._device is not None:
            self._device.add(self._twin, input_.encoded, twin.state, stopped)
            seen = True
        self.inputs += seen

    @property
    def input_range(self) -> RangeUse | None:
        """How the range of the compressed model's input goes with the original's inputs."""
        return None if self._original is None else self._original.input_range

    @property
    def outputs_differ(self) -> int | None:
        """How many inputs device and twin give other outputs on; None without a device."""
        return None if self._device is None else self._device.outputs_differ

    @property
    def together(self) -> tuple[LayerName, ...]:
        """Operators that the device computes rightly by themselves and wrongly together."""
        found = () if self._device is None else self._device.together
        return tuple(layer_name(self._graph, self._graph.operators[op]) for op in found)

    def figures(self) -> Iterator[LayerFigures]:
        """Yield what is known of each layer, in execution order."""
        for layer in self._graph.layers:
            if not layer.outputs or not self._graph.tensors[layer.outputs[0]].has_values:
                continue
            known = LayerFigures(layer=layer_name(self._graph, layer))
            for side in (self._original, self._device):
                if side is not None:
                    known = side.completed(known, layer)
            yield known


@dataclass(frozen=True, slots=True)
class ComparedInput:
    """An input that layers are looked into on.

    Attributes:
        encoded: (1, *input shape without its batch dimension), as the compressed model takes it.
        original: likewise as the original takes it; None without one.
        sensitivity: whether that is measured on it.

    """

    encoded: Values
    original: Values | None
    sensitivity: bool = False


def compare_layers(
    layers: LayerComparison,
    inputs: Sequence[ComparedInput],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Look into inputs until they are done or it is stopped.

    Args:
        layers: looks into them.
        inputs: those to be looked into.
        progress: is called with the number of inputs that are done, and that of all.
        stopped: whether the user wants to stop.

    """
    for at, input_ in enumerate(inputs):
        if stopped():
            return
        layers.add(input_, stopped)
        progress(at + 1, len(inputs))
