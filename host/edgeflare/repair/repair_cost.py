"""The cost of a repair on the device: bytes, and time for one inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.device import Device
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.cost_limits import CostLimit
from edgeflare.run.exact_interval import median_interval

LEAST_TURNS = 10
"""A turn is a batch of each model, so that other load on the device affects both."""

LEAST_SECONDS = 1.5
"""What all turns take together at least. Where a batch takes milliseconds, other load slows one of
the models for many turns: beside other programs on two cores (load 4), a model of .1 ms for an
image took .98 to 1.05 times as long as itself in 30 turns, and .99 to 1.01 times in 1.5 seconds."""

MOST_TURNS, MOST_SECONDS = 30, 10.0
"""Until then, both of them, turns go on where the limit lies within the interval of the ratio."""

CONFIDENCE = 0.99
"""That the interval contains the median ratio, were the turns independent."""

BATCH = 64


@dataclass(frozen=True, slots=True)
class Cost:
    """Size and speed of a model before and after its repair, on one device.

    Attributes:
        device: its name.
        bytes_before: size of the file.
        bytes_after: size of the repaired file.
        seconds_before: of one inference in a batch of 64, the median over the turns.
        seconds_after: the same of the repaired model.
        ratio: seconds after over seconds before, the median over the turns.
        ratio_low: the lower end of the interval of that median.
        ratio_high: the upper end.
        turns: how often both models were measured.

    """

    device: str
    bytes_before: int
    bytes_after: int
    seconds_before: float
    seconds_after: float
    ratio: float
    ratio_low: float
    ratio_high: float
    turns: int

    def exceeds(self, limit: CostLimit) -> bool:
        """Whether the model surely takes longer than a limit of time allows.

        It does where the whole interval of the ratio lies above the limit: what is measured beside
        other load excludes nothing by chance.
        """
        return not limit.allows(self.seconds_before, self.seconds_before * self.ratio_low)

    def keeps(self, limit: CostLimit) -> bool:
        """Whether the whole interval of the ratio lies within a limit of time."""
        return limit.allows(self.seconds_before, self.seconds_before * self.ratio_high)


def latency_change(cost: Mapping[str, Any]) -> str:
    """Return how much longer the repaired model takes: "+0.2 µs (+1.2%, -0.5% to +2.0%) on NAME".

    Args:
        cost: the fields of a `Cost`, as documents have them.

    """
    micro = 1e6 * (cost["seconds_after"] - cost["seconds_before"])
    median, low, high = (f"{cost[key] - 1.0:+.1%}" for key in ("ratio", "ratio_low", "ratio_high"))
    return f"{micro:+.1f} µs ({median}, {low} to {high}) on {cost['device']}"


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
    limit: CostLimit | None = None,
) -> Cost:
    """Measure both models on a device, in turns whose order alternates, so that drift cancels.

    Args:
        device: the device to measure on.
        before: the compressed model.
        after: the same one, repaired.
        inputs: (batch, …) encoded inputs, at least one.
        inputs_after: the same ones as the repaired model takes them; None where both take the same.
        limit: of the time; where the interval of the ratio contains it, turns go on for longer.

    Raises:
        UserError: the device refuses one of them.
        InfrastructureError: the device fails.

    """
    rows = np.arange(BATCH) % len(inputs)
    given = inputs[rows], (inputs if inputs_after is None else inputs_after)[rows]
    profile, sizes = device.profile, (before.stat().st_size, after.stat().st_size)
    with (
        closing(device.open_as(before, profile.kernels, profile.threads)) as first,
        closing(device.open_as(after, profile.kernels, profile.threads)) as second,
    ):
        sessions = first, second

        def turn(number: int) -> tuple[float, float]:
            times = [0.0, 0.0]
            for side in (0, 1) if number % 2 else (1, 0):
                answered = sessions[side].submit(given[side]).result()
                times[side] = answered.busy_seconds / BATCH
            return times[0], times[1]

        turn(0)  # warms both up
        times: list[tuple[float, float]] = []
        begun = monotonic()
        until = begun + LEAST_SECONDS
        while True:
            times.append(turn(len(times)))
            if len(times) < LEAST_TURNS or monotonic() < until:
                continue
            cost = _cost(profile.name, sizes, times)
            decided = limit is None or cost.exceeds(limit) or cost.keeps(limit)
            long = len(times) >= MOST_TURNS and monotonic() >= begun + MOST_SECONDS
            if decided or long:
                return cost
            until = monotonic() + LEAST_SECONDS


def _cost(device: str, sizes: tuple[int, int], times: Sequence[tuple[float, float]]) -> Cost:
    ratios = [after / before for before, after in times]
    low, high = median_interval(ratios, CONFIDENCE)
    return Cost(
        device,
        *sizes,
        seconds_before=median(one for one, _ in times),
        seconds_after=median(other for _, other in times),
        ratio=median(ratios),
        ratio_low=low,
        ratio_high=high,
        turns=len(times),
    )
