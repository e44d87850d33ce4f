"""What the journal of a merged run says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, Final

import numpy as np

from edgeflare.core.answer import FAILURES
from edgeflare.core.task import Task
from edgeflare.models.run_pair import RunPair
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.begin_or_resume import OTHER_HOSTS_KEY, SEVERAL_DEVICES, other_host_lines
from edgeflare.run.journal_notes import COVERAGE_KEY, WITHOUT_RESET_KEY
from edgeflare.run.journal_rows import REPETITIONS, SCREENING_KEY
from edgeflare.run.merge.run_part import UNSEEN, RunPart, merged_health
from edgeflare.run.run_document import to_json
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import HEALTH_KEY, HELD_OUT_KEY, RunJournal
from edgeflare.run.run_warnings import WARNINGS_KEY, seed_warnings
from edgeflare.run.seed_ids import SeedIds
from edgeflare.tasks.task_registry import find_task

_SEEDS: Final = " seeds)"
"""Ends the line that says which devices answered."""

PARTS_KEY = "parts"
"""The key of `about` under which the journal of a merged run says what it was merged from."""


def describe_merged(parts: Sequence[RunPart], journal: RunJournal) -> dict[str, Any]:
    """Return what the journal of a merged run is told of it, as plain JSON values by their keys.

    Args:
        parts: the runs, in the order of their seeds.
        journal: journal of the merged run, with their rows.

    """
    first = parts[0]
    ids: SeedIds = reduce(or_, (part.seed_ids for part in parts))
    every = first.header.all_seeds
    whole = every is None or len(ids) == len(every)
    header = replace(first.header, plan=replace(first.header.plan, seed_ids=None if whole else ids))
    about = {**first.about, **header.to_json(), "seeds": len(ids)}
    screenings = [part.about.get(SCREENING_KEY) for part in parts]
    about |= {
        SCREENING_KEY: None if whole else next(filter(None, screenings), None),
        "notes": _each_line_once(parts, "notes"),
        WARNINGS_KEY: _warnings(parts, header, journal),
        HEALTH_KEY: merged_health([part.about.get(HEALTH_KEY) or UNSEEN for part in parts]),
        OTHER_HOSTS_KEY: [*_other_hosts(parts), *_other_devices(parts)],
        COVERAGE_KEY: None,
        WITHOUT_RESET_KEY: next(
            filter(None, (part.about.get(WITHOUT_RESET_KEY) for part in parts)), None
        ),
        PARTS_KEY: [_part(part) for part in parts],
        "stopped_by": _stopped_by(parts, ids, header, journal),
    }
    return about


def _stopped_by(
    parts: Sequence[RunPart], ids: SeedIds, header: RunHeader, journal: RunJournal
) -> str | None:
    """Return what stopped the merged run before its end.

    Where a part was stopped that another one searched again to its end, that is nothing, also
    where the two come from an earlier merge.
    """
    finished = reduce(or_, (part.seed_ids for part in parts if part.is_finished), SeedIds(()))
    refines = header.plan.strengthen or header.plan.shrink
    done = journal.seed_rows.done(REPETITIONS, FAILURES if refines else None)
    if max(len(finished), done) < len(ids):
        stopped = [part.about.get("stopped_by", "killed") for part in parts]
        why = [str(reason) for reason in stopped if reason not in (None, "merge")]
        if others := [reason for reason in why if reason != "screening"]:
            return others[0]
        # A part that only evaluated its seeds stands for what others were to search from.
        return "merge" if len(why) < len(parts) else "screening"
    if header.plan.seed_ids is not None:
        return None
    held_out = parts[0].about.get(HELD_OUT_KEY)
    tested = held_out is None or len(journal.answers("test")) == held_out["inputs"]
    return None if tested and not header.plan.coverage else "merge"


def _warnings(parts: Sequence[RunPart], header: RunHeader, journal: RunJournal) -> list[str]:
    """Return what looks wrong in the answers to all seeds of the merged run.

    A part that was given a screening says what that showed, which is of all seeds.
    """
    for part in parts:
        if part.about.get(SCREENING_KEY) is not None and WARNINGS_KEY in part.about:
            return list(part.about[WARNINGS_KEY])
    rows = {seed_id: found[0] for seed_id, found in journal.answers("seed").items()}
    if not any(WARNINGS_KEY in part.about for part in parts) or not rows:
        return []
    read = from_rows(header.reading, list(rows.values()))
    outcomes = [query.outcome for query in read]
    labels = None if header.labels is None else [header.seed_label(row) for row in rows]
    return seed_warnings(
        _run_task(header.pair), outcomes, None if labels is None else np.array(labels, np.int64)
    )


def _other_hosts(parts: Sequence[RunPart]) -> list[str]:
    said = _each_line_once(parts, OTHER_HOSTS_KEY)
    # What an earlier merge says of its parts is said of all parts, by `_other_devices`. The line
    # of a resumed run is another one: it names no seeds.
    lines = [
        line for line in said if not (line.startswith(SEVERAL_DEVICES) and line.endswith(_SEEDS))
    ]
    for part in parts[1:]:
        lines += other_host_lines(parts[0].header, part.header)
    return list(dict.fromkeys(lines))


def _other_devices(parts: Sequence[RunPart]) -> list[str]:
    """Return a line where devices of several names answered, which are alike in all that counts."""
    seeds: dict[str, SeedIds] = {}
    for part in _searched_parts(map(_part, parts)):
        name = ", ".join(str(device["name"]) for device in part["devices"])
        seeds[name] = seeds.get(name, SeedIds(())) | SeedIds.read(part["seed_ids"])
    if len(seeds) == 1:
        return []
    each = "; ".join(f"{name} ({len(ids)}{_SEEDS}" for name, ids in seeds.items())
    return [f"{SEVERAL_DEVICES}: {each}"]


def _searched_parts(parts: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts that no merge has made; those of an earlier merge are within what it made."""
    for part in parts:
        if part["parts"]:
            yield from _searched_parts(part["parts"])
        else:
            yield part


def _each_line_once(parts: Sequence[RunPart], key: str) -> list[str]:
    return list(dict.fromkeys(line for part in parts for line in part.about.get(key) or ()))


def _part(part: RunPart) -> dict[str, Any]:
    """Return where the seeds of a part were searched, also if it was merged itself."""
    return {
        "run": part.name,
        "seed_ids": str(part.seed_ids),
        "stopped_by": part.about.get("stopped_by", "killed"),
        "devices": [to_json(device) for device in part.header.devices],
        "host": to_json(part.header.host),
        "parts": part.about.get(PARTS_KEY, []),
    }


def _run_task(pair: RunPair) -> Task:
    """Return the task of a run's outputs.

    Args:
        pair: pair in the run's header.

    Raises:
        UserError: there is no such task, or it does not take the settings that the run has.

    """
    settings = pair.task_settings
    if settings is None:
        settings = {} if pair.outputs is None else {"outputs": pair.outputs}
    return find_task(pair.task_name, settings, "the run's task")
