"""What a replay adds to the document of its run: what is mended, and what is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from edgeflare.run.nearness import counts as near_and_strong
from edgeflare.run.run_document import (
    ChangedKind,
    Finding,
    ReplayedRun,
    ReplayOutcome,
    RunDocument,
)


def replay_outcome(
    noted: Mapping[str, Any],
    kinds: Mapping[int, str],
    deviating: Sequence[Finding],
    mended: Sequence[Finding],
    seeds: Sequence[int],
) -> ReplayOutcome:
    """Return the part of the document that only a replay has.

    New is what deviates now and did not in the baseline; without a baseline, all seeds of findings
    that deviate now. A survey stores one finding of an input, whose seed may have deviated then,
    too: such seeds are not among those that deviate only now.

    Args:
        noted: what the replay was told of the run that it replays, and of its baseline.
        kinds: the kind that each stored input was of when the run was made, by seed id.
        deviating: entries whose stored input deviates now, in one repetition at least.
        mended: entries whose stored input does not.
        seeds: ids of the seeds that deviate now.

    """
    themselves = {entry.seed_id for entry in deviating if not entry.distortion.linf}
    others = [seed_id for seed_id in seeds if seed_id not in themselves]
    baseline = noted["baseline"]
    if baseline is None:
        new = set(others)
    else:
        new = {entry.seed_id for entry in deviating if entry.sha256 not in baseline["sha256"]} | {
            seed_id
            for seed_id in others
            if noted["seed_sha256"].get(str(seed_id)) not in baseline["sha256"]
        }
    return ReplayOutcome(
        run=msgspec.convert(noted["run"], ReplayedRun),
        baseline=None if baseline is None else baseline["run"],
        mended=tuple(mended),
        deviating_seeds=tuple(
            seed_id for seed_id in others if seed_id not in noted.get("deviated", ())
        ),
        new=tuple(sorted(new)),
        changed_kind=tuple(
            ChangedKind(seed_id=entry.seed_id, before=kinds[entry.seed_id], now=entry.kind)
            for entry in deviating
            if entry.kind != kinds[entry.seed_id]
        ),
    )


def deviating_now(document: RunDocument) -> int:
    """Return how many stored inputs deviate each time, those that are seeds included.

    Whether they did in the run that is replayed is another matter: of a replay everything is tried
    again, what was mended there too.
    """
    return len(document.deviations)


def tried(document: RunDocument) -> int:
    """Return how many stored inputs were tried again; fewer than there are if it was stopped."""
    return document.totals.seeds - len(document.unverified)


def regressed(
    document: RunDocument, counts: Callable[[Finding], bool] = lambda _entry: True
) -> bool:
    """Whether a replay shows what it should not: anything new, or, with no baseline, anything.

    Args:
        document: document of the replay.
        counts: whether an entry that deviates counts, if it is near and strong enough for the run's
            `--within` and `--min-strength`; a seed that deviates itself does always.

    """
    replay = document.replay
    if replay is None:
        return False
    deviating = (*document.deviations, *document.flaky)
    passed = {
        entry.seed_id for entry in deviating if not (near_and_strong(entry) and counts(entry))
    } - set(replay.deviating_seeds)
    if replay.baseline is not None:
        return bool(set(replay.new) - passed)
    return bool({*replay.new, *(entry.seed_id for entry in deviating)} - passed)
