"""A run as Markdown for the summary of a CI job: GitHub shows it on the page of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from edgeflare.pages.answers.answer_form import shortened
from edgeflare.pages.facts import number
from edgeflare.pages.markdown import markdown_table
from edgeflare.report.answer_words import answer_words, table_title
from edgeflare.report.arm_lines import arm_lines
from edgeflare.report.coverage_table import coverage_table
from edgeflare.report.entry_columns import entry_columns
from edgeflare.report.entry_names import SORTS, sort, worst_first
from edgeflare.report.figure_lines import (
    duplicate_lines,
    harm_lines,
    kind_lines,
    nearness_lines,
    spent_lines,
    unmutated_lines,
    white_box_lines,
)
from edgeflare.run.gate import counted
from edgeflare.run.replay_outcome import deviating_now, regressed, tried
from edgeflare.run.run_document import Finding, ReplayOutcome, RunDocument
from edgeflare.untrusted_text import for_markdown

ROWS = 10
"""Entries that a table lists; GitHub cuts off a summary of more than 1 MiB."""

CELL = 400
"""Characters of an answer that a table shows; a text may have thousands."""

STOPPED = "This is not the whole run: it was stopped before its end ({})."


def summary(document: RunDocument) -> str:
    """Return a run as Markdown (GitHub's flavour)."""
    replay = document.replay
    verdict = _replay_verdict(document, replay) if replay else _verdict(document)
    parts = [f"## EdgeFlare: {for_markdown(document.pair.name)}", verdict]
    if document.stopped_by:
        parts.append("> [!WARNING]\n> " + STOPPED.format(for_markdown(document.stopped_by)))
    parts += [f"> [!WARNING]\n> {for_markdown(warning)}" for warning in document.warnings]
    parts.append(
        markdown_table(("", ""), _replay_facts(document, replay) if replay else _facts(document))
    )
    if covered := coverage_table(document):
        parts.append("### Neuron coverage")
        if covered.rows:
            parts.append(markdown_table(covered.header, covered.rows))
        parts += map(for_markdown, covered.lines)
    for key, title in (_REPLAY_TITLES if replay else _TITLES).items():
        if entries := document.lists[key]:
            named = for_markdown(table_title(document, key, title))
            parts += [f"### {named}", _entries(document, entries)]
    ran = [
        (one.arm, *(part or "–" for part in (one.what, one.where, one.how)))
        for one in arm_lines(document)
    ]
    parts += ["### What ran where", markdown_table(("arm", "model", "where", "how"), ran)]
    return "\n\n".join(parts) + "\n"


_TITLES = {
    "deviating_seeds": "Seeds that already deviate",
    "findings": "Findings",
    "unverified": "Not verified yet",
}

_REPLAY_TITLES = {
    "deviating_seeds": "Seeds that deviate now",
    "findings": "Findings that deviate now",
    "flaky": "Unstable",
    "unverified": "Not tried yet",
}


def _facts(document: RunDocument) -> list[tuple[str, str]]:
    totals = document.totals
    searched = totals.seeds - totals.deviating_seeds
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
        *white_box_lines(totals),
        *duplicate_lines(totals),
        *spent_lines(totals),
        ("flaky", f"{totals.flaky:,}"),
    ]


def _replay_facts(document: RunDocument, replay: ReplayOutcome) -> list[tuple[str, str]]:
    facts = [
        ("unstable", f"{len(document.flaky):,}"),
        ("mended", f"{len(replay.mended):,}"),
        ("seeds that deviate only now", f"{len(replay.deviating_seeds):,}"),
        ("causes", _causes(document)),
        *kind_lines(document),
        *harm_lines(document),
        *duplicate_lines(document.totals),
    ]
    if replay.baseline is not None:
        facts.append(("new since the baseline", f"{len(replay.new):,}"))
    return facts


def _causes(document: RunDocument) -> str:
    counts = Counter(map(sort, document.findings))
    return ", ".join(f"{counts[name]:,} {name}" for name in SORTS if counts[name]) or "–"


def _replay_verdict(document: RunDocument, replay: ReplayOutcome) -> str:
    """Say in a sentence what became of the inputs that were tried again."""
    now = deviating_now(document)
    of = f"of {tried(document):,} inputs that were tried again deviate"
    mark = _mark(document, bad=regressed(document))
    if replay.baseline is None:
        return f"{mark} **{now:,}** {of}."
    return f"{mark} **{now:,}** {of}; **{len(replay.new):,}** are new."


def _verdict(document: RunDocument) -> str:
    """Say the result in a sentence."""
    totals = document.totals
    arms = "twin and device" if document.find == "kernel" else "original and device"
    differ = answer_words(document.pair).differ
    if not totals.findings and not totals.deviating_seeds:
        mark = _mark(document, bad=False)
        return f"{mark} No input was found on which {arms} {differ}."
    searched = totals.seeds - totals.deviating_seeds
    counting = bool(counted(document))
    otherwise = "" if counting else " None of it counts."
    mark = _mark(document, bad=counting)
    return (
        f"{mark} **{totals.findings:,} of {searched:,} seeds** led to an input on which {arms} "
        f"{differ}; {totals.deviating_seeds:,} deviate as they are.{otherwise}"
    )


def _mark(document: RunDocument, *, bad: bool) -> str:
    """Return the mark before a result: a run that was stopped may have more to find."""
    return "❌" if bad else "⚠️" if document.stopped_by else "✅"


def _entries(document: RunDocument, entries: Sequence[Finding]) -> str:
    """Return a table of the entries that matter most."""
    columns = tuple(entry_columns(document, entries))
    rows = [
        [shortened(column.cell(entry), CELL) for column in columns]
        for entry in worst_first(entries)[:ROWS]
    ]
    table = markdown_table([column.name for column in columns], rows)
    rest = len(entries) - len(rows)
    return f"{table}\n\nand {rest:,} more" if rest else table
