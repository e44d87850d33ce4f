"""What a replay is told at its beginning: which run it replays, and what is known to deviate."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from edgeflare.core.goal import Find
from edgeflare.errors import UserError
from edgeflare.replay.past_run import PastRun
from edgeflare.run.journal import Journal
from edgeflare.run.run_differences import made_by
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding


def replay_note(past: PastRun, baseline: PastRun | None) -> dict[str, Any]:
    """Return what the journal of a replay is told of the run, and of the baseline.

    Raises:
        UserError: a stored image is gone or damaged, or the baseline is of something else.

    """
    suite = past.suite
    return {
        "seeds": len(suite),
        "replay": {
            "of": {
                "run": past.lies_at,
                "devices": [device.name for device in past.document.devices],
                "compressed": past.document.pair["compressed"],
            },
            "baseline": None if baseline is None else _known(past, baseline),
            "sha256": {str(entry.seed_id): entry.sha256 for entry in suite},
            "seed_sha256": {str(entry.seed_id): _seed_sha256(past, entry) for entry in suite},
            **({"deviated": sorted(past.deviated)} if past.deviated else {}),
        },
    }


def require_same_replay(path: Path, past: PastRun, baseline: PastRun | None) -> None:
    """Refuse to go on with a replay of another run, or against another baseline.

    Raises:
        UserError: it is one; names the difference.

    """
    journal = Journal.open(RunDirectory(path).journal)
    try:
        begun, inputs = journal.about(), len(journal.triggers())
    finally:
        journal.close()
    if "replay" not in begun:
        command = made_by(begun["plan"]["strategy"])
        raise UserError(f"{path} is no replay, but a {command}: name another folder with --out")
    if inputs != begun["seeds"]:
        raise UserError(
            f"{path} has {inputs} of its {begun['seeds']} inputs: start anew with --overwrite"
        )
    was, now = begun["replay"], replay_note(past, baseline)["replay"]
    for key, option in (("of", "RUN"), ("baseline", "--baseline")):
        before, after = (one[key] and one[key]["run"] for one in (was, now))
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
    theirs, ours = (one.header.pair["sha256"]["original"] for one in (baseline, past))
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
    return hashlib.sha256(past.files(entry)[entry.seed_image]).hexdigest()
