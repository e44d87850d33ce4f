"""A float classifier whose weights and biases are trained by labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.errors import UserError
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.gradient_descent import Descent
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.operator_translation import Array

BATCH = 128
"""Inputs of a step (§4.1)."""

RATES = (0.001, 0.004, 0.016)
"""The rates that are compared; see `Pace`. Networks differ: what batch normalization was folded
into diverges at rates at which others hardly learn."""

_COMPARING_SHARE = 10
"""A rate is compared after one in so many steps."""

MOST_JUDGING = 2_000
"""Inputs by which something is compared, at most."""

_LEAST_BIAS = 0.01


@dataclass(frozen=True, slots=True)
class Pace:
    """How long and how fast is trained.

    Attributes:
        steps: how many batches are taken.
        rate: the rate of Adam at the first step, as a share of the root mean square of what is
            moved; it falls to 0 in equal parts.

    """

    steps: int
    rate: float


class Constants(NamedTuple):
    """What is trained, or what belongs to each value of it, by tensor.

    Attributes:
        weights: what belongs to the weights of operators that have some.
        biases: what belongs to the biases of these operators.

    """

    weights: Mapping[int, Any]
    biases: Mapping[int, Any]

    def of(self, tensor: int) -> Any:
        """Return what belongs to a tensor."""
        return self.weights[tensor] if tensor in self.weights else self.biases[tensor]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRows:
    """Inputs as a network takes them, (n, ...), and their true labels, (n,)."""

    rows: NDArray[np.generic]
    labels: NDArray[np.int64]

    def part(self, places: NDArray[np.int64]) -> LabelledRows:
        """Return some of them."""
        return LabelledRows(self.rows[places], self.labels[places])

    def divided(self, rng: np.random.Generator) -> tuple[LabelledRows, LabelledRows]:
        """Return three quarters of them, and some of the others to hold out."""
        order = rng.permutation(len(self.labels))
        most, rest = np.split(order, [3 * len(order) // 4])
        return self.part(np.sort(most)), self.part(np.sort(rest[:MOST_JUDGING]))

    def batches(self, rng: np.random.Generator) -> Iterator[LabelledRows]:
        """Yield batches without end, each input once before any comes again."""
        order = np.empty(0, np.int64)
        while True:
            while len(order) < BATCH:
                order = np.concatenate([order, rng.permutation(len(self.labels))])
            yield self.part(order[:BATCH])
            order = order[BATCH:]


class TrainedClassifier:
    """A network as a function of its weights and biases.

    Attributes:
        graph: the network.
        constants: the weights and biases that its file has.

    """

    def __init__(self, content: bytes, source: str) -> None:
        """Translate a network.

        Args:
            content: its `.tflite` file.
            source: what the user calls it.

        Raises:
            UserError: an operator has no gradient, it has several inputs, or numbers in 8 bits.

        """
        self._content, self.graph = content, Graph(content, source)
        if any(tensor.scales for tensor in self.graph.tensors):
            raise UserError(
                f"{source} has numbers in 8 bits, and archrepair trains a float model before it is"
                " compressed: name that one as the original"
            )
        self._network = FakeQuantizedNetwork(self.graph, (scores_of(self.graph),))
        for layer in self._network.layers:
            if layer.name in WEIGHTED and not self.graph.tensors[layer.inputs[1]].constant:
                raise UserError(
                    f"{source}: the weights of operator {layer.index}, {layer.name}, are no float32"
                    " constant, and such are trained: convert the model in float32"
                )
        parameters = self._network.parameters
        self.constants = Constants(dict(parameters.weights), dict(parameters.biases))

    @property
    def choices(self) -> int:
        """How many scores it gives."""
        return self.graph.tensors[scores_of(self.graph)].size

    def loss(self, constants: Constants, batch: tuple[Array, Array]) -> Array:
        """Return the mean cross entropy at the labels of a batch of rows; jax traces it."""
        rows, labels = batch
        chances = jax.nn.log_softmax(self._scores(constants, rows))
        return -jnp.take_along_axis(chances, labels[:, None], axis=1).mean()

    def decisions(self, constants: Constants, rows: NDArray[np.generic]) -> NDArray[np.int64]:
        """Return the label that it gives to each row."""
        found = []
        for begin in range(0, len(rows), BATCH):
            some = rows[begin : begin + BATCH]
            filled = np.resize(some, (BATCH, *some.shape[1:]))  # of one shape, compiled once
            found.append(np.asarray(self._decide(constants, filled))[: len(some)])
        return np.asarray(np.concatenate(found), np.int64)

    def mean_loss(self, constants: Constants, labelled: LabelledRows) -> float:
        """Return the mean loss of the whole batches of some inputs, or of what fills one."""
        places = np.resize(np.arange(len(labelled.labels)), max(BATCH, len(labelled.labels)))
        found = []
        for begin in range(0, len(places) - BATCH + 1, BATCH):
            some = labelled.part(places[begin : begin + BATCH])
            found.append(float(self._compiled_loss(constants, (some.rows, some.labels))))
        return float(np.mean(found))

    def written(self, constants: Constants) -> bytes:
        """Return its file with other weights and biases."""
        parameters = self._network.parameters._replace(
            weights=constants.weights, biases=constants.biases
        )
        return self._network.written(self._content, parameters)

    @cached_property
    def _compiled_loss(self) -> Array:
        return jax.jit(self.loss)

    @cached_property
    def _decide(self) -> Array:
        return jax.jit(lambda constants, rows: self._scores(constants, rows).argmax(axis=1))

    def _scores(self, constants: Constants, rows: Array) -> Array:
        parameters = self._network.parameters._replace(
            weights=constants.weights, biases=constants.biases
        )
        return self._network.values(parameters, rows)[0].reshape(len(rows), -1)


def trained(
    classifier: TrainedClassifier,
    labelled: LabelledRows,
    moved: Constants,
    pace: Pace,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> Constants:
    """Return weights and biases that are trained.

    Args:
        classifier: the network, whose own ones they begin with.
        labelled: what it is trained with.
        moved: 1 for numbers that are moved, and 0 for others.
        pace: how many batches are taken, and how fast.
        rng: draws them.
        progress: is told how many are taken, and of how many.

    """
    rates = rates_of(classifier.constants, moved, pace.rate)
    steps = (((batch.rows, batch.labels), rates) for batch in labelled.batches(rng))
    descent = Descent(classifier.loss, classifier.constants, pace.steps)
    reached: Constants = descent.end(steps, progress)
    return reached


def best_pace(
    classifier: TrainedClassifier, labelled: LabelledRows, steps: int, rng: np.random.Generator
) -> Pace:
    """Return the rate that is best after a tenth of the steps, by the loss on held-out inputs.

    Args:
        classifier: the network, all of which is trained.
        labelled: the inputs, of which a quarter is held out.
        steps: how many batches will be taken in the end.
        rng: draws the parts and the batches.

    """
    training, judging = labelled.divided(rng)
    losses = {}
    for rate, of_rate in zip(RATES, rng.spawn(len(RATES)), strict=True):
        pace = Pace(max(1, steps // _COMPARING_SHARE), rate)
        moved = everything(classifier.constants)
        after = trained(classifier, training, moved, pace, of_rate, lambda _done, _total: None)
        losses[rate] = classifier.mean_loss(after, judging)
    return Pace(steps, min(losses, key=losses.__getitem__))


def rates_of(constants: Constants, moved: Constants, rate: float) -> Constants:
    """Return by how much constants change at the first step, 0 for those that are not moved.

    That is a share of their root mean square. Of weights that are all zero it is one of what they
    would have if they were drawn as He et al. do, and of such biases of a hundredth.
    """

    def of_array(values: NDArray[np.float32], its: NDArray[np.float32]) -> Array:
        size = float(np.sqrt(np.square(values).mean()))
        drawn = np.sqrt(2.0 / np.prod(values.shape[1:])) if values.ndim > 1 else _LEAST_BIAS
        return jnp.asarray(its * np.float32(rate * (size or float(drawn))))

    rates: Constants = jax.tree.map(of_array, constants, moved)
    return rates


def everything(constants: Constants) -> Constants:
    """Return that all numbers are moved."""
    ones: Constants = jax.tree.map(np.ones_like, constants)
    return ones
