"""The block of a network to which its failures are traced (§3.2, Algorithm 1).

A *neuron* is a channel that a convolution of a block makes. It is active on an input where the mean
of its values there is above its mean over all inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.architecture.network_blocks import NetworkBlock
from edgeflare.repair.architecture.trained_classifier import (
    BATCH,
    MOST_JUDGING,
    Constants,
    LabelledRows,
    Pace,
    TrainedClassifier,
    everything,
    trained,
)
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.whitebox.array_library import jax

Real = NDArray[np.float64]


def suspiciousness(
    classifier: TrainedClassifier,
    blocks: Sequence[NetworkBlock],
    labelled: LabelledRows,
    rng: np.random.Generator,
) -> dict[str, Real]:
    """Return how suspicious each neuron of each block is (Equation 6), by the block's name.

    Args:
        classifier: the network.
        blocks: its blocks.
        labelled: inputs, of which some are misclassified.
        rng: draws those that are looked at, where there are many.

    Raises:
        UserError: it misclassifies none of them, or all.

    """
    count = len(labelled.labels)
    some = labelled.part(np.sort(rng.permutation(count)[:MOST_JUDGING]))
    failed = classifier.decisions(classifier.constants, some.rows) != some.labels
    if failed.all() or not failed.any():
        which = "all" if failed.any() else "none"
        raise UserError(
            f"the original misclassifies {which} of {len(failed):,} seeds to fit with, and blocks"
            " are located by what it does on some and not on others: check the labels, or give"
            " seeds that are harder"
        )
    layers = [layer for block in blocks for layer in block.convolutions(classifier.graph)]
    active = _activity(classifier.graph, [layer.outputs[0] for layer in layers], some.rows)
    gradients = neuron_gradients(
        classifier, [layer.inputs[1] for layer in layers], some.part(np.flatnonzero(failed))
    )
    scores, slopes = {}, {}
    for block in blocks:
        own = block.convolutions(classifier.graph)
        scores[block.name] = np.concatenate(
            [tarantula(active[layer.outputs[0]], failed) for layer in own]
        )
        slopes[block.name] = np.concatenate([gradients[layer.inputs[1]] for layer in own])
    return reweighed(scores, slopes)


def tarantula(active: NDArray[np.bool_], failed: NDArray[np.bool_]) -> Real:
    """Return how suspicious neurons are by when they are active (Equation 5): (neurons,).

    Args:
        active: on which inputs neurons are active, (inputs, neurons).
        failed: which inputs are misclassified, some of them, (inputs,).

    """
    wrong, right = active[failed].mean(axis=0), active[~failed].mean(axis=0)
    total = wrong + right
    return np.asarray(np.divide(wrong, total, out=np.zeros_like(total), where=total > 0))


def reweighed(scores: Mapping[str, Real], gradients: Mapping[str, Real]) -> dict[str, Real]:
    """Return scores by how far gradients are from the mean of the blocks' means (Equation 6)."""
    mean = float(np.mean([of_block.mean() for of_block in gradients.values()]))
    far = {name: np.abs(of_block - mean) for name, of_block in gradients.items()}
    greatest = max(float(of_block.max()) for of_block in far.values()) or 1.0
    return {name: far[name] / greatest * score for name, score in scores.items()}


def suspicious_neurons(suspects: Mapping[str, Real], most: int) -> dict[str, int]:
    """Return how many of the most suspicious neurons each block has.

    Args:
        suspects: how suspicious each neuron of each block is.
        most: how many are counted in all (the paper's threshold).

    """
    ranked = sorted(
        ((-score, name) for name, scores in suspects.items() for score in scores),
        key=lambda neuron: neuron[0],
    )
    counted = [name for _, name in ranked[:most]]
    return {name: counted.count(name) for name in suspects}


def block_trials(
    classifier: TrainedClassifier,
    blocks: Sequence[NetworkBlock],
    labelled: LabelledRows,
    pace: Pace,
    seed: int,
) -> dict[str, float]:
    """Return the accuracy after a few steps that train the weights of one block alone.

    This is not the paper's. Each trial has the same draws, and is judged by inputs that it does not
    train with.

    Args:
        classifier: the network.
        blocks: its blocks.
        labelled: the inputs.
        pace: how many steps are taken, and how fast.
        seed: seed of the generator of what is drawn.

    """
    found = {}
    for block in blocks:
        rng = np.random.default_rng(seed)
        training, judging = labelled.divided(rng)
        moved = weights_of_block(classifier, block)
        after = trained(classifier, training, moved, pace, rng, lambda _done, _total: None)
        decided = classifier.decisions(after, judging.rows)
        found[block.name] = float((decided == judging.labels).mean())
    return found


def weights_of_block(classifier: TrainedClassifier, block: NetworkBlock) -> Constants:
    """Return 1 for the weights and biases of a block, and 0 for others."""
    own = {tensor for layer in block.convolutions(classifier.graph) for tensor in layer.inputs[1:]}
    ones = everything(classifier.constants)
    return Constants(*({at: value * (at in own) for at, value in of.items()} for of in ones))


def _activity(
    graph: Graph, tensors: Sequence[int], rows: NDArray[np.generic]
) -> dict[int, NDArray[np.bool_]]:
    """Return on which inputs the channels of tensors are active, (inputs, channels)."""
    network = FakeQuantizedNetwork(graph, tensors)
    batches = [
        [np.asarray(made).mean(axis=tuple(range(1, made.ndim - 1))) for made in batch]
        for batch in network.each_batch(rows)
    ]
    found = {}
    for tensor, parts in zip(tensors, zip(*batches, strict=True), strict=True):
        values = np.concatenate(parts).reshape(len(rows), -1)
        found[tensor] = values > values.mean(axis=0)
    return found


def neuron_gradients(
    classifier: TrainedClassifier, tensors: Sequence[int], failures: LabelledRows
) -> dict[int, Real]:
    """Return the mean gradient of each neuron's weights, (neurons,), by the tensor of the weights.

    Args:
        classifier: the network.
        tensors: weights of convolutions and layers.
        failures: misclassified inputs; the last batch is filled up with the first ones.

    """
    slope = jax.jit(jax.grad(classifier.loss))
    count, parts = len(failures.labels), []
    for begin in range(0, count, BATCH):
        some = failures.part(np.arange(begin, begin + BATCH) % count)
        parts.append(slope(classifier.constants, (some.rows, some.labels)).weights)
    graph, means = classifier.graph, {}
    makers = {layer.inputs[1]: layer.name for layer in graph.layers if len(layer.inputs) > 1}
    for tensor in tensors:
        gradient = np.mean([np.asarray(part[tensor], np.float64) for part in parts], axis=0)
        along = gradient.ndim - 1 if makers[tensor] == "DEPTHWISE_CONV_2D" else 0
        others = tuple(axis for axis in range(gradient.ndim) if axis != along)
        means[tensor] = gradient.mean(axis=others)
    return means
