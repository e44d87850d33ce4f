"""A run as cases: one for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, islice
from math import isfinite
from pathlib import PurePath

from edgeflare.pages.facts import in_words, number
from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite
from edgeflare.report.entry_words import decisions, named_kind, sort
from edgeflare.report.run_figures import unmutated_lines
from edgeflare.run.gate import counted, may_count_yet
from edgeflare.run.harm import rank
from edgeflare.run.nearness import counts, measure_name, nearness_db
from edgeflare.run.run_document import Finding, ReplayOutcome, RunDocument


def run_suite(document: RunDocument) -> Suite:
    """Return a run as cases.

    A seed fails if it deviates itself or led to a finding that is as near and as strong as
    `--within` and `--min-strength` ask, by a tie only where ties count; that is what was found,
    whatever `--fail-on` and `--allow` allowed. It is skipped if the run was stopped
    before it was done with.
    The cases of a replay are the inputs that it tried; an unstable one fails, a mended one passes.
    Against a baseline only what is new fails, as for the replay's exit code.
    """
    replay, totals = document.replay, document.totals
    seed_ids, failed, undecided = (
        _searched(document) if replay is None else _replayed(document, replay)
    )
    skipped = "the run was stopped before this seed was decided"
    return Suite(
        name=document.pair.name,
        known={
            "edgeflare": document.edgeflare,
            "pair": document.pair,
            "plan": document.plan,
            **dict(unmutated_lines(document)),
            **{f"device {device.name}": device.provenance for device in document.devices},
            **_held_against(document),
        },
        cases=[
            JUnitCase(
                name=f"seed {seed_id}",
                failure=_failure(document, *failed[seed_id]) if seed_id in failed else None,
                skipped=skipped if seed_id in undecided else "",
                seconds=failed[seed_id][1].seconds if seed_id in failed else 0.0,
            )
            for seed_id in _most_harmful_first(seed_ids, failed)
        ],
        seconds=totals.setup_seconds
        + totals.wall_seconds
        + totals.refine_seconds
        + totals.verify_seconds,
    )


_Cases = tuple[Sequence[int], dict[int, tuple[str, Finding]], set[int]]
"""Seeds, those that failed with a title and the entry, and those that were not decided."""


def _most_harmful_first(
    seed_ids: Sequence[int], failed: Mapping[int, tuple[str, Finding]]
) -> list[int]:
    """Return seeds in the order of their cases: by harm, or as they are where it is not known."""
    if not any(entry.harm for _, entry in failed.values()):
        return list(seed_ids)
    return sorted(seed_ids, key=lambda seed: rank(failed[seed][1]) if seed in failed else PASSED)


PASSED = 5
"""The place of a case that did not fail, behind all of `rank`."""

_ITSELF = "the seed itself deviates, "


def _searched(document: RunDocument) -> _Cases:
    totals = document.totals
    failed = {
        entry.seed_id: (title, entry)
        for key, title in (("findings", ""), ("deviating_seeds", _ITSELF))
        for entry in document.lists[key]
    }
    decided = set(failed)
    counting = {entry.seed_id for entry in counted(document)}
    failed = {seed_id: outcome for seed_id, outcome in failed.items() if seed_id in counting}
    # The seeds that are known by an entry, and as many others.
    entries = {entry.seed_id for some in document.lists.values() for entry in some}
    others = (free for free in count() if free not in entries)
    seed_ids = sorted([*entries, *islice(others, max(0, document.totals.seeds - len(entries)))])
    undecided: set[int] = set()
    if totals.searched + totals.deviating_seeds < totals.seeds:
        again = {entry.seed_id for entry in document.flaky}
        again -= {entry.seed_id for entry in document.unverified}
        undecided = set(seed_ids) - decided - again
    if document.stopped_by:
        undecided |= {entry.seed_id for entry in document.unverified}
        undecided |= {entry.seed_id for entry in may_count_yet(document)}
        undecided -= set(failed)
    return seed_ids, failed, undecided


def _replayed(document: RunDocument, replay: ReplayOutcome) -> _Cases:
    failed = {
        entry.seed_id: (title, entry)
        for key, title in (("findings", ""), ("deviating_seeds", _ITSELF), ("flaky", "unstable, "))
        for entry in document.lists[key]
    }
    others = {entry.seed_id: entry for entry in (*replay.mended, *document.unverified)}
    others |= {seed_id: entry for seed_id, (_, entry) in failed.items()}
    failed = {seed_id: outcome for seed_id, outcome in failed.items() if counts(outcome[1])}
    worse = set(replay.deviating_seeds) - set(failed)
    failed |= {
        seed_id: ("only the seed itself deviates now; its stored input: ", others[seed_id])
        for seed_id in worse
    }
    seed_ids = sorted(others)
    if replay.baseline is not None:
        failed = {seed_id: failed[seed_id] for seed_id in replay.new if seed_id in failed}
    undecided = {entry.seed_id for entry in document.unverified} - set(failed)
    return seed_ids, failed, undecided


def _held_against(document: RunDocument) -> dict[str, object]:
    """Name the baseline of a replay, and what deviates as it did there."""
    replay = document.replay
    if replay is None or replay.baseline is None:
        return {}
    deviating = (*document.deviations, *document.flaky)
    ids = {entry.seed_id for entry in deviating} | set(replay.deviating_seeds)
    known = [f"seed {seed_id}" for seed_id in sorted(ids - set(replay.new))]
    return {"baseline": {"run": PurePath(replay.baseline).name, "known deviations": known}}


def _failure(document: RunDocument, title: str, entry: Finding) -> JUnitFailure:
    """Return what deviates, in a line and in full."""
    said = decisions(document, entry)
    harm = f", {in_words(entry.harm)}" if entry.harm else ""
    harm = f", by a tie{harm}" if entry.by_tie else harm
    kind = f"{sort(entry)}, {named_kind(entry)}" if named_kind(entry) else sort(entry)
    message = f"{title}{kind}{harm}: {said} (strength {number(entry.strength, 4)})"
    distortion, nearness = entry.distortion, nearness_db(entry)
    known = nearness if nearness is not None and isfinite(nearness) else None
    lines = [
        message,
        f"input: {entry.file} (sha256 {entry.sha256})",
        f"seed: {entry.seed_file} ({entry.seed_name})",
        f"device: {entry.device}",
        f"queries: {entry.queries}, {entry.device_queries} of them on the device",
        f"distance to the seed: {measure_name(document)} {number(known)} dB, L2 "
        f"{number(distortion.l2)}, L∞ {number(distortion.linf, 0)}",
        f"operators: {', '.join(entry.operators) or 'none'}",
    ]
    return JUnitFailure(message, kind, "\n".join(lines))
