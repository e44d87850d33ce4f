"""Weights of a network that are moved down the gradient of a loss, by Adam.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", arXiv 1412.6980, with a rate that falls
to 0 in equal parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.operator_translation import Array

BATCH = 64
"""Inputs of a step."""

_DECAYS = (0.9, 0.999)
_LEAST = 1e-8
_SAID_EVERY = 50
_STEPS_OF_8_BITS = 127

Weights = Mapping[int, Array]
"""Weights by tensor, or what belongs to each of them."""

Loss = Callable[[Parameters, Any], Array]
"""Returns a number to make small, given parameters and a batch."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How weights are moved.

    Attributes:
        steps: how many.
        rate: the rate of Adam at the first step, as a share of one step of weights in 8 bits, which
            float ones have by their largest value.

    """

    steps: int
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class TuningBatch:
    """What a step takes.

    Attributes:
        given: what the loss is told.
        moved: 1 for weights that the step may move, and 0 for others, by tensor.

    """

    given: Any
    moved: Weights


def tuned_weights(
    network: FakeQuantizedNetwork,
    loss: Loss,
    batches: Iterable[TuningBatch],
    tuning: Tuning,
    progress: Callable[[int, int], None],
) -> Parameters:
    """Return the parameters of a network, with weights that are moved.

    Args:
        network: the network.
        loss: what is made small.
        batches: one for each step, all of the same shapes.
        tuning: how weights are moved.
        progress: is told how many steps are taken, and of how many.

    """
    units = {at: _unit(network, at) for at in network.parameters.weights}

    def step(
        weights: Weights, moments: Moments, rate: Array, batch: tuple[Any, Weights]
    ) -> tuple[Weights, Moments]:
        given, moved = batch
        gradient = jax.grad(lambda some: loss(network.parameters._replace(weights=some), given))(
            weights
        )
        falls, after = adam(gradient, moments)
        return {
            at: weight - rate * units[at] * moved[at] * falls[at] for at, weight in weights.items()
        }, after

    compiled = jax.jit(step)
    weights: Weights = jax.tree.map(jnp.asarray, dict(network.parameters.weights))
    moments = Moments.begin(weights)
    for number, batch in zip(range(tuning.steps), batches, strict=False):
        if number % _SAID_EVERY == 0:
            progress(number, tuning.steps)
        rate = np.float32(tuning.rate * (1 - number / tuning.steps))
        weights, moments = compiled(weights, moments, rate, (batch.given, batch.moved))
    progress(tuning.steps, tuning.steps)
    return network.parameters._replace(weights=jax.tree.map(np.asarray, weights))


class Moments(NamedTuple):
    """How many gradients there were, and means of them and of their squares, recent ones first."""

    steps: Any
    first: Any
    second: Any

    @classmethod
    def begin(cls, moved: Any) -> Moments:
        """Return those of arrays that were not moved yet."""
        zeros = jax.tree.map(jnp.zeros_like, moved)
        return cls(jnp.zeros(()), zeros, zeros)


def adam(gradient: Any, moments: Moments) -> tuple[Any, Moments]:
    """Return by how much arrays fall at a rate of 1, and the moments then."""
    steps = moments.steps + 1
    first = jax.tree.map(partial(_mean, _DECAYS[0]), moments.first, gradient)
    squares = jax.tree.map(jnp.square, gradient)
    second = jax.tree.map(partial(_mean, _DECAYS[1]), moments.second, squares)
    unbiased = [1 - decay**steps for decay in _DECAYS]
    falls = jax.tree.map(
        lambda moment, square: moment / unbiased[0] / (jnp.sqrt(square / unbiased[1]) + _LEAST),
        first,
        second,
    )
    return falls, Moments(steps, first, second)


def _mean(decay: float, before: Array, now: Array) -> Array:
    return decay * before + (1 - decay) * now


def _unit(network: FakeQuantizedNetwork, tensor: int) -> float:
    """Return by how much weights change at a rate of 1: one step, or the size of one in 8 bits."""
    if network.graph.tensors[tensor].scales:
        return 1.0
    return float(np.abs(network.parameters.weights[tensor]).max()) / _STEPS_OF_8_BITS
