"""What the phases of a campaign share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.health.health import Health
from edgeflare.campaign.journal import Journal
from edgeflare.campaign.panel import Evaluated, Panel
from edgeflare.campaign.pipeline import DEPTH, Pipeline
from edgeflare.campaign.plan import Plan
from edgeflare.campaign.rows import Times
from edgeflare.campaign.run_directory import RunDirectory
from edgeflare.search.outcome import Arm
from edgeflare.search.strategy import Query, Tale

CHAINS = 512
"""Chains that are open at once unless told otherwise: four batches of 128 under way. A batch of 64
hardly shows its fixed costs; twice that keeps a quick device busy behind 20 ms of link
(`benchmarks/throughput.py`). A chain costs the memory of a few images."""

BATCH_SECONDS = 0.25
"""The longest that a batch should take on one device, so that progress is seen and Ctrl-C is heeded
on one that needs a tenth of a second for one input."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the search is.

    Attributes:
        seeds: seeds of the campaign.
        deviating_seeds: those that deviate themselves.
        ended: chains that have ended.
        findings: chains that ended in a finding.
        queries: queries so far.
        device_queries: device queries so far.
        seconds: wall seconds so far.
        most_queries_left: queries that the chains which have not ended may still spend.
        seconds_left: wall seconds until the search is stopped; infinite where they have no bound.

    """

    seeds: int
    deviating_seeds: int
    ended: int
    findings: int
    queries: int
    device_queries: int
    seconds: float
    most_queries_left: int
    seconds_left: float


class Observer(Protocol):
    """Whoever wants to see how far a campaign is."""

    def warned(self, line: str) -> None:
        """See that something looks wrong with the pair."""

    def screened(self, done: int, total: int) -> None:
        """See that so many of the seeds have been evaluated."""

    def tested(self, done: int, total: int) -> None:
        """See that so many of the held-out images have been evaluated."""

    def searched(self, progress: Progress) -> None:
        """See how far the search is."""

    def refined(self, done: int, total: int) -> None:
        """See that so many of the findings have been refined."""

    def verified(self, done: int, total: int) -> None:
        """See that so many evaluations of findings have been repeated."""


class Unobserved:
    """An observer that looks away."""

    def warned(self, line: str) -> None:
        """Look away."""

    def screened(self, done: int, total: int) -> None:
        """Look away."""

    def tested(self, done: int, total: int) -> None:
        """Look away."""

    def searched(self, progress: Progress) -> None:
        """Look away."""

    def refined(self, done: int, total: int) -> None:
        """Look away."""

    def verified(self, done: int, total: int) -> None:
        """Look away."""


class Stopwatch:
    """Times what this process spends on the run, and writes it into the journal."""

    def __init__(self, journal: Journal, opening_seconds: float = 0.0) -> None:
        """Start the first lap, to which the opening of models and device belongs."""
        self._journal = journal
        self._mark = time.monotonic() - opening_seconds
        self._times = Times()

    def lap(
        self, phase: Literal["setup", "wall", "refine", "verify"], device_busy: float = 0.0
    ) -> None:
        """Add the time since the last lap to a phase."""
        now = time.monotonic()
        spent = getattr(self._times, phase) + now - self._mark
        self._times = replace(
            self._times, **{phase: spent}, device_busy=self._times.device_busy + device_busy
        )
        self._mark = now
        self._journal.write_times(self._times)

    @property
    def wall(self) -> float:
        """Seconds that this process has searched."""
        return self._times.wall


@dataclass(frozen=True, slots=True)
class Setting:
    """What the phases of a campaign share.

    Attributes:
        plan: what is asked.
        images: (seeds, H, W, C) uint8, the seed inputs, limited as the plan says.
        labels: (seeds,) int64, or None.
        panel: the arms.
        recover: brings a lost device back, by its place among the devices, or raises
            InfrastructureError.
        health: watches over the devices.
        tale: the strategy.
        journal: the truth.
        directory: where images are stored.
        stopwatch: the times of this process.
        observer: sees progress.
        chains: the most chains that are open at once.
        stopped: whether the user wants to stop.
        held_out: (images, H, W, C) uint8, images that are only evaluated, or None.

    """

    plan: Plan
    images: NDArray[np.uint8]
    labels: NDArray[np.int64] | None
    panel: Panel
    recover: Callable[[int], None]
    health: Health
    tale: Tale
    journal: Journal
    directory: RunDirectory
    stopwatch: Stopwatch
    observer: Observer
    chains: int
    stopped: Callable[[], bool]
    held_out: NDArray[np.uint8] | None = None

    def pipeline(self) -> Pipeline[Any]:
        """Return an empty pipeline over the panel."""
        return Pipeline(self.panel, self.recover, self.health.thermometer.breathe)

    def ask_device(self, seed_id: int) -> Evaluated:
        """Ask the device of a seed about the seed's image, on its own."""
        pipeline = self.pipeline()
        pipeline.put(None, [Query(self.images[seed_id], (Arm.DEVICE,))], [seed_id])
        (one,) = pipeline.take().evaluated
        return one

    def batch_size(self, seconds_for_each: float) -> int:
        """Return how many queries make a batch, given the time that one takes.

        Several devices work on a batch at once, so that it may hold as many times more.
        """
        most = max(1, self.chains // DEPTH)
        if seconds_for_each <= 0.0:
            return most
        return max(1, min(most, int(BATCH_SECONDS * self.panel.devices / seconds_for_each)))
