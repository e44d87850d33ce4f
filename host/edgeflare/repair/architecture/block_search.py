"""The search for the connections of a block, together with its weights (§3.3), by PC-DARTS.

Between each two features stand all candidates, each weighed by the softmax of what is learned of it
(Equation 8). Weights learn from one half of the inputs and what is learned of candidates from the
other, in turns (Equations 9 and 10). As in PC-DARTS (Xu et al., arXiv 1907.05737), a candidate
reads a quarter of the channels while they are compared; the rest of its weights stay 0 until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.architecture.candidate_operators import (
    NONE,
    OperatorToAdd,
    OperatorWindow,
    candidates,
)
from edgeflare.repair.architecture.network_blocks import NetworkBlock
from edgeflare.repair.architecture.rewritten_block import (
    ORIGINAL,
    BlockConnection,
    Edge,
    possible_edges,
    rewritten_block,
    without_unused,
)
from edgeflare.repair.architecture.trained_classifier import (
    Constants,
    LabelledRows,
    Pace,
    TrainedClassifier,
    everything,
    rates_of,
    trained,
)
from edgeflare.repair.fitting.gradient_descent import Descent
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.operator_translation import Array

SEARCHED = 0.4
"""The share of all steps that compare candidates; the rest trains what was found."""

LEAST_STEPS = 10
"""Steps below which nothing would be compared, or nothing trained."""

_CONNECTED = 4
"""One in so many channels is read while candidates are compared."""

_HEAD_START = 1.0
"""What the connections that the network has begin with; others begin with 0."""

_ALPHA_RATE = 0.1

_Alphas = dict[Edge, Array]
"""What is learned of the candidates of each edge, (candidates,)."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundBlock:
    """A network in which a block was searched.

    Attributes:
        content: the network's `.tflite` file, trained.
        connections: the names of the connections that were kept, by the features that they join.
        shares: the weight that each candidate had in the end, by its name, likewise.

    """

    content: bytes
    connections: Mapping[Edge, str]
    shares: Mapping[Edge, Mapping[str, float]]


def search_steps(steps: int) -> int:
    """Return how many steps of a budget compare candidates: an even number."""
    return 2 * round(SEARCHED * steps / 2)


def require_steps(steps: int) -> None:
    """Refuse a budget that ends before the first step of a part of the work."""
    if steps < LEAST_STEPS:
        raise UserError(
            f"--steps {steps} ends before operators are compared and what is found is trained: give"
            f" at least {LEAST_STEPS}"
        )


def search_block(
    content: bytes,
    block: NetworkBlock,
    labelled: LabelledRows,
    pace: Pace,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> FoundBlock:
    """Return a network in which the best found connections of a block are trained.

    Args:
        content: the float network's file.
        block: one of its blocks.
        labelled: what it is trained with.
        pace: batches in all, at least 10, of which each counts one, whatever it trains.
        rng: draws batches, channels and initial weights.
        progress: is told how many are taken, and of how many.

    """
    steps, searching = pace.steps, search_steps(pace.steps)
    supernet = _Supernet(content, block, rng)
    order = rng.permutation(len(labelled.labels))
    halves = [labelled.part(np.sort(half)) for half in np.array_split(order, 2)]
    constants, alphas = supernet.compared(
        halves, replace(pace, steps=searching), rng, lambda done, _: progress(done, steps)
    )
    kept = supernet.kept(alphas)
    found = supernet.discrete(constants, alphas, kept)
    network = TrainedClassifier(found, "the searched network")
    after = trained(
        network,
        labelled,
        everything(network.constants),
        replace(pace, steps=steps - searching),
        rng,
        lambda done, _: progress(searching + done, steps),
    )
    shares = {
        edge: dict(zip(supernet.names[edge], np.asarray(jax.nn.softmax(of)).tolist(), strict=True))
        for edge, of in alphas.items()
    }
    return FoundBlock(network.written(after), kept, shares)


class _Supernet:
    """A network whose block has all candidates."""

    def __init__(self, content: bytes, block: NetworkBlock, rng: np.random.Generator) -> None:
        self._content, self._block = content, block
        graph = Graph(content)
        self._operators: dict[Edge, dict[str, Any]] = {}
        for edge in possible_edges(graph, block):
            before, after = (block.nodes[at] for at in edge)
            given, made = (graph.tensors[at].shape for at in (before.value, after.sum))
            found: dict[str, Any] = dict(candidates(given, made, rng))
            if edge[0] in after.edges:
                found = {ORIGINAL: None if after.edges[edge[0]] else _as_it_is(given[3]), **found}
            if found:
                self._operators[edge] = found
        self.names = {edge: [NONE, *found] for edge, found in self._operators.items()}
        made_network = rewritten_block(content, block, self._operators)
        self._connections = made_network.connections
        self._network = TrainedClassifier(made_network.content, "the network with all candidates")
        self._begin = {
            edge: np.array(
                [
                    _HEAD_START * (name == (ORIGINAL if ORIGINAL in names else NONE))
                    for name in names
                ],
                np.float32,
            )
            for edge, names in self.names.items()
        }
        self._moved, self._entries = self._partly(rng)

    def compared(
        self,
        halves: list[LabelledRows],
        pace: Pace,
        rng: np.random.Generator,
        progress: Callable[[int, int], None],
    ) -> tuple[Constants, _Alphas]:
        """Return the weights and what is learned of the candidates, each trained every other step.

        Args:
            halves: the inputs for weights, and those for candidates.
            pace: how many batches are taken, an even number.
            rng: draws them.
            progress: is told how many are taken, and of how many.

        """
        constants = jax.tree.map(np.multiply, self._network.constants, self._entries)
        steps = pace.steps
        own = Descent(
            lambda values, given: self._network.loss(self._weighed(values, given[0]), given[1:]),
            constants,
            steps,
        )
        of_candidates = Descent(
            lambda alphas, given: self._network.loss(self._weighed(given[0], alphas), given[1:]),
            self._begin,
            steps,
        )
        rates = rates_of(self._network.constants, self._moved, pace.rate)
        alpha_rates = jax.tree.map(lambda _: np.float32(_ALPHA_RATE), self._begin)
        batches = zip(*(half.batches(rng) for half in halves), strict=False)
        for number, (training, validating) in zip(range(steps // 2), batches, strict=False):
            progress(2 * number, steps)
            own.take((of_candidates.reached, training.rows, training.labels), rates)
            of_candidates.take((own.reached, validating.rows, validating.labels), alpha_rates)
        return jax.tree.map(np.asarray, own.reached), jax.tree.map(
            np.asarray, of_candidates.reached
        )

    def kept(self, alphas: _Alphas) -> dict[Edge, str]:
        """Return the candidate of each edge with the greatest weight.

        Where nothing but features as they are would be left of what makes one, the greatest
        candidate that computes something is kept too.
        """
        found = {
            edge: self.names[edge][int(np.argmax(of))]
            for edge, of in alphas.items()
            if int(np.argmax(of)) > 0
        }
        for number in range(1, len(self._block.nodes)):
            into = [edge for edge in self.names if edge[1] == number]
            if any(self._computes(edge, found.get(edge, NONE)) for edge in into):
                continue
            _, edge, name = max(
                (float(alphas[edge][at]), edge, name)
                for edge in into
                for at, name in enumerate(self.names[edge])
                if self._computes(edge, name)
            )
            found[edge] = name
        return dict(sorted(found.items()))

    def discrete(self, constants: Constants, alphas: _Alphas, kept: Mapping[Edge, str]) -> bytes:
        """Return the network with the kept candidates alone, which have the weights reached."""
        values = self._weighed(constants, alphas)
        original = TrainedClassifier(self._content, "the original")
        own = Constants(
            {at: np.asarray(values.weights[at]) for at in original.constants.weights},
            {at: np.asarray(values.biases[at]) for at in original.constants.biases},
        )
        reached = {(each.edge, each.name): each for each in self._connections}
        wanted = {
            edge: {name: self._reached(reached[edge, name], values)} for edge, name in kept.items()
        }
        made = rewritten_block(original.written(own), self._block, wanted)
        return without_unused(made.content)

    def _reached(
        self, connection: BlockConnection, values: Constants
    ) -> list[OperatorToAdd] | None:
        """Return the operators of a connection with the weights that they reached."""
        if connection.name == ORIGINAL:
            return None
        constants = iter(connection.constants)

        def reached(operator: OperatorToAdd) -> OperatorToAdd:
            if operator.weights is None:
                return operator
            weights, bias = (np.asarray(values.of(at)) for at in next(constants))
            return replace(operator, weights=weights, bias=bias)

        return list(map(reached, self._operators[connection.edge][connection.name]))

    def _computes(self, edge: Edge, name: str) -> bool:
        as_it_is = name == ORIGINAL and self._operators[edge][ORIGINAL] is not None
        return name != NONE and not as_it_is

    def _weighed(self, constants: Constants, alphas: Mapping[Edge, Array]) -> Constants:
        """Return constants with which each candidate counts by its share (Equation 8).

        Its last operator is in proportion to its weights. Shares are by those at the beginning, so
        that the network is as it was then.
        """
        weights, biases = dict(constants.weights), dict(constants.biases)
        for connection in self._connections:
            place = self.names[connection.edge].index(connection.name)
            now, begin = (
                jax.nn.softmax(jnp.asarray(of[connection.edge]))[place]
                for of in (alphas, self._begin)
            )
            for tensor in connection.constants[-1]:
                held = weights if tensor in weights else biases
                held[tensor] = held[tensor] * (now / begin)
        return Constants(weights, biases)

    def _partly(self, rng: np.random.Generator) -> tuple[Constants, Constants]:
        """Return what is moved while candidates are compared, and what is not 0 meanwhile.

        Both are 1 for such numbers, and 0 for others: of what a candidate reads a feature by, the
        channels that are drawn are moved, and the rest is 0.
        """
        known = self._network.constants
        moved: Constants = jax.tree.map(np.zeros_like, known)
        entries = everything(known)
        for connection in self._connections:
            fixed = connection.name == ORIGINAL and self._operators[connection.edge][ORIGINAL]
            if fixed:
                continue
            for tensor in (tensor for pair in connection.constants for tensor in pair):
                moved.of(tensor)[...] = 1
            if connection.entry is not None:
                channels = _drawn_channels(known.of(connection.entry).shape[-1], rng)
                moved.of(connection.entry)[...] = channels
                entries.of(connection.entry)[...] = channels
        return moved, entries


def _drawn_channels(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return 1 for channels that a candidate reads while it is compared, and 0 for others."""
    chosen = np.zeros(count, np.float32)
    chosen[rng.permutation(count)[: -(-count // _CONNECTED)]] = 1
    return chosen


def _as_it_is(channels: int) -> list[OperatorToAdd]:
    """Return what stands for a feature that is added as it is, while candidates are compared."""
    weights = np.eye(channels, dtype=np.float32).reshape(channels, 1, 1, channels)
    undilated = {"dilationHFactor": 1, "dilationWFactor": 1}
    return [
        OperatorToAdd("CONV_2D", weights, channels, OperatorWindow(0, (1, 1), (1, 1)), undilated)
    ]
