"""The tuning of a network so that one of its layers gives what an oracle wants (§3.1.2 and §3.3).

Inputs come in groups, each with a slice of the network. A step takes inputs of one group, its loss
is the mean squared difference on the neurons of the slice (Equation 8), and it changes the synapses
of the slice alone. Of a convolution each place of a channel is compared, where the paper has their
mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.repair.fitting.gradient_descent import BATCH, Tuning, TuningBatch, tuned_parameters
from edgeflare.repair.post_training.network_slice import NetworkSlice
from edgeflare.whitebox.operator_translation import Array


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """What a layer is to give.

    Attributes:
        rows: inputs as the network takes them, (n, ...).
        wanted: the layer's values on them, (n, *its shape).
        groups: the group of each, (n,).

    """

    rows: NDArray[np.generic]
    wanted: NDArray[np.float32]
    groups: NDArray[np.int64]


def tuned(
    network: FakeQuantizedNetwork,
    oracle: Oracle,
    slices: Mapping[int, NetworkSlice],
    tuning: Tuning,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> Parameters:
    """Return the parameters of a network whose layer is tuned.

    Args:
        network: its first output is the layer.
        oracle: what the layer is to give.
        slices: by group.
        tuning: how it is tuned.
        rng: draws the inputs of each step.
        progress: is told how many steps are taken, and of how many.

    """
    layer = network.outputs[0]
    if any(layer not in part.neurons for part in slices.values()):
        raise UserError(
            f"{network.graph.source}: what {network.graph.describe(layer)} contributes to the"
            " answers cannot be followed through the operators behind it, which move or join its"
            " channels: use another method"
        )
    groups = sorted(slices)
    members = {group: np.flatnonzero(oracle.groups == group) for group in groups}

    inputs = network.inputs(oracle.rows)

    def loss(parameters: Parameters, given: tuple[Sequence[Array], Array, Array]) -> Array:
        rows, wanted, neurons = given
        made = network.values(parameters, *rows)[0]
        squares = ((made - wanted.reshape(made.shape)) ** 2) * neurons
        return squares.mean() / neurons.mean()

    def batches() -> Iterator[TuningBatch]:
        for group in cycle(groups):
            chosen = rng.choice(members[group], BATCH)
            kept = slices[group]
            neurons = kept.neurons[layer].astype(np.float32)
            yield TuningBatch(
                ([values[chosen] for values in inputs], oracle.wanted[chosen], neurons),
                {
                    at: kept.synapses.get(at, np.ones(weight.shape, bool)).astype(np.float32)
                    for at, weight in network.parameters.weights.items()
                },
            )

    return tuned_parameters(network, loss, batches(), tuning, progress)
