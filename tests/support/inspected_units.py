"""Synthetic networks to inspect: healthy ones, and such with a fault in one channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from edgeflare.diagnose.inspect.behaviour_block import BehaviourBlock, UnitLayer
from edgeflare.hypothesis import UnitHypothesis

NAMES = ("deviates", "class pair", "brightness", "contrast", "high frequencies", "mine")
HYPOTHESES = tuple(UnitHypothesis(name, lambda _: 0.0, name != "mine") for name in NAMES)


def network(*channels: int) -> tuple[UnitLayer, ...]:
    """Return layers with so many channels."""
    return tuple(UnitLayer("CONV_2D", 2 * n, count) for n, count in enumerate(channels))


def inputs(
    layers: Sequence[UnitLayer],
    count: int,
    rng: np.random.Generator,
    *,
    fault: tuple[int, int, float] | None = None,
    behaviours: Sequence[str] = ("error-gradient",),
    unrelated: bool = False,
) -> BehaviourBlock:
    """Return what a network does on inputs, two to a group.

    Args:
        layers: of the network.
        count: of the inputs.
        rng: everything is drawn from it.
        fault: layer, channel and the part of the error's variance that this channel has. In all
            later layers its error is spread evenly over the channels.
        behaviours: besides `error-gradient`, such that have nothing to do with anything.
        unrelated: whether errors and labels have nothing to do with units either.

    """
    units = sum(layer.channels for layer in layers)
    at, channel, part = fault or (len(layers), 0, 0.0)
    planted = rng.normal(0, np.sqrt(part), count)
    healthy = rng.normal(0, np.sqrt(1 - part), count)
    errors = planted + healthy
    columns = []
    for number, layer in enumerate(layers):
        own = rng.normal(0, 0.5 / np.sqrt(layer.channels), (count, layer.channels))
        own += (healthy - own.sum(axis=1))[:, None] * rng.dirichlet(np.full(layer.channels, 4.0))
        if number == at:
            own[:, channel] += planted
        elif number > at:
            own += planted[:, None] / layer.channels
        columns.append(own.astype(np.float32))
    contributions = np.concatenate(columns, axis=1)
    others = {
        name: rng.normal(size=(count, units)).astype(np.float32)
        for name in behaviours
        if name != "error-gradient"
    }
    if unrelated:
        errors = rng.permutation(errors)
    said = np.column_stack(
        [
            errors > 0.5, rng.random(count) < 0.3, rng.normal(size=(count, 2)),
            rng.random(count), rng.normal(size=count),
        ]
    )  # fmt: skip
    values = {"error-gradient": contributions} if "error-gradient" in behaviours else {}
    groups = np.arange(count) // 2
    halves = (groups % 2).astype(np.int8)
    return BehaviourBlock(values | others, said, errors, groups, halves, np.zeros(count, np.int64))


def blocks(whole: BehaviourBlock, sizes: Sequence[int]) -> Iterator[BehaviourBlock]:
    """Divide inputs into blocks of some sizes, which are repeated until all are given."""
    begin, number = 0, 0
    while begin < len(whole):
        size = sizes[number % len(sizes)]
        yield whole.part(slice(begin, begin + size))
        begin, number = begin + size, number + 1
