"""A campaign and the run that records it: its header, and the way to its written document."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from msgspec import structs

from edgeflare.campaign.campaign import StoppedBy, run_campaign
from edgeflare.campaign.campaign_context import CHAINS, CampaignContext, Stopwatch
from edgeflare.campaign.device_health import DeviceHealth
from edgeflare.campaign.input_evaluation import HeldOut
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.plan_defaults import settle_plan
from edgeflare.campaign.unreset_twin import answers_without_reset
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm
from edgeflare.core.raw_output_rows import UnreadableRowError
from edgeflare.core.truths import KeptTargets
from edgeflare.errors import InfrastructureError
from edgeflare.models.model_variables import pair_variables
from edgeflare.models.pair import Pair
from edgeflare.models.run_host import describe_host
from edgeflare.models.run_pair import RunPair
from edgeflare.python_callable import is_callable
from edgeflare.record.database import DamagedDatabaseError
from edgeflare.record.journal import damaged_journal
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.derive_document import write_document
from edgeflare.run.nearness import NEARNESS_KEY
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDevice, RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from edgeflare_protos import __version__


def describe_run(opened: OpenedPair, plan: Plan, fingerprint: str = "") -> RunHeader:
    """Return the header of a campaign's run, with the plan settled.

    Args:
        opened: the pair, its seeds and the devices.
        plan: what is asked.
        fingerprint: that of the pair where it is known, since it is read from all files of a set.

    Raises:
        UserError: there are fewer queries than seeds, or no such seeds.

    """
    seeds = opened.seeds
    labels, names = seeds.labels, seeds.names
    return RunHeader(
        version=__version__,
        pair=_describe_pair(opened.pair, fingerprint or opened.pair.fingerprint()),
        plan=settle_plan(plan, seeds, opened.ensemble, opened.pair),
        devices=tuple(map(RunDevice.of, opened.devices)),
        arms=opened.panel.reading.decoders,
        classes=opened.pair.classes or opened.panel.reading.decoders[Arm.DEVICE].names,
        labels=None if labels is None else tuple(labels.tolist()),
        targets=KeptTargets.of(seeds.targets),
        host=describe_host(opened.pair.original),
        names=() if names == tuple(map(str, seeds.seed_ids)) else names,
        all_seeds=SeedIds.of(seeds.seed_ids),
    )


def search_into(
    path: Path,
    opened: OpenedPair,
    header: RunHeader,
    *,
    observer: Observer,
    interrupt: Interrupt,
    resume: bool = False,
    overwrite: bool = False,
    chains: int = CHAINS,
) -> RunDocument:
    """Search a pair in a run directory, and write the document; raises as `run_recorded_campaign`.

    Args:
        path: the run directory; may be absent or empty.
        opened: the pair, its seeds and the devices.
        header: what run it is, as `describe_run` returns it.
        observer: sees progress.
        interrupt: the user's wish to stop.
        resume: go on with the run that is there.
        overwrite: replace a run that is there.
        chains: the most chains that are open at once for each device.

    """
    seeds = len(header.plan.seed_ids or opened.seeds)
    _, journal = (
        resume_run(path, header) if resume else begin_run(path, header, seeds, overwrite=overwrite)
    )
    with closing(journal):
        return run_recorded_campaign(
            opened, header.plan, journal, observer=observer, interrupt=interrupt, chains=chains
        )


def run_recorded_campaign(
    opened: OpenedPair,
    plan: Plan,
    journal: RunJournal,
    *,
    observer: Observer,
    interrupt: Interrupt,
    chains: int = CHAINS,
    held_out: HeldOut | None = None,
    phases: Callable[[CampaignContext, Interrupt], StoppedBy | None] = run_campaign,
) -> RunDocument:
    """Run a campaign, or go on with one, and write its document, whatever happens on the way.

    Args:
        opened: the pair, its seeds and the devices.
        plan: what is asked, settled: that of the header that the journal was told.
        journal: the journal in the run's directory, a new one, or one to resume.
        observer: sees progress.
        interrupt: the user's wish to stop.
        chains: the most chains that are open at once for each device.
        held_out: inputs that are only evaluated; those that the journal was told of.
        phases: what is done; returns what stopped it before its end, or None. A search, unless told
            otherwise.

    Raises:
        DamagedJournalError: the journal has an answer that is none of the models'.
        InfrastructureError: a device was lost for good. The run is noted as stopped by that, and
            the document is written all the same.
        UserError: the run cannot be resumed here, or a function of the user's fails. The run is
            noted as stopped by an error, and the document is written all the same; so it is of
            what else is raised, which is a mistake in edgeflare.

    """
    directory = RunDirectory(journal.path.parent)
    context = CampaignContext(
        plan=plan,
        seeds=opened.seeds,
        panel=opened.panel,
        recover=lambda index: opened.devices[index].reopen(interrupt.urgent),
        health=DeviceHealth.of(opened.devices, opened.seeds, journal, observer, interrupt.asked),
        journal=journal,
        directory=directory,
        domain=opened.pair.interface.domain,
        task=opened.pair.interface.opened_task,
        stopwatch=Stopwatch(journal, opened.opening_seconds),
        observer=observer,
        chains=chains * len(opened.devices),
        stopped=interrupt.asked,
        held_out=None if held_out is None else held_out.inputs,
        device_stages=opened.stages is not None,
        white_box=opened.white_box,
        screening=opened.screening,
        without_reset=partial(answers_without_reset, opened),
    )
    notes = (*opened.pair.notes, *opened.seeds.notes)
    journal.note("notes", list(notes))
    journal.note(NEARNESS_KEY, asdict(context.domain.nearness_measure))
    for note in notes:
        observer.warned(note)
    try:
        return _run_phases(context, partial(phases, context, interrupt))
    except UnreadableRowError as error:
        raise damaged_journal(journal.path, str(error)) from error


def _run_phases(context: CampaignContext, phases: Callable[[], StoppedBy | None]) -> RunDocument:
    """Do what is asked, and write the document, also of what a failure has left."""
    journal = context.journal
    try:
        journal.note("stopped_by", phases())
    except Exception as error:
        lost = isinstance(error, (OSError, InfrastructureError))
        # What was raised says more than that it cannot be noted either.
        with suppress(OSError, InfrastructureError, DamagedDatabaseError, UnreadableRowError):
            journal.note("stopped_by", "infrastructure" if lost else "error")
            write_document(context.directory, journal)
        raise
    return write_document(context.directory, journal)


def _describe_pair(pair: Pair, fingerprint: str) -> RunPair:
    return RunPair(
        name=pair.name,
        fingerprint=fingerprint,
        original=None if pair.original is None else _absolute(pair.original),
        compressed=os.path.abspath(pair.compressed),
        seeds=os.path.abspath(pair.seeds),
        sha256=pair.model_hashes(),
        folded_shapes=None if pair.folded is None else pair.folded.described(),
        functions=tuple(pair.function_hashes()),
        variables=pair_variables(pair),
        **structs.asdict(pair.interface.described()),
    )


def _absolute(original: str) -> str:
    """Return where an original is, from whatever folder; a module's name stays what it is."""
    module = original.rpartition(":")[0]
    named = is_callable(original) and not module.endswith(".py")
    return original if named else os.path.abspath(original)
