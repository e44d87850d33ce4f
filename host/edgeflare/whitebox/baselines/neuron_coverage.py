"""Which neurons an input covers, as DeepXplore (SOSP 2017, section 4.1) defines it.

A neuron is a channel of a layer. The layer's output on one input is scaled to lie between 0 and 1,
and a neuron is covered where the mean of its channel exceeds a threshold. So each input covers some
neurons of each layer, however weak its activations are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.model_probe import Probe, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph

WITHOUT_NEURONS: Final = frozenset(
    (
        *("BATCH_TO_SPACE_ND", "BROADCAST_TO", "CAST", "CONCATENATION", "DEPTH_TO_SPACE"),
        *("DEQUANTIZE", "EXPAND_DIMS", "FILL", "GATHER", "GATHER_ND", "MIRROR_PAD", "PACK", "PAD"),
        *("PADV2", "QUANTIZE", "RANGE", "RANK", "RESHAPE", "REVERSE_V2", "SHAPE", "SLICE"),
        *("SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE"),
        *("TILE", "TRANSPOSE", "UNPACK", "ZEROS_LIKE"),
    )
)
"""Operators that have no values of their own: they move values, write them as another type, or say
what a shape is."""


def covered_neurons(outputs: Iterable[NDArray[np.generic]], threshold: float) -> NDArray[np.bool_]:
    """Return which neurons an input covers.

    Args:
        outputs: outputs of the layers, (..., channels) each; raw or real values, which changes
            nothing where all values of a layer have one scale.
        threshold: threshold from 0 to below 1.

    Returns:
        (neurons,), those of each layer one after the other. A layer whose values are all equal
        covers none.

    """
    (covered,) = covered_at(outputs, (threshold,))
    return np.asarray(covered)


def covered_at(
    outputs: Iterable[NDArray[np.generic]], thresholds: Sequence[float]
) -> NDArray[np.bool_]:
    """Return which neurons an input covers at several thresholds: (thresholds, neurons).

    Args:
        outputs: as for `covered_neurons`, at least one.
        thresholds: thresholds from 0 to below 1.

    """
    means = np.concatenate([scaled_means(values) for values in outputs])
    return np.asarray(means > np.asarray(thresholds)[:, None])


def scaled_means(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the mean of each channel of a layer whose values are scaled to 0 … 1: (channels,).

    Zeros where all values are equal, of which the published code makes numbers that are none.
    """
    real = values.astype(np.float64)
    low, high = real.min(), real.max()
    if low == high:
        return np.zeros(real.shape[-1])
    scaled = (real - low) / (high - low)
    return np.asarray(scaled.reshape(-1, real.shape[-1]).mean(0))


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
            thresholds: thresholds at which neurons count as covered, from 0 to below 1.

        Raises:
            ProbeRefused: no layer can be captured.

        """
        self._probe = probe
        self._thresholds = tuple(thresholds)
        self._layers = [
            tensor
            for layer in graph.layers
            if layer.name not in WITHOUT_NEURONS
            for tensor in layer.outputs
            if graph.tensors[tensor].shape and tensor in probe.made
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

        """
        made = dict(zip(self._probe.made, self._probe.run(inputs), strict=True))
        with np.errstate(invalid="ignore"):  # a layer with infinities covers nothing
            return covered_at((made[tensor] for tensor in self._layers), self._thresholds)
