"""Which neurons of a model an input covers, by the tensors that a runtime captures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.model_probe import Probe, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.whitebox.neuron_coverage import WITHOUT_NEURONS, covered_at


class CapturedNeurons:
    """The neurons of a model: the channels of its layers, in execution order.

    Layers that do not depend on the input, have no values of their own or cannot be captured have
    none, and so have outputs without dimensions.

    Attributes:
        count: how many there are.

    """

    def __init__(self, graph: Graph, probe: Probe, thresholds: Sequence[float]) -> None:
        """Take a model.

        Args:
            graph: the model's.
            probe: runs it, and captures its tensors.
            thresholds: at which neurons count as covered, from 0 to below 1 each.

        Raises:
            ProbeRefused: no layer can be captured.

        """
        self._probe = probe
        self._thresholds = tuple(thresholds)
        self._layers = [
            tensor
            for one in graph.layers
            for tensor in _values_of(graph, one)
            if probe.captures and tensor in probe.made
        ]
        self.count = sum(graph.tensors[tensor].shape[-1] for tensor in self._layers)
        if not self.count:
            raise ProbeRefused("the runtime there captures no tensor")

    def covered(self, inputs: Sequence[Values]) -> NDArray[np.bool_]:
        """Return which neurons an input covers: (thresholds, neurons).

        Args:
            inputs: one array for each input of the model, in its shape and dtype.

        Raises:
            ProbeFailed: the model gives no answer.
            InfrastructureError: whatever runs the model is lost.

        """
        made = dict(zip(self._probe.made, self._probe.run(inputs), strict=True))
        with np.errstate(invalid="ignore"):  # a layer with infinities covers nothing
            return covered_at((made[tensor] for tensor in self._layers), self._thresholds)


def _values_of(graph: Graph, one: GraphOp) -> list[int]:
    """Return the outputs of an operator whose channels are neurons."""
    if one.name in WITHOUT_NEURONS:
        return []
    return [tensor for tensor in one.outputs if graph.tensors[tensor].shape]
