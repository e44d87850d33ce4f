"""Parameters of a network that are moved down the gradient of a loss, by Adam.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", arXiv 1412.6980, with a rate that falls
to 0 in equal parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.whitebox.array_library import jax, jnp, ravel_pytree
from edgeflare.whitebox.operator_translation import Array

BATCH = 64
"""Inputs of a step."""

_DECAYS = (0.9, 0.999)
_LEAST = 1e-8
_SAID_EVERY = 10
_STEPS_OF_8_BITS = 127

Weights = Mapping[int, Array]
"""Weights by tensor, or what belongs to each of them."""

_Rates = dict[str, dict[int, np.float32]]
"""Rates of parameters, by the name of their kind and their tensor."""

Loss = Callable[[Any, Any], Array]
"""Returns a number to make small, given what is moved and a batch."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How parameters are moved; those with a rate of 0 are not.

    Attributes:
        steps: how many.
        rate: the rate of Adam for weights at the first step, as a share of one step of weights in 8
            bits, which float ones have by their largest value.
        bias_rate: the rate for biases, as a share of one step of what their operator puts out, or
            likewise by its largest bias where that is not quantized.
        range_rate: the rate for the ends of ranges, as a share of the range.
        parts: how many equal parts each batch is taken in, so that memory has to hold one: the loss
            is then a mean over inputs.

    """

    steps: int
    rate: float
    bias_rate: float = 0.0
    range_rate: float = 0.0
    parts: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class TuningBatch:
    """What a step takes.

    Attributes:
        given: what the loss is told.
        moved: 1 for weights that the step may move, and 0 for others, by tensor; those of tensors
            that are not named may all be moved.

    """

    given: Any
    moved: Weights = field(default_factory=dict)


def drawn_batches(rng: np.random.Generator, *arrays: NDArray[np.generic]) -> Iterator[TuningBatch]:
    """Yield batches without end, of some rows of each array, each row drawn from all.

    Args:
        rng: draws them.
        *arrays: (n, ...), as many rows in each.

    """
    while True:
        chosen = rng.integers(0, len(arrays[0]), BATCH)
        yield TuningBatch(tuple(array[chosen] for array in arrays))


def tuned_parameters(
    network: FakeQuantizedNetwork,
    loss: Callable[[Parameters, Any], Array],
    batches: Iterable[TuningBatch],
    tuning: Tuning,
    progress: Callable[[int, int], None],
) -> Parameters:
    """Return the parameters of a network, moved.

    Args:
        network: the network.
        loss: what is made small, given parameters and a batch.
        batches: one for each step, all of the same shapes.
        tuning: how weights are moved.
        progress: is told how many steps are taken, and of how many.

    """
    rates = _rates(network, tuning)
    descent = Descent(
        lambda moved, given: loss(network.parameters._replace(**moved), given),
        {kind: dict(getattr(network.parameters, kind)) for kind in rates},
        tuning.steps,
        tuning.parts,
    )
    steps = ((batch.given, _masked(rates, batch.moved)) for batch in batches)
    return network.parameters._replace(**descent.end(steps, progress))


class Descent:
    """Steps of Adam along the gradient of a loss, compiled once.

    Attributes:
        reached: what is moved, as the steps that were taken have left it.

    """

    def __init__(self, loss: Loss, begin: Any, steps: int, parts: int = 1) -> None:
        """Begin somewhere.

        Args:
            loss: what is made small.
            begin: arrays that are moved, by name or in a tuple.
            steps: how many steps there will be, over which rates fall to 0.
            parts: see `Tuning`.

        """
        self.reached = jax.tree.map(jnp.asarray, begin)
        self._moments, self._steps, self._done = Moments.begin(self.reached), steps, 0
        self._parts, self._step = parts, jax.jit(_adam_step)

        def add_gradient(total: Array, reached: Any, part: Any) -> Array:
            return total + _joined(jax.grad(loss)(reached, part)) / parts

        # No loop within: in one, convolutions of the CPU take ten times as long.
        self._add_gradient = jax.jit(add_gradient)

    def take(self, given: Any, rates: Any) -> None:
        """Take a step.

        Args:
            given: the batch, of the same shapes in each step.
            rates: the rates at the first step of what is moved, a number for each array or one for
                each of its numbers; 0 for those that stay.

        """
        share = np.float32(1 - self._done / self._steps)
        gradient = jnp.zeros_like(self._moments.first)
        for part in self._divided(given):
            gradient = self._add_gradient(gradient, self.reached, part)
        self.reached, self._moments = self._step(
            self.reached, self._moments, share, gradient, rates
        )
        self._done += 1

    def end(self, steps: Iterable[tuple[Any, Any]], progress: Callable[[int, int], None]) -> Any:
        """Take all steps that there will be, and return what is reached, as arrays of numpy.

        Args:
            steps: the batch and the rates of each, as `take` has them.
            progress: is told how many are taken, and of how many.

        """
        for number, (given, rates) in zip(range(self._steps), steps, strict=False):
            if number % _SAID_EVERY == 0:
                progress(number, self._steps)
            self.take(given, rates)
        progress(self._steps, self._steps)
        return jax.tree.map(np.asarray, self.reached)

    def _divided(self, given: Any) -> Iterator[Any]:
        """Yield the parts of a batch, of one size."""
        if self._parts == 1:
            yield given
            return
        arrays, form = jax.tree.flatten(given)
        parts = zip(*(np.split(values, self._parts) for values in arrays), strict=True)
        yield from (jax.tree.unflatten(form, part) for part in parts)


def _adam_step(
    reached: Any, moments: Moments, share: Array, gradient: Array, rates: Any
) -> tuple[Any, Moments]:
    """Take a step of Adam.

    What is moved is one long array in it: of an array for each tensor, it takes as long to compile
    as the gradient.
    """
    falls, after = adam(gradient, moments)
    values, separate = ravel_pytree(reached)
    each = jax.tree.map(lambda array, rate: jnp.broadcast_to(rate, array.shape), reached, rates)
    return separate(values - share * _joined(each) * falls), after


def _joined(arrays: Any) -> Array:
    return ravel_pytree(arrays)[0]


class Moments(NamedTuple):
    """How many gradients there were, and means of them and of their squares, recent ones first."""

    steps: Any
    first: Array
    second: Array

    @classmethod
    def begin(cls, moved: Any) -> Moments:
        """Return those of arrays that were not moved yet, one behind the other."""
        zeros = jnp.zeros(sum(values.size for values in jax.tree.leaves(moved)))
        return cls(jnp.zeros(()), zeros, zeros)


def adam(gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """Return by how much numbers fall at a rate of 1, and the moments then."""
    steps = moments.steps + 1
    first = _mean(_DECAYS[0], moments.first, gradient)
    second = _mean(_DECAYS[1], moments.second, jnp.square(gradient))
    unbiased = [1 - decay**steps for decay in _DECAYS]
    falls = first / unbiased[0] / (jnp.sqrt(second / unbiased[1]) + _LEAST)
    return falls, Moments(steps, first, second)


def _mean(decay: float, before: Array, now: Array) -> Array:
    return decay * before + (1 - decay) * now


def _rates(network: FakeQuantizedNetwork, tuning: Tuning) -> _Rates:
    """Return the first rate of each tensor's parameters, by their kind; without rates of 0."""
    tensors, weights, biases, ranges = network.graph.tensors, *network.parameters
    outputs = {
        at: tensors[layer.outputs[0]] for layer in network.layers for at in layer.inputs[2:3]
    }
    rates = {
        "weights": {
            at: tuning.rate * _step(tensors[at].scales and (1.0,), values)
            for at, values in weights.items()
        },
        "biases": {
            at: tuning.bias_rate * _step(outputs[at].scales, values)
            for at, values in biases.items()
        },
        "ranges": {at: tuning.range_rate * float(high - low) for at, (low, high) in ranges.items()},
    }
    return {
        kind: {at: np.float32(rate) for at, rate in by_tensor.items()}
        for kind, by_tensor in rates.items()
        if any(by_tensor.values())
    }


def _masked(rates: _Rates, masks: Weights) -> dict[str, dict[int, Array]]:
    """Return rates that are 0 for weights that a step may not move."""
    if not masks:
        return rates
    masked = {at: rates["weights"][at] * mask for at, mask in masks.items()}
    return {**rates, "weights": {**rates["weights"], **masked}}


def _step(scales: Sequence[float], values: Array) -> float:
    """Return the size of a step, which values that have none have by the largest of them."""
    return scales[0] if scales else float(np.abs(values).max()) / _STEPS_OF_8_BITS
