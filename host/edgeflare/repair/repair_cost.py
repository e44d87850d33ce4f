"""The cost of a repair: by how much file and latency may grow, and the time for one inference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from math import ceil, isfinite
from pathlib import Path
from statistics import median
from time import monotonic

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.device import Device
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Invocation
from edgeflare.models.tflite_graph import Graph
from edgeflare.record.json_types import Amount, CountFromOne
from edgeflare.statistics.binomial import median_interval

SIZE_UNITS: Mapping[str, float] = {"B": 1.0, "KiB": 1024.0, "MiB": 1024.0**2}
"""Units of `--max-size`, in bytes."""

LATENCY_UNITS: Mapping[str, float] = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
"""Units of `--max-latency`, in seconds."""

DEFAULT_LIMIT = "+5%"
"""Limit of file and time where none is given: what compression gained is not to be lost."""

NO_LIMIT = "none"
"""Word in the place of a limit: the file or the time may grow by anything."""

_LIMIT = re.compile(r"\+?\s*(?P<amount>\d+(\.\d*)?|\.\d+)\s*(?P<unit>%|[a-zµ]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CostLimit:
    """How much a candidate may have more than the compressed model before.

    Attributes:
        share: share of what that has, .01 for 1 %.
        amount: bytes or seconds beside that.

    """

    share: float = 0.0
    amount: float = 0.0

    def allows(self, before: float, after: float) -> bool:
        """Whether a candidate is within the limit.

        Args:
            before: bytes or seconds of the compressed model before.
            after: those of the candidate.

        """
        return after <= before * (1.0 + self.share) + self.amount


def size_limit(text: str) -> CostLimit | None:
    """Read `--max-size`: "+1%", "1%" or "+2KiB"; None where it is "none".

    Raises:
        UserError: it is no such limit.

    """
    return _limit(text, "--max-size", SIZE_UNITS, "+2KiB")


def latency_limit(text: str) -> CostLimit | None:
    """Read `--max-latency`: "+5%", "5%" or "+20us"; None where it is "none".

    Raises:
        UserError: it is no such limit.

    """
    return _limit(text, "--max-latency", LATENCY_UNITS, "+20us")


def least_limit(before: float, after: float) -> str:
    """Return the lowest limit, in tenths of a percent, that allows a candidate: "+3.2%".

    Args:
        before: bytes or seconds of the compressed model before, above 0.
        after: those of the candidate.

    """
    tenths = max(0, ceil(1000.0 * (after / before - 1.0)))
    if not CostLimit(tenths / 1000.0).allows(before, after):  # a quotient may be rounded down
        tenths += 1
    return f"+{tenths / 10:.10g}%"


def _limit(text: str, option: str, units: Mapping[str, float], example: str) -> CostLimit | None:
    if text.strip().lower() == NO_LIMIT:
        return None
    found = _LIMIT.fullmatch(text.strip())
    factors = {unit.lower(): factor for unit, factor in {"%": 0.01, **units}.items()}
    factor = factors.get(found["unit"].lower()) if found else None
    if found is None or factor is None or not isfinite(amount := float(found["amount"]) * factor):
        raise UserError(
            f"{option} {text!r} is no limit: give by how much it may grow, as a percentage or in"
            f" {', '.join(units)}, such as +1% or {example}, or {NO_LIMIT} for no limit"
        )
    return CostLimit(share=amount) if found["unit"] == "%" else CostLimit(amount=amount)


LEAST_TURNS = 10
"""A turn opens both models and runs batches of each in alternation, so that other load affects
both. Each opens them anew: where its memory happens to lie, a model of 13 µs for an image took 1.4
times as long as itself for as long as it was open (AMD EPYC)."""

LEAST_SECONDS = 1.5
"""What all turns take together at least. Where a batch takes milliseconds, other load slows one of
the models for many turns: beside other programs on two cores (load 4), a model of .1 ms for an
image took .98 to 1.05 times as long as itself in 30 turns, and .99 to 1.01 times in 1.5 seconds."""

MOST_TURNS, MOST_SECONDS = 30, 10.0
"""Turns and seconds, both passed before turns end while the limit lies in the ratio's interval."""

NARROW, LONGER = 1.1, 3
"""An interval is narrow where its upper end is at most so many times its lower one. One that is
not, since other load is heavy, is measured for so many times the turns and the seconds above."""

CONFIDENCE = 0.99
"""Probability that the interval contains the median ratio, were the turns independent."""

BATCH = 64


class Latency(msgspec.Struct, frozen=True):
    """The time for an inference before and after a repair, on one device.

    Attributes:
        device: on which the times were measured.
        before_seconds: time for one inference in a batch of 64, the median over the turns.
        after_seconds: the same of the repaired model.
        ratio: seconds after over seconds before, the median over the turns.
        ratio_low: the lower end of the 99 % interval of that median: a candidate is refused only
            where this is above the limit.
        ratio_high: the upper end.
        turns: how often both models were opened and measured, one beside the other.

    """

    device: str
    before_seconds: Amount
    after_seconds: Amount
    ratio: Amount
    ratio_low: Amount
    ratio_high: Amount
    turns: CountFromOne

    def exceeds(self, limit: CostLimit) -> bool:
        """Whether the model surely takes longer than a limit of time allows.

        It does where the whole interval of the ratio lies above the limit: what is measured beside
        other load excludes nothing by chance.
        """
        return not limit.allows(self.before_seconds, self.before_seconds * self.ratio_low)

    def keeps(self, limit: CostLimit) -> bool:
        """Whether the whole interval of the ratio lies within a limit of time."""
        return limit.allows(self.before_seconds, self.before_seconds * self.ratio_high)

    @property
    def change(self) -> str:
        """How much longer the repaired model takes: "+0.2 µs (+1.2%, -0.5% to +2.0%) on NAME"."""
        micro = 1e6 * (self.after_seconds - self.before_seconds)
        ratios = (self.ratio, self.ratio_low, self.ratio_high)
        median, low, high = (f"{ratio - 1.0:+.1%}" for ratio in ratios)
        return f"{micro:+.1f} µs ({median}, {low} to {high}) on {self.device}"


def same_work(before: bytes, after: bytes) -> bool:
    """Whether two files have the same operators on tensors of the same shapes and types.

    They take the same time, so that what is measured beyond it is other load on the device.

    Raises:
        UserError: one of them cannot be read.

    """

    def work(content: bytes) -> tuple[object, ...]:
        graph = Graph(content)
        options = [repr(graph.options(operator.index)) for operator in graph.operators]
        tensors = [
            (tensor.shape, tensor.dtype, len(tensor.scales), tensor.axis)
            for tensor in graph.tensors
        ]
        return tuple(graph.operators), options, tensors

    return work(before) == work(after)


def measure(
    device: Device,
    files: tuple[Path, Path],
    inputs: NDArray[np.generic],
    inputs_after: NDArray[np.generic] | None = None,
    limit: CostLimit | None = None,
    called: Invocation = ONCE,
) -> Latency:
    """Measure both models on a device, in turns whose order alternates, so that drift cancels.

    Args:
        device: the device to measure on.
        files: the compressed model, and the same one repaired.
        inputs: (batch, …) encoded inputs, at least one.
        inputs_after: the same ones as the repaired model takes them; None where both take the same.
        limit: limit of the time; where the interval of the ratio contains it, turns go on for
            longer, and the longest where it is wide.
        called: how the models are called; an inference is one input, such as a clip.

    Raises:
        UserError: the device refuses one of them.

    """
    rows = np.arange(BATCH) % len(inputs)
    given = inputs[rows], (inputs if inputs_after is None else inputs_after)[rows]
    profile = device.profile

    def turn(number: int) -> tuple[float, float]:
        with ExitStack() as opened:
            sessions = {
                side: opened.enter_context(
                    closing(device.open_as(files[side], profile.kernels, profile.threads, called))
                )
                for side in _order(number)
            }
            return _seconds_in_turn(number, [(sessions[side], given[side]) for side in (0, 1)])

    times: list[tuple[float, float]] = []
    begun = monotonic()
    until = begun + LEAST_SECONDS
    while True:
        times.append(turn(len(times)))
        if len(times) < LEAST_TURNS or monotonic() < until:
            continue
        latency = _latency(profile.name, times)
        decided = limit is None or latency.exceeds(limit) or latency.keeps(limit)
        longer = 1 if latency.ratio_high <= NARROW * latency.ratio_low else LONGER
        turned = len(times) >= longer * MOST_TURNS
        if decided or (turned and monotonic() >= begun + longer * MOST_SECONDS):
            return latency
        until = monotonic() + LEAST_SECONDS


def _seconds_in_turn(
    number: int, opened: Sequence[tuple[DeviceSession, NDArray[np.generic]]]
) -> tuple[float, float]:
    """Return what an inference of each of two open models takes, in seconds.

    It is that of the quickest batch: other load makes batches slower, and none quicker.
    """
    for session, rows in opened:  # warms both up
        session.submit(rows[:1]).result()
    times: tuple[list[float], list[float]] = [], []
    until = monotonic() + LEAST_SECONDS / LEAST_TURNS
    while not times[0] or monotonic() < until:
        for side in _order(number + len(times[0])):
            session, rows = opened[side]
            times[side].append(session.submit(rows).result().busy_seconds / BATCH)
    return min(times[0]), min(times[1])


def _order(number: int) -> tuple[int, int]:
    return (0, 1) if number % 2 else (1, 0)


def _latency(device: str, times: Sequence[tuple[float, float]]) -> Latency:
    ratios = [after / before for before, after in times]
    low, high = median_interval(ratios, CONFIDENCE)
    return Latency(
        device,
        before_seconds=median(time for time, _ in times),
        after_seconds=median(other for _, other in times),
        ratio=median(ratios),
        ratio_low=low,
        ratio_high=high,
        turns=len(times),
    )
