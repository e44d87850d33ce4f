"""DARE: the layer before the last of a classifier made to give what an oracle's gives (§4.1).

The oracle of a compressed network is the original that it was made from, with slices of the classes
that the original gives. Or it is what the paper has: of the checkpoints of a training the one that
is right about an input with the most confidence (Algorithm 1), with slices of the true classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.activation_ranges import activation_limits, counterparts
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.repair.fitting.gradient_descent import Tuning, drawn_batches, tuned_parameters
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.post_training.layer_regression import Oracle, tuned
from edgeflare.repair.post_training.network_slice import group_slices
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.operator_translation import Array

_SLICE = 95.0
"""Percent of the synapses that a slice keeps (q, §4.2.4)."""

_TUNING = Tuning(steps=1200, rate=0.03)

_Labels = NDArray[np.int64]
_Real = NDArray[np.float32]
_Progress = Callable[[int, int], None]


def fit_dare(
    network: QuantizedNetwork,
    percent: float | None,
    rng: np.random.Generator,
    progress: _Progress,
) -> bytes:
    """Return the compressed model with weights that are tuned towards the original.

    Args:
        network: a classifier.
        percent: of the synapses of each layer that a slice keeps; None for 95.
        rng: draws the inputs of each step.
        progress: is told how many steps are taken, and of how many.

    Raises:
        UserError: it is no classifier.

    """
    if network.task != DEFAULT_TASK:
        raise UserError(f"dare slices by classes, and the task {network.task} has none")
    target = layer_before_last(network)
    answers, wanted = _values(network, target, network.original_graph.outputs[0])
    groups = answers.argmax(axis=1)
    oracle = Oracle(network.rows, wanted, groups)
    return tuned_towards(network, target, oracle, groups, percent, rng, progress)


@dataclass(frozen=True, slots=True, eq=False)
class TaughtRows:
    """The inputs that a checkpoint teaches.

    Attributes:
        oracle: those inputs with the values of the layer that they are to have, by true class.
        teachers: position of the checkpoint that teaches each of all inputs; -1 for none, (n,).

    """

    oracle: Oracle
    teachers: _Labels


def taught_rows(
    network: QuantizedNetwork, labels: _Labels, checkpoints: Sequence[bytes], target: MatchedLayer
) -> TaughtRows:
    """Return what the checkpoints of a training teach (Algorithm 1).

    An input is taught by the checkpoint that gives its true label with the most confidence, if that
    is more than the network has, which is none where it is wrong.

    Args:
        network: a classifier with labelled inputs to fit with.
        labels: their true labels, (n,).
        checkpoints: float `.tflite` files of the original's structure.
        target: the layer that is to give what the checkpoint's gives.

    Raises:
        UserError: no checkpoint teaches any input.

    """
    (scores,) = FakeQuantizedNetwork(network.graph, (scores_of(network.graph),)).evaluate(
        network.rows
    )
    most, teachers = _confidence(scores, labels), np.full(len(labels), -1)
    wanted = np.zeros((len(labels), *network.graph.tensors[target.output].shape), np.float32)
    for number, checkpoint in enumerate(checkpoints):
        graph = Graph(checkpoint)
        scores, values = _values(network, target, scores_of(graph), graph)
        confidence = _confidence(scores, labels)
        surer = confidence > most
        wanted[surer] = values[surer].reshape(-1, *wanted.shape[1:])
        most, teachers = np.where(surer, confidence, most), np.where(surer, number, teachers)
    taught = teachers >= 0
    if not taught.any():
        raise UserError(
            f"--checkpoints: none of {len(checkpoints)} gives the true label of any of"
            f" {len(labels):,} seeds with more confidence than the compressed model: give others,"
            " or leave them away, and the original teaches"
        )
    oracle = Oracle(network.rows[taught], wanted[taught], labels[taught])
    return TaughtRows(oracle, teachers)


def tuned_towards(
    network: QuantizedNetwork,
    target: MatchedLayer,
    oracle: Oracle,
    groups: _Labels,
    percent: float | None,
    rng: np.random.Generator,
    progress: _Progress,
) -> bytes:
    """Return the compressed model with a layer tuned towards an oracle, class by class.

    Args:
        network: a classifier.
        target: the layer.
        oracle: what it is to give; its groups are classes.
        groups: the class of each input to fit with, by which slices are made, (n,).
        percent: of the synapses of each layer that a slice keeps; None for 95.
        rng: draws the inputs of each step.
        progress: is told how many steps are taken, and of how many.

    """
    scores = scores_of(network.graph)
    count = network.graph.tensors[scores].shape[-1]
    criterion = np.ones((len(groups), 1)) if count == 1 else np.eye(count)[groups]
    share = (percent or _SLICE) / 100
    slices = group_slices(network.graph, network.rows, groups, (scores, criterion), share)
    present = {group: slices[group] for group in np.unique(oracle.groups).tolist()}
    part = FakeQuantizedNetwork(network.graph, (target.output,))
    parameters = tuned(part, oracle, present, _TUNING, rng, progress)
    return part.written(network.content, parameters)


def fine_tuned(
    network: QuantizedNetwork,
    rows: NDArray[np.generic],
    labels: _Labels,
    rng: np.random.Generator,
    progress: _Progress,
) -> bytes:
    """Return the compressed model with weights tuned by labels: no slices, no checkpoints.

    Args:
        network: a classifier.
        rows: inputs as it takes them, (n, ...).
        labels: their true labels, (n,).
        rng: draws the inputs of each step.
        progress: is told how many steps are taken, and of how many.

    """
    part = FakeQuantizedNetwork(network.graph, (scores_of(network.graph),))

    def loss(parameters: Parameters, given: tuple[Array, ...]) -> Array:
        *inputs, true = given
        scores = _two_or_more(part.values(parameters, *inputs)[0].reshape(len(true), -1))
        chances = jax.nn.log_softmax(scores)
        return -jnp.take_along_axis(chances, true[:, None], axis=1).mean()

    batches = drawn_batches(rng, *part.inputs(rows), labels)
    found = tuned_parameters(part, loss, batches, _TUNING, progress)
    return part.written(network.content, found)


def layer_before_last(network: QuantizedNetwork) -> MatchedLayer:
    """Return the layer to tune: the last but one with weights, of those with a counterpart."""
    known = counterparts(network)
    weighted = [layer for layer in network.layers if layer.weights is not None]
    for host in reversed(weighted[:-1]):
        if host.output in known:
            return host
    raise UserError("no layer before the last has weights and a counterpart in the original")


def _values(
    network: QuantizedNetwork, layer: MatchedLayer, answers: int, oracle: Graph | None = None
) -> tuple[_Real, _Real]:
    """Return what an oracle answers, (n, choices), and has in a layer, clipped as there.

    Args:
        network: the network to tune.
        layer: the layer.
        answers: the tensor of the answers.
        oracle: a network of the original's structure; the original if not given.

    """
    graph = network.original_graph if oracle is None else oracle
    found = FakeQuantizedNetwork(graph, (answers, layer.original_output))
    given, wanted = found.evaluate(network.original_rows)
    wanted = np.clip(wanted, *activation_limits(network.graph, layer.operator))
    return given.reshape(len(given), -1), wanted


def _confidence(scores: _Real, labels: _Labels) -> _Real:
    """Return the probabilities of true labels; 0 where another one is given."""
    scores = np.asarray(_two_or_more(scores.reshape(len(scores), -1)))
    chances = np.asarray(jax.nn.softmax(scores))
    given = np.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
    return np.where(scores.argmax(axis=1) == labels, given, np.float32(0))


def _two_or_more(scores: Array) -> Array:
    """Return scores of at least two classes: a single one is that of the second."""
    return scores if scores.shape[1] > 1 else jnp.concatenate([0 * scores, scores], axis=1)
