"""The cost of a repair on the device: bytes, and time for one inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.device import Device
from edgeflare.models.tflite_graph import Graph

BATCHES = 30
"""Of each model at least, taken in turns, so that other load on the device affects both."""

FEW_BATCHES = 10
"""The same where the latency decides nothing alone, as of the candidates on a front."""

LEAST_SECONDS = 1.5
"""What all turns take together at least. Where a batch takes milliseconds, other load slows one of
the models for many turns: beside other programs on two cores (load 4), a model of .1 ms for an
image took .98 to 1.05 times as long as itself in 30 turns, and .99 to 1.01 times in 1.5 seconds."""

BATCH = 64


@dataclass(frozen=True, slots=True)
class Cost:
    """Size and speed of a model before and after its repair, on one device.

    Attributes:
        device: its name.
        bytes_before: size of the file.
        bytes_after: size of the repaired file.
        seconds_before: of one inference in a batch of 64, the median over the batches.
        seconds_after: the same of the repaired model.
        ratio: seconds after over seconds before, the median over the pairs of batches.

    """

    device: str
    bytes_before: int
    bytes_after: int
    seconds_before: float
    seconds_after: float
    ratio: float


def latency_change(cost: Mapping[str, Any]) -> str:
    """Return by how much longer the repaired model takes, in words: "+0.2 µs (+1.2%) on NAME".

    Args:
        cost: the fields of a `Cost`, as documents have them.

    """
    micro = 1e6 * (cost["seconds_after"] - cost["seconds_before"])
    return f"{micro:+.1f} µs ({cost['ratio'] - 1.0:+.1%}) on {cost['device']}"


def same_work(before: bytes, after: bytes) -> bool:
    """Whether two files have the same operators on tensors of the same shapes and types.

    They take the same time, so that what is measured beyond it is other load on the device.

    Raises:
        UserError: one of them cannot be read.

    """

    def work(content: bytes) -> tuple[object, ...]:
        graph = Graph(content)
        options = [repr(graph.options(one.index)) for one in graph.operators]
        tensors = [(one.shape, one.dtype, len(one.scales), one.axis) for one in graph.tensors]
        return tuple(graph.operators), options, tensors

    return work(before) == work(after)


def measure(
    device: Device,
    before: Path,
    after: Path,
    inputs: NDArray[np.generic],
    inputs_after: NDArray[np.generic] | None = None,
    batches: int = BATCHES,
) -> Cost:
    """Measure both models on a device.

    Args:
        device: the device to measure on.
        before: the compressed model.
        after: the same one, repaired.
        inputs: (batch, …) encoded inputs, at least one.
        inputs_after: the same ones as the repaired model takes them; None where both take the same.
        batches: of each model.

    Raises:
        UserError: the device refuses one of them.
        InfrastructureError: the device fails.

    """
    rows = np.arange(BATCH) % len(inputs)
    given = inputs[rows], (inputs if inputs_after is None else inputs_after)[rows]
    profile = device.profile
    with (
        closing(device.open_as(before, profile.kernels, profile.threads)) as first,
        closing(device.open_as(after, profile.kernels, profile.threads)) as second,
    ):
        times = [
            tuple(
                session.submit(batch).result().busy_seconds / BATCH
                for session, batch in zip((first, second), given, strict=True)
            )
            for _ in _turns(batches + 1)
        ][1:]  # the first of each warms up
    return Cost(
        profile.name,
        before.stat().st_size,
        after.stat().st_size,
        median(one for one, _ in times),
        median(other for _, other in times),
        median(other / one for one, other in times),
    )


def _turns(least: int) -> Iterator[int]:
    """Count turns until there are enough of them and they took long enough."""
    until = monotonic() + LEAST_SECONDS
    yield from takewhile(lambda turn: turn < least or monotonic() < until, count())
