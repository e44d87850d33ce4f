"""DARE: the layer before the last of a compressed network made to give what the original's gives.

§4.1, with the original as the oracle that the paper looks for among the checkpoints of a training:
it is the network that the compressed one was made from. Slices are of the original's classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.repair.fitting.activation_ranges import activation_limits, counterparts
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.gradient_descent import Tuning
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.post_training.layer_regression import Oracle, tuned
from edgeflare.repair.post_training.network_slice import group_slices

_SLICE = 95.0
"""Percent of the synapses that a slice keeps (q, §4.2.4)."""

_TUNING = Tuning(steps=1200, rate=0.03)


def fit_dare(
    network: QuantizedNetwork,
    percent: float | None,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> bytes:
    """Return the compressed model with tuned weights.

    Args:
        network: a classifier.
        percent: of the synapses of each layer that a slice keeps; None for 95.
        rng: draws the inputs of each step.
        progress: is told how many steps are taken, and of how many.

    Returns:
        A file of the same length, with the same operators.

    Raises:
        UserError: it is no classifier, no layer but the last has weights, an operator has no
            gradient, or constants are shared.

    """
    if network.task != DEFAULT_TASK:
        raise UserError(f"dare slices by classes, and the task {network.task} has none")
    target = _layer_before_last(network)
    answers, wanted = _layer_values(network, target)
    groups = answers.reshape(len(answers), -1).argmax(axis=1)
    scores = scores_of(network.graph)
    contributions = np.eye(network.graph.tensors[scores].shape[-1])[groups]
    share = (percent or _SLICE) / 100
    slices = group_slices(network.graph, network.rows, groups, (scores, contributions), share)
    tuned_part = FakeQuantizedNetwork(network.graph, (target.output,))
    parameters = tuned(
        tuned_part,
        Oracle(network.rows, wanted, groups),
        slices,
        _TUNING,
        rng,
        progress,
    )
    return tuned_part.written(network.content, parameters)


def _layer_before_last(network: QuantizedNetwork) -> MatchedLayer:
    """Return the layer to tune: the last but one with weights, of those with a counterpart."""
    known = counterparts(network)
    weighted = [layer for layer in network.layers if layer.weights is not None]
    for host in reversed(weighted[:-1]):
        if host.output in known:
            return host
    raise UserError("no layer before the last has weights and a counterpart in the original")


def _layer_values(
    network: QuantizedNetwork, layer: MatchedLayer
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the original's answers, and what it has in a layer, clipped as there."""
    graph = network.original_graph
    original = FakeQuantizedNetwork(graph, (graph.outputs[0], layer.original_output))
    answers, wanted = original.evaluate(network.original_rows)
    return answers, np.clip(wanted, *activation_limits(network.graph, layer.operator))
