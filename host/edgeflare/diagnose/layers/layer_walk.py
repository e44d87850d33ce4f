"""The layers of a pair, looked into on one input after the other.

*Entire* is how far a layer's output is off in the network, where the errors of all layers before
add up. *Single* is how far it is off where the operator is given what the original's layers before
put out, rounded to what it reads. The *sensitivity* of a layer is by how much the margin of the
original's decision changes where that output, and nothing else, stands in the original's place.

A device is held against the twin: entire where its runtime captures all tensors, single where both
run each operator by itself, given the same. What an accelerator shows of its inner tensors in other
ways is not what it computes with, also where the model's output is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.layered_models import LayeredModel
from edgeflare.diagnose.layers.against_original import AgainstOriginal, OriginalSide
from edgeflare.diagnose.layers.against_twin import AgainstTwin, DeviceSide
from edgeflare.diagnose.layers.layer_figures import LayerFigures, RangeUse
from edgeflare.diagnose.probed_arm import OpenProbe, ProbedArm
from edgeflare.errors import UserError
from edgeflare.models.model_probe import ProbeFailed, Values


class LayerWalk:
    """Looks into the layers of a pair, input by input.

    Args:
        compressed: the compressed model.
        twin: opens models on the host, with the twin's kernels; its second argument is true to
            capture tensors.
        original: None where there is none whose layers can be seen.
        device: None where none is asked.

    Attributes:
        notes: what could not be seen, each a sentence without its full stop.

    """

    def __init__(
        self,
        compressed: LayeredModel,
        twin: OpenProbe,
        original: OriginalSide | None,
        device: DeviceSide | None,
    ) -> None:
        self._graph = compressed.graph
        self._twin = ProbedArm(compressed.graph, compressed.content, twin)
        self._against = None if original is None else AgainstOriginal(self._graph, original, twin)
        self._device = None
        if device is not None:
            self._device = AgainstTwin(compressed, device)
        self.notes: dict[str, None] = {}

    def close(self) -> None:
        """Close all that was opened."""
        self._twin.close()
        for side in (self._against, self._device):
            if side is not None:
                side.close()

    def add(self, encoded: Values, original_input: Values | None, *, sensitivity: bool) -> None:
        """Look into an input.

        Args:
            encoded: (1, *input shape without its batch dimension), as the compressed model takes
                it.
            original_input: likewise as the original takes it; None without one.
            sensitivity: whether that is measured on this input.

        Raises:
            InfrastructureError: the device or a worker process is lost.

        """
        try:
            outputs = self._twin.outputs([encoded])
            twin = self._twin.observe([encoded], outputs)
        except (ProbeFailed, UserError) as failed:
            self.notes[f"the twin gives no answer: {failed}"] = None
            return
        if twin.method is None:
            self.notes["the twin's layers cannot be seen"] = None
        if self._against is not None and original_input is not None:
            try:
                self._against.add(self._twin, twin.state, original_input, sensitivity=sensitivity)
            except (ProbeFailed, UserError) as failed:
                self.notes[f"the original's layers cannot be seen: {failed}"] = None
        if self._device is not None:
            self._device.add(self._twin, encoded, twin.state, self.notes)

    @property
    def input_range(self) -> RangeUse | None:
        """How the range of the compressed model's input goes with the original's inputs."""
        return None if self._against is None else self._against.input_range

    def figures(self) -> Iterator[LayerFigures]:
        """Yield what is known of each layer, in execution order."""
        for one in self._graph.layers:
            if not one.outputs or not self._graph.tensors[one.outputs[0]].has_values:
                continue
            known = LayerFigures(layer=layer_name(self._graph, one))
            for side in (self._against, self._device):
                if side is not None:
                    known = side.completed(known, one)
            yield known


Progress = Callable[[int, int], None]
"""Is called with the number of inputs that are done, and that of all."""


def walk(
    layers: LayerWalk,
    inputs: Sequence[tuple[Values, Values | None]],
    sensitivity_inputs: int,
    progress: Progress = lambda _done, _all: None,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Look into inputs until they are done or it is stopped; return how many were looked into.

    Args:
        layers: looks into them.
        inputs: as the compressed model takes each, and as the original does.
        sensitivity_inputs: how many of them the sensitivity is measured on.
        progress: is told how far it is.
        stopped: whether the user wants to stop.

    """
    for at, (encoded, original_input) in enumerate(inputs):
        if stopped():
            return at
        layers.add(encoded, original_input, sensitivity=at < sensitivity_inputs)
        progress(at + 1, len(inputs))
    return len(inputs)
