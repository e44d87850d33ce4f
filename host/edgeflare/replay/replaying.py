"""A run replayed: its stored inputs and their seeds, on any device, with any compressed model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from edgeflare.campaign.about import About
from edgeflare.campaign.again import try_again
from edgeflare.campaign.assembly import Assembly, assemble
from edgeflare.campaign.campaign import Interrupt
from edgeflare.campaign.health import Health
from edgeflare.campaign.journal import ChainRow, Journal, TriggerRow
from edgeflare.campaign.run_directory import RunDirectory, write_atomically
from edgeflare.campaign.setting import CHAINS, Observer, Setting, Stopwatch
from edgeflare.devices.profile import Profile
from edgeflare.errors import EdgeFlareError
from edgeflare.replay.past_run import PastRun
from edgeflare.report.document import Document, write_document
from edgeflare.search.random_walk import random_walk

STRATEGY = "replay"
"""What the document of a replay calls its strategy."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A run, and what it is to be replayed with, opened."""

    past: PastRun
    assembly: Assembly
    about: About


def open_replay(
    past: PastRun, profiles: Sequence[Profile], compressed: Path | None, stack: ExitStack
) -> Replay:
    """Open a run's models, or another compressed one, and the devices; `stack` closes them.

    Raises:
        UserError: the run's models are gone or changed, or it found nothing.
        InfrastructureError: a device does not come up.

    """
    plan = replace(
        past.about.plan,
        strategy=STRATEGY,
        devices=tuple(profile.name for profile in profiles),
        total_queries=None,
        strengthen=0,
        shrink=0,
    )
    pair, find = past.pair(compressed), plan.goal.find
    assembly = assemble(pair, past.seeds, find, profiles, stack, plan.ensemble[:1])
    return Replay(past, assembly, replace(assembly.about(plan), labels=past.about.labels))


def begin_replay(
    replay: Replay, path: Path, baseline: PastRun | None, *, overwrite: bool
) -> tuple[RunDirectory, Journal]:
    """Begin a replay's own run directory, with the inputs of the run in it.

    Raises:
        UserError: there is something at the path that must not be written over, or a stored input
            is gone or damaged.

    """
    past = replay.past
    entries = past.deviations
    files = [past.files(entry) for entry in entries]
    directory = RunDirectory.claim(path, overwrite=overwrite)
    for name, data in chain.from_iterable(one.items() for one in files):
        write_atomically(directory.path / name, data)
    told = {"seeds": len(entries), "replay": {"of": _of(past), "baseline": _baseline(baseline)}}
    journal = Journal.create(directory.journal, {**replay.about.to_json(), **told})
    with journal.transaction():
        for entry in entries:
            journal.write_trigger(_trigger(entry))
            if entry in past.document["findings"]:
                journal.end_chain(ChainRow(entry["seed_id"], "finding", 0, 0, 0, 0, 0, 0, 0.0))
    return directory, journal


def run_replay(
    replay: Replay,
    directory: RunDirectory,
    journal: Journal,
    observer: Observer,
    interrupt: Interrupt,
) -> Document:
    """Run a replay, or go on with one, and write its document.

    Raises:
        InfrastructureError: a device was lost for good. The document is written all the same.

    """
    assembly = replay.assembly
    setting = Setting(
        plan=replay.about.plan,
        images=assembly.seeds.images,
        labels=assembly.seeds.labels,
        panel=assembly.panel,
        recover=lambda index: assembly.devices[index].reopen(),
        health=Health(assembly.devices, journal, observer, interrupt.asked),
        tale=random_walk,  # never told: nothing is searched
        journal=journal,
        directory=directory,
        stopwatch=Stopwatch(journal, assembly.opening_seconds),
        observer=observer,
        chains=CHAINS,
        stopped=interrupt.asked,
    )
    try:
        try_again(setting, interrupt)
    except EdgeFlareError:
        write_document(directory, journal)
        raise
    return write_document(directory, journal)


def _of(past: PastRun) -> dict[str, Any]:
    return {
        "run": str(past.directory.path),
        "devices": [device["name"] for device in past.document["devices"]],
        "compressed": past.document["pair"]["compressed"],
    }


def _baseline(baseline: PastRun | None) -> dict[str, Any] | None:
    """Return what deviated in the baseline: stored inputs by sha256, and seeds by id."""
    if baseline is None:
        return None
    document = baseline.document
    deviating = (*document["findings"], *document["deviating_seeds"], *document["flaky"])
    replay = document.get("replay", {"deviating_seeds": []})
    return {
        "run": str(baseline.directory.path),
        "sha256": [entry["sha256"] for entry in deviating],
        "seeds": replay["deviating_seeds"],
    }


def _trigger(entry: Document) -> TriggerRow:
    return TriggerRow(
        entry["seed_id"],
        entry["kind"],
        tuple(entry["operators"]),
        entry["image"],
        entry["sha256"],
        entry["seed_image"],
        **entry["distortion"],
    )
