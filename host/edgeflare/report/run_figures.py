"""The figures of a run, a name and a line for each, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final

from edgeflare.pages.facts import number
from edgeflare.report.entry_names import SORTS, last_parts, sort
from edgeflare.report.figure_lines import (
    Lines,
    duplicate_lines,
    harm_lines,
    kind_lines,
    nearness_lines,
    spent_lines,
    unmutated_lines,
    white_box_lines,
)
from edgeflare.run.replay_outcome import deviating_now, tried
from edgeflare.run.run_document import Finding, ReplayOutcome, RunDocument

_MOST_IDS: Final = 16


def run_figures(document: RunDocument) -> Lines:
    """Return the figures of a search or a replay."""
    replay = document.replay
    return _search_figures(document) if replay is None else _replay_figures(document, replay)


def _search_figures(document: RunDocument) -> Lines:
    totals = document.totals
    searched = totals.seeds - totals.deviating_seeds
    # With `--ties include` they count, so nothing of them was set aside.
    ties = "" if document.plan.goal.ties else f"{totals.ties:,} mutants by a tie, "
    return [
        *unmutated_lines(document),
        *nearness_lines(document),
        ("seeds", f"{totals.seeds:,}, of which {totals.deviating_seeds:,} already deviate"),
        ("findings", f"{totals.findings:,} of {searched:,} ({totals.success_rate:.1%})"),
        ("causes", _causes(document)),
        *kind_lines(document),
        *harm_lines(document),
        (
            "queries for a finding",
            f"{number(totals.mean_queries)} mean, {number(totals.median_queries)} median; "
            f"{number(totals.mean_device_queries)} on the device",
        ),
        *spent_lines(totals),
        (
            "of the search",
            f"{totals.queries / max(totals.wall_seconds, 1e-9):,.0f} queries per second,"
            f" device busy {totals.device_busy_seconds:.1f} s",
        ),
        *white_box_lines(totals),
        *duplicate_lines(totals),
        *_refined(document.findings),
        ("set aside", f"{ties}{totals.flaky:,} flaky"),
    ]


def _causes(document: RunDocument) -> str:
    counts = Counter(map(sort, document.findings))
    return ", ".join(f"{counts[name]:,} {name}" for name in SORTS if counts[name]) or "–"


def _refined(findings: Sequence[Finding]) -> Lines:
    """Return what refining did to the findings; nothing where none was refined."""
    refined = [(entry, entry.refined) for entry in findings if entry.refined is not None]
    if not refined:
        return []
    line = (
        f"strength {median(before.strength_before or 0.0 for _, before in refined):.3f} → "
        f"{median(entry.strength or 0.0 for entry, _ in refined):.3f}, "
        f"L2 {median(before.distortion_before.l2 for _, before in refined):,.0f} → "
        f"{median(entry.distortion.l2 for entry, _ in refined):,.0f}"
    )
    return [("refined, medians", line)]


def _replay_figures(document: RunDocument, replay: ReplayOutcome) -> Lines:
    """Return what became of the inputs that were tried again."""
    worse = replay.deviating_seeds
    mended = [entry.seed_id for entry in replay.mended]
    but = [seed_id for seed_id in mended if seed_id in worse]
    changes = [
        f"seed {one.seed_id}: {one.before} → {one.now}" for one in replay.changed_kind[:_MOST_IDS]
    ]
    new = []
    if replay.baseline is not None:
        new = [(f"new since {replayed_run(replay.baseline)}", _ids(replay.new))]
    return [
        ("deviating now", f"{deviating_now(document):,} of {tried(document):,} tried again"),
        *new,
        ("unstable", f"{len(document.flaky):,}"),
        ("mended", _ids([seed_id for seed_id in mended if seed_id not in worse])),
        *([("mended, but its seed deviates", _ids(but))] if but else []),
        ("seeds that deviate only now", _ids(worse)),
        ("causes", _causes(document)),
        *kind_lines(document),
        *harm_lines(document),
        *duplicate_lines(document.totals),
        *([("of another kind now", "; ".join(changes))] if changes else []),
    ]


def replayed_run(path: str) -> str:
    """Return the name of a run that was replayed: a report is passed on, without its folders."""
    return last_parts(path).rpartition("/")[2]


def replayed_model(document: RunDocument) -> str:
    """Return the name of the compressed model of a replay, and what it was where it is another."""
    now = then = document.pair.compressed
    if document.replay is not None:
        then = document.replay.of.compressed
    if now == then:
        return replayed_run(now)
    shown = last_parts if replayed_run(now) == replayed_run(then) else replayed_run
    return f"{shown(now)} (then {shown(then)})"


def _ids(seed_ids: Sequence[int]) -> str:
    """Return how many, and which seeds they are of."""
    if not seed_ids:
        return "0"
    shown = ", ".join(map(str, seed_ids[:_MOST_IDS]))
    return f"{len(seed_ids)} (seed {shown}{', …' if len(seed_ids) > _MOST_IDS else ''})"
