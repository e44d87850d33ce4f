"""What the phases of a campaign share, and how they store a trigger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from edgeflare.campaign.device_health import DeviceHealth
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.panel import Panel
from edgeflare.campaign.pipeline import DEPTH, Pipeline, batch_size
from edgeflare.campaign.screening_answers import GivenScreening
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Trigger
from edgeflare.core.query import Arm, EvaluatedQuery, Query, WhiteboxQuery
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Task
from edgeflare.run.journal_notes import WithoutReset
from edgeflare.run.journal_rows import Times, TriggerRow
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.strategy import WhiteboxAnswer, no_white_box

SEEDS_FOLDER = "seeds"


CHAINS = 512
"""Chains that are open at once unless told otherwise: four batches of 128 under way. A batch of 64
hardly shows its fixed costs; twice that keeps a quick device busy behind 20 ms of link
(`benchmarks/throughput.py`). A chain costs the memory of a few inputs."""


@dataclass(frozen=True, slots=True)
class CampaignContext:
    """What the phases of a campaign share.

    Attributes:
        plan: what is asked.
        seeds: the seed inputs, limited as the plan says; those too that another run searches.
        panel: the arms.
        recover: brings a lost device back, by its place among the devices, or raises
            InfrastructureError.
        health: watches over the devices.
        journal: the record of the run, of which all else is derived.
        directory: where inputs are stored.
        domain: what the inputs are.
        task: what the outputs mean.
        stopwatch: the times of this process.
        observer: sees progress.
        chains: the most chains that are open at once, on all devices together.
        stopped: whether the user wants to stop.
        held_out: inputs that are only evaluated, or None.
        device_stages: whether the devices have input or output stages of their own.
        white_box: answers what strategies ask about the inside of original and twin.
        screening: what all arms answered to every seed, where that was asked elsewhere.
        without_reset: tells what the twin answers where its variables are not reset.

    """

    plan: Plan
    seeds: Seeds
    panel: Panel
    recover: Callable[[int], None]
    health: DeviceHealth
    journal: RunJournal
    directory: RunDirectory
    domain: Domain
    task: Task
    stopwatch: Stopwatch
    observer: Observer
    chains: int
    stopped: Callable[[], bool]
    held_out: Seeds | None = None
    device_stages: bool = False
    white_box: Callable[[WhiteboxQuery], WhiteboxAnswer] = no_white_box
    screening: GivenScreening | None = None
    without_reset: Callable[[], WithoutReset | None] = lambda: None

    @property
    def seed_ids(self) -> SeedIds:
        """The ids of the seeds that this run screens and searches."""
        return self.plan.seed_ids or SeedIds.of(self.seeds.seed_ids)

    def pipeline(self) -> Pipeline[Any]:
        """Return an empty pipeline over all devices; each batch waits until none is too hot."""
        return Pipeline(self.panel, self.recover, self.health.thermometer.wait_until_cool)

    def ask_device(self, seed_id: int) -> EvaluatedQuery:
        """Ask the device of a seed about the seed, on its own, however hot another one is."""
        pipeline: Pipeline[None] = Pipeline(self.panel, self.recover)
        pipeline.put(None, [Query(self.seeds.input_of(seed_id), (Arm.DEVICE,))], [seed_id])
        (one,) = pipeline.take().evaluated
        return one

    def batch_size(self, seconds_for_each: float) -> int:
        """Return how many queries make a batch for one device, given the time that one takes."""
        most = max(1, self.chains // self.panel.devices // DEPTH)
        return batch_size(seconds_for_each, most)


class Stopwatch:
    """Times what this process spends on the run, and writes it into the journal."""

    def __init__(self, journal: RunJournal, opening_seconds: float = 0.0) -> None:
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


def store_trigger(context: CampaignContext, folder: str, seed_id: int, trigger: Trigger) -> None:
    """Store a triggering input in a folder of the run directory, and note it in the journal."""
    seed = context.seeds.input_of(seed_id)
    stored = context.directory.store_input(folder, seed_id, trigger.input, context.domain)
    stored_seed = context.directory.store_input(SEEDS_FOLDER, seed_id, seed, context.domain)
    if context.seeds.fixed:
        place = context.seeds.place(seed_id)
        fixed = {name: rows[place] for name, rows in context.seeds.fixed.items()}
        context.directory.store_fixed(seed_id, fixed)
    context.journal.write_trigger(
        TriggerRow(
            seed_id,
            trigger.kind,
            trigger.operators,
            stored.path,
            stored.sha256,
            stored_seed.path,
            **asdict(context.domain.distances(trigger.input, seed)),
            nearness_db=context.domain.nearness_db(trigger.input, seed),
        )
    )
