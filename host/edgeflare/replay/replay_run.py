"""A run replayed: its stored inputs and their seeds, on any device, with any compressed model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import structs

from edgeflare.campaign.campaign import evaluate_again
from edgeflare.campaign.campaign_context import SEEDS_FOLDER
from edgeflare.campaign.campaign_record import describe_run, run_recorded_campaign
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Find
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.seeds import Seeds
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.record.atomic_file import write_atomically
from edgeflare.replay.past_run import PastRun
from edgeflare.run.begin_or_resume import resume_run
from edgeflare.run.journal_rows import ChainRow, TriggerRow
from edgeflare.run.nearness import nearness_db
from edgeflare.run.run_directory import INPUT_FOLDERS, RunDirectory
from edgeflare.run.run_document import Finding, RunDocument, to_json
from edgeflare.run.run_header import RunHeader, made_by
from edgeflare.run.run_journal import RunJournal

STRATEGY = "replay"
"""What the document of a replay calls its strategy."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A run, and what it is to be replayed with, opened."""

    past: PastRun
    opened: OpenedPair
    header: RunHeader


def open_replay(past: PastRun, pair: Pair, profiles: Sequence[Profile], stack: ExitStack) -> Replay:
    """Open a run's pair, perhaps with another compressed model, and the devices.

    Args:
        past: the run.
        pair: as `past.pair` returns it.
        profiles: the devices.
        stack: closes what is opened.

    Raises:
        UserError: the run found nothing, or what it stored is gone or damaged.

    """
    plan = replace(
        past.header.plan,
        strategy=STRATEGY,
        devices=tuple(profile.name for profile in profiles),
        total_queries=None,
        strengthen=0,
        shrink=0,
        coverage=(),
    )
    twin_alone = replace(plan, ensemble=plan.ensemble[:1], elsewhere=())
    opened = open_pair(
        pair, twin_alone, profiles, stack, seeds_for=past.seeds, before=past.header.arms
    )
    header = describe_run(opened, plan)
    described = structs.replace(header.pair, seeds=str(Path(past.lies_at) / SEEDS_FOLDER))
    known = past.header
    header = replace(
        header,
        pair=described,
        labels=known.labels,
        targets=known.targets,
        names=known.names,
        all_seeds=known.all_seeds,
    )
    return Replay(past, opened, header)


def begin_replay(
    replay: Replay, path: Path, baseline: PastRun | None, *, overwrite: bool
) -> tuple[RunDirectory, RunJournal]:
    """Begin a replay's own run directory, with the inputs of the run in it.

    Raises:
        UserError: there is something at the path that must not be written over, a stored input is
            gone or damaged, or the baseline cannot be one.

    """
    past = replay.past
    note = replay_note(past, baseline)
    triggers = [
        TriggerRow(
            entry.seed_id,
            entry.kind,
            entry.operators,
            entry.file,
            entry.sha256,
            entry.seed_file,
            **to_json(entry.distortion),
            nearness_db=nearness_db(entry),
        )
        for entry in past.suite
    ]
    chains = [
        ChainRow.nothing_spent(entry.seed_id)
        for entry in past.suite
        if entry.seed_id in past.searched
    ]
    about = {**replay.header.to_json(), **note}
    directory, lock = RunDirectory.claim(path, overwrite=overwrite)
    # The journal first: with it the replay can be resumed after any interruption.
    journal = RunJournal.create(directory.journal, about, triggers, chains, lock=lock)
    try:
        _copy_inputs(replay.past, replay.opened.seeds, directory, journal)
    except BaseException:
        journal.close()
        raise
    return directory, journal


def resume_replay(
    replay: Replay, path: Path, baseline: PastRun | None
) -> tuple[RunDirectory, RunJournal]:
    """Go on with a replay that was cut off.

    Raises:
        UserError: there is none, or it is one of something else.

    """
    _require_same_replay(path, replay.past, baseline)
    directory, journal = resume_run(path, replay.header)
    _copy_inputs(replay.past, replay.opened.seeds, directory, journal)
    return directory, journal


def run_replay(
    replay: Replay,
    journal: RunJournal,
    observer: Observer,
    interrupt: Interrupt,
) -> RunDocument:
    """Run a replay, or go on with one, and write its document.

    Raises:
        InfrastructureError: a device was lost for good. The document is written all the same.

    """
    return run_recorded_campaign(
        replay.opened,
        replay.header.plan,
        journal,
        observer=observer,
        interrupt=interrupt,
        phases=evaluate_again,
    )


def _copy_inputs(past: PastRun, seeds: Seeds, directory: RunDirectory, journal: RunJournal) -> None:
    """Copy the inputs of a run; where that fails, leave the replay resumable."""
    try:
        for at, seed_id in enumerate(seeds.ids if seeds.fixed else ()):
            fixed = {name: rows[at] for name, rows in seeds.fixed.items()}
            directory.store_fixed(seed_id, fixed)
        for entry in past.suite:
            for name, data in past.files(entry).items():
                if PurePosixPath(name).parts[0] not in INPUT_FOLDERS:
                    raise UserError(
                        f"{past.directory.path} names {name!r} as an input: expected one in "
                        + ", ".join(INPUT_FOLDERS)
                    )
                write_atomically(directory.inside(name), data)
    except BaseException:
        journal.close()
        raise


def replay_note(past: PastRun, baseline: PastRun | None) -> dict[str, Any]:
    """Return what the journal of a replay is told of the run, and of the baseline.

    Raises:
        UserError: a stored image is gone or damaged, or the baseline is of something else.

    """
    suite = past.suite
    return {
        "seeds": len(suite),
        "replay": {
            "run": {
                "run": past.lies_at,
                "devices": [device.name for device in past.document.devices],
                "compressed": past.document.pair.compressed,
            },
            "baseline": None if baseline is None else _known(past, baseline),
            "sha256": {str(entry.seed_id): entry.sha256 for entry in suite},
            "seed_sha256": {str(entry.seed_id): _seed_sha256(past, entry) for entry in suite},
            **({"deviated": sorted(past.deviated)} if past.deviated else {}),
        },
    }


def _require_same_replay(path: Path, past: PastRun, baseline: PastRun | None) -> None:
    """Refuse to go on with a replay of another run, or against another baseline."""
    journal = RunJournal.open(RunDirectory(path).journal)
    try:
        begun, inputs = journal.about(), len(journal.triggers())
    finally:
        journal.close()
    if "replay" not in begun:
        command = made_by(RunHeader.from_json(begun).plan.strategy)
        raise UserError(f"{path} is no replay, but a {command}: name another folder with --out")
    if inputs != (wanted := begun.get("seeds")):
        raise UserError(f"{path} has {inputs} of its {wanted} inputs: start anew with --overwrite")
    was, now = begun["replay"], replay_note(past, baseline)["replay"]
    for key, option in (("run", "RUN"), ("baseline", "--baseline")):
        before, after = (document[key] and document[key]["run"] for document in (was, now))
        if before != after:
            raise UserError(
                f"{path} was begun with {option} {before or 'not given'}, not {after or 'without'}:"
                " repeat the command that began it, with --resume"
            )
    if was != now:
        raise UserError(
            f"what {path} replays, or its baseline, has changed since: start anew with --overwrite"
        )


def _known(past: PastRun, baseline: PastRun) -> dict[str, Any]:
    """Return which images deviated in the baseline: stored inputs and seeds alike."""
    where, document = baseline.directory.path, baseline.document
    find = past.document.find
    if document.find != find:
        raise UserError(
            f"{where} cannot be the baseline: it looked for {document.find}, and"
            f" {past.directory.path} for {find}"
        )
    theirs, ours = (past_run.header.pair.sha256.original for past_run in (baseline, past))
    if find != Find.KERNEL.value and theirs != ours:
        raise UserError(
            f"{where} cannot be the baseline: its original model is not that of"
            f" {past.directory.path}"
        )
    inputs = (*document.deviations, *document.flaky)
    deviating = {entry.sha256 for entry in inputs} | {
        _seed_sha256(baseline, entry)
        for entry in baseline.suite
        if entry.seed_id in baseline.deviating
    }
    return {"run": baseline.lies_at, "sha256": sorted(deviating)}


def _seed_sha256(past: PastRun, entry: Finding) -> str:
    return hashlib.sha256(past.files(entry)[entry.seed_file]).hexdigest()
