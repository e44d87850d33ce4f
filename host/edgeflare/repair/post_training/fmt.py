"""FMT: a classifier tuned so that an attribute of its inputs does not decide (§5.1).

Beside it the plain alternative, which is not of the paper: a classifier that learns the mean of its
two answers, without generated inputs and slices.

Inputs are generated, each twice, with the one and with the other value of the attribute. Of the two
the network is more confident about one, whose values in the layer before the last the other is to
have too (Algorithm 2). Slices are of the two groups, by the label that the network gives.

Difference from the text: columns of a one-hot code are drawn together, so that each generated input
has one of them set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.errors import UserError
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.repair.fitting.gradient_descent import Tuning, drawn_batches, tuned_parameters
from edgeflare.repair.judging.fairness import Attribute
from edgeflare.repair.post_training.layer_regression import Oracle, tuned
from edgeflare.repair.post_training.network_slice import group_slices
from edgeflare.whitebox.operator_translation import Array

_SLICE = 80.0
"""Percent of the synapses that a slice keeps (q, §5.2.4)."""

_RATE = 0.1

_DISTILLING = Tuning(steps=600, rate=0.1)

Encode = Callable[[NDArray[np.generic]], NDArray[np.generic]]
"""Returns inputs as a model takes them."""


@dataclass(frozen=True, slots=True, eq=False)
class TuningRows:
    """What a network is tuned with.

    Attributes:
        inputs: rows of a table, which generated ones are distributed as, (n, features).
        attribute: what is not to decide.
        encode: encodes rows for the network.

    """

    inputs: NDArray[np.generic]
    attribute: Attribute
    encode: Encode


class FMT:
    """What a classifier is tuned towards, prepared once for any number of steps."""

    def __init__(
        self,
        content: bytes,
        table: TuningRows,
        *,
        both: bool,
        percent: float | None,
        rng: np.random.Generator,
        layer: int | None = None,
    ) -> None:
        """Generate inputs, and find the slices of both groups.

        Args:
            content: the classifier's `.tflite` file.
            table: what it is tuned with.
            both: whether it is tuned with both inputs of a pair, rather than with the one that the
                network is less confident about.
            percent: of the synapses of each layer that a slice keeps; None for 80.
            rng: draws inputs.
            layer: the tensor that the inputs of a pair are to share (p, §3.1.2); None for what the
                layer before the last puts out.

        """
        graph = Graph(content)
        layer = _layer_before_last(graph) if layer is None else layer
        scores = scores_of(graph)
        self._content, self._rng = content, rng
        self._network = FakeQuantizedNetwork(graph, (layer,))
        sure, unsure = _pairs(graph, table, rng)
        (wanted,) = self._network.evaluate(table.encode(sure))
        inputs = np.concatenate([unsure, sure]) if both else unsure
        rows = table.encode(inputs)
        groups = table.attribute.first(inputs).astype(np.int64)
        (answers,) = FakeQuantizedNetwork(graph, (scores,)).evaluate(rows)
        criterion = scores, _given(answers.reshape(len(rows), -1))
        self._oracle = Oracle(rows, np.resize(wanted, (len(rows), *wanted.shape[1:])), groups)
        self._slices = group_slices(graph, rows, groups, criterion, (percent or _SLICE) / 100)

    def tuned(self, steps: int, progress: Callable[[int, int], None]) -> bytes:
        """Return the classifier with tuned weights: a file as long, with the same operators.

        Args:
            steps: how many are taken; any number draws the same inputs for its first ones.
            progress: is told how many steps are taken, and of how many.

        """
        tuning, rng = Tuning(steps, _RATE), deepcopy(self._rng)
        found = tuned(self._network, self._oracle, self._slices, tuning, rng, progress)
        return self._network.written(self._content, found)


def distil_mean(
    content: bytes,
    table: TuningRows,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> bytes:
    """Return a classifier that has learned the mean of its two answers.

    For each input the answers with the one and with the other value of the attribute are averaged,
    and the network learns to give that on both.

    Args:
        content: its `.tflite` file.
        table: what it is tuned with.
        rng: draws inputs.
        progress: is told how many steps are taken, and of how many.

    """
    graph = Graph(content)
    network = FakeQuantizedNetwork(graph, graph.outputs[:1])
    sides = [
        table.encode(inputs) for inputs in (table.inputs, table.attribute.flipped(table.inputs))
    ]
    (one,), (other,) = (network.evaluate(rows) for rows in sides)
    rows, wanted = np.concatenate(sides), np.concatenate([(one + other) / 2] * 2)

    def loss(parameters: Parameters, given: tuple[Array, ...]) -> Array:
        *inputs, mean = given
        (made,) = network.values(parameters, *inputs)
        return ((made - mean) ** 2).mean()

    batches = drawn_batches(rng, *network.inputs(rows), wanted)
    found = tuned_parameters(network, loss, batches, _DISTILLING, progress)
    return network.written(content, found)


def _layer_before_last(graph: Graph) -> int:
    weighted = [
        layer
        for layer in graph.layers
        if layer.name in WEIGHTED and graph.tensors[layer.inputs[1]].constant
    ]
    if len(weighted) < 2:
        raise UserError(f"{graph.source}: no layer before the last has weights to tune")
    return weighted[-2].outputs[0]


def _pairs(
    graph: Graph, table: TuningRows, rng: np.random.Generator
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return generated inputs, and the same with the other value; the former are the surer ones."""
    one = generated(table.inputs, len(table.inputs), rng)
    other = table.attribute.flipped(one)
    network = FakeQuantizedNetwork(graph, graph.outputs[:1])
    surer = np.greater_equal(
        *(_confidence(network.evaluate(table.encode(some))[0]) for some in (one, other))
    )[:, None]
    return np.where(surer, one, other), np.where(surer, other, one)


def _confidence(answers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how sure answers are: the largest value, or the probability of a single one."""
    flat = answers.reshape(len(answers), -1)
    return flat.max(axis=1) if flat.shape[1] > 1 else np.maximum(flat[:, 0], 1 - flat[:, 0])


def _given(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return 1 for the neuron of the label that the network gives, and 0 for others."""
    if scores.shape[1] == 1:
        return np.ones(scores.shape)
    return np.asarray(np.eye(scores.shape[1])[scores.argmax(axis=1)])


def generated(
    inputs: NDArray[np.generic], count: int, rng: np.random.Generator
) -> NDArray[np.generic]:
    """Return inputs whose attributes are drawn one by one, each from its values in some inputs.

    Args:
        inputs: (n, features).
        count: how many.
        rng: the generator.

    Returns:
        (count, features).

    """
    made = np.empty((count, inputs.shape[1]), inputs.dtype)
    for columns in one_hot_codes(inputs):
        made[:, columns] = inputs[rng.integers(0, len(inputs), count)][:, columns]
    return made


def one_hot_codes(inputs: NDArray[np.generic]) -> Iterator[slice]:
    """Yield the columns of each attribute, those together of which each row has one set."""
    width, at = inputs.shape[1], 0
    extremes = inputs.min(axis=0), inputs.max(axis=0)
    set_ = inputs == extremes[1]
    binary = (set_ | (inputs == extremes[0])).all(axis=0) & (extremes[0] < extremes[1])
    while at < width:
        end, total = at + 1, set_[:, at].astype(int)
        while end < width and binary[at : end + 1].all() and total.max() <= 1 and total.min() < 1:
            total = total + set_[:, end]
            end += 1
        complete = end - at > 1 and (total == 1).all()
        yield slice(at, end if complete else at + 1)
        at = end if complete else at + 1
