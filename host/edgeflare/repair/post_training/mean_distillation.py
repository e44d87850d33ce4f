"""The plain alternative to FMT: a classifier that learns the mean of its two answers.

For each input the answers with the one and with the other value of an attribute are averaged, and
the network learns to give that on both: no generated inputs, no slices, the loss on its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.repair.fitting.gradient_descent import BATCH, Tuning, TuningBatch, tuned_weights
from edgeflare.repair.post_training.fmt import TuningRows
from edgeflare.whitebox.operator_translation import Array

_TUNING = Tuning(steps=600, rate=0.1)


def distil_mean(
    content: bytes,
    table: TuningRows,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> bytes:
    """Return a classifier with tuned weights.

    Args:
        content: its `.tflite` file.
        table: what it is tuned with.
        rng: draws inputs.
        progress: is told how many steps are taken, and of how many.

    Returns:
        A file of the same length, with the same operators.

    Raises:
        UserError: an operator has no gradient, or constants are shared.

    """
    graph = Graph(content)
    network = FakeQuantizedNetwork(graph, graph.outputs[:1])
    sides = [
        table.encode(inputs) for inputs in (table.inputs, table.attribute.flipped(table.inputs))
    ]
    (one,), (other,) = (network.evaluate(rows) for rows in sides)
    rows, wanted = np.concatenate(sides), np.concatenate([(one + other) / 2] * 2)

    def loss(parameters: Parameters, given: tuple[Array, Array]) -> Array:
        (made,) = network.values(parameters, given[0])
        return ((made - given[1]) ** 2).mean()

    def batches() -> Iterator[TuningBatch]:
        all_ = {at: np.float32(1.0) for at in network.parameters.weights}
        while True:
            chosen = rng.integers(0, len(rows), BATCH)
            yield TuningBatch((rows[chosen], wanted[chosen]), all_)

    tuned = tuned_weights(network, loss, batches(), _TUNING, progress)
    return network.written(content, tuned)
