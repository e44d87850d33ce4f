"""What an inference costs on a device: the original's and the compressed model's, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.query import Arm
from edgeflare.diagnose.layer_graphs import tflite_original
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.original import invocation_of
from edgeflare.release.figures.check_figures import CostFigures, InferenceTime
from edgeflare.statistics.binomial import median_interval

_LEAST_TURNS: Final = 11
"""Turns that are timed in any case, unless it is stopped."""

_MOST_TURNS: Final = 101
"""Turns that are timed at most."""

_SECONDS: Final = 2.0
"""Time after which no further turn begins."""

_HIGH: Final = 0.9
"""The quantile that is told beside the median."""


def cost_figures(opened: OpenedPair, stopped: Callable[[], bool]) -> CostFigures:
    """Measure an inference on the device, the original's too where that runs there.

    Each turn asks both about one input, in alternating order, so that drift cancels.

    Args:
        opened: the pair, on one device.
        stopped: whether to come to an end.

    Raises:
        UserError: the device refuses the compressed model.

    """
    device, pair = opened.devices[0], opened.pair
    profile, ids = device.profile, [opened.seeds.seed_ids[0]]
    first = opened.seeds.inputs[:1]
    with ExitStack() as stack:
        compressed = stack.enter_context(
            closing(
                device.open_as(
                    pair.executed, profile.kernels, profile.threads, pair.interface.invocation
                )
            )
        )
        sides: list[tuple[Evaluator, NDArray[np.generic]]] = [
            (compressed, opened.panel.device_of(ids[0]).rows(first, ids))
        ]
        original = _original(opened, stack)
        if original is not None:
            sides.append((original, opened.panel.host(Arm.ORIGINAL).rows(first, ids)))
        times = list(_turns(sides, stopped))
        workers = device.telemetry().worker_rss_bytes
    ratio = low = high = None
    if original is not None and times:
        ratios = [time[0] / time[1] for time in times if time[1]]
        if ratios:
            ratio, (low, high) = median(ratios), median_interval(ratios)
    return CostFigures(
        device=profile.name,
        compressed=_summed_up([time[0] for time in times]),
        original=None if original is None else _summed_up([time[1] for time in times]),
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        worker_bytes=max(workers, default=None),
        arena_bytes=device.provenance.arena_bytes,
        inferences=max(1, pair.interface.invocation.frames),
    )


def cost_seconds(each: float) -> float:
    """Return about how many seconds it takes, where all arms take so many for an input."""
    return max(_LEAST_TURNS * each, min(_SECONDS, _MOST_TURNS * each))


def _original(opened: OpenedPair, stack: ExitStack) -> Evaluator | None:
    """Return the original on the device; None where it is no `.tflite`, or is refused there."""
    device, pair = opened.devices[0], opened.pair
    profile = device.profile
    try:
        path: Path = tflite_original(pair)
        called = invocation_of(pair.interface.invocation, path, pair.compressed)
        session = device.open_as(path, profile.kernels, profile.threads, called)
    except UserError:
        return None
    return stack.enter_context(closing(session))


def _turns(
    sides: Sequence[tuple[Evaluator, NDArray[np.generic]]], stopped: Callable[[], bool]
) -> Iterator[list[float]]:
    """Yield the seconds that an inference takes on each side, turn by turn; the first is cold."""
    begun = monotonic()
    for turn in range(_MOST_TURNS + 1):
        if stopped() or (turn > _LEAST_TURNS and monotonic() - begun > _SECONDS):
            return
        seconds = [0.0] * len(sides)
        order = list(range(len(sides)))
        for side in order if turn % 2 else reversed(order):
            model, row = sides[side]
            seconds[side] = model.submit(row).result().busy_seconds
        yield seconds


def _summed_up(seconds: list[float]) -> InferenceTime | None:
    """Return how long an inference takes; None where fewer than two were timed."""
    if len(seconds) < 2:
        return None
    first, *warm = seconds
    return InferenceTime(
        inferences=len(warm),
        first_seconds=first,
        median_seconds=median(warm),
        high_seconds=float(np.quantile(warm, _HIGH)),
    )
