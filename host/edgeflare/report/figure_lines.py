"""The figures of a run in words: a name and a line for each, the same in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from edgeflare.report.entry_names import named_kind, with_article
from edgeflare.report.input_words import input_words
from edgeflare.run.exact_interval import exact_interval
from edgeflare.run.harm import UNLABELLED
from edgeflare.run.nearness import counts, measure_name
from edgeflare.run.run_document import DeviationRate, Finding, RunDocument, Totals

Lines = list[tuple[str, str]]
"""What a figure is called, and what it is."""


def unmutated_lines(document: RunDocument) -> Lines:
    """Return how often inputs deviate as they are; nothing of older runs and replays."""
    rates = document.unmutated
    if rates is None:
        return []
    figures = (
        ("unmutated seeds", rates.seeds),
        (f"unmutated test {input_words(document.pair).many}", rates.test),
    )
    return [(name, _rate(one)) for name, one in figures if one is not None and one.images]


def nearness_lines(document: RunDocument) -> Lines:
    """Return what counts, and the share of seeds within distances; nothing of older runs."""
    if document.nearness is None:
        return []
    seeds = max(1, document.totals.seeds)
    counted = sum(map(counts, document.deviations))
    low, high = exact_interval(counted, seeds)
    shares = ", ".join(f"{one.at_least:g} dB {one.share:.0%}" for one in document.nearness.shares)
    return [
        (
            _what_counts(document.plan),
            f"{counted:,} of {seeds:,} seeds ({counted / seeds:.1%}, 95 % interval {low:.1%} to "
            f"{high:.1%})",
        ),
        (
            f"seeds within {with_article(measure_name(document))} of",
            f"{shares}; area {document.nearness.area:.3f}",
        ),
    ]


def harm_lines(document: RunDocument) -> Lines:
    """Return who was right on the findings; nothing where no seed has a label that says it."""
    harm = document.totals.harm
    known = harm and harm.findings
    return [("by their labels", harms_in_words(known))] if known and _labelled(known) else []


def count_kinds(entries: Iterable[Finding]) -> dict[str, int]:
    """Return how many deviations there are of each kind that the task tells apart, most first."""
    return dict(Counter(kind for kind in map(named_kind, entries) if kind).most_common())


def kind_lines(document: RunDocument) -> Lines:
    """Return how many findings there are of each kind; nothing where the task tells none apart."""
    kinds = count_kinds(document.findings)
    line = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return [("kinds", line)] if kinds else []


def duplicate_lines(totals: Totals) -> Lines:
    """Return how many findings are the same input; nothing of older runs, and where none is."""
    same = totals.duplicates
    if same is None or not same.triggers:
        return []
    line = (
        f"{same.exact:,} exact, {same.near:,} with near ones; "
        f"{same.distinct:,} distinct, of {same.distinct_seeds:,} seeds"
    )
    return [("duplicates", line)]


def white_box_lines(totals: Totals) -> Lines:
    """Return how much was asked about the inside of the models; nothing where nothing was."""
    if totals.host_gradients is None or totals.translated_evaluations is None:
        return []
    line = (
        f"{totals.host_gradients:,} host gradients, "
        f"{totals.translated_evaluations:,} translated evaluations"
    )
    return [("white box", line)]


def harms_in_words(harms: Mapping[str, int]) -> str:
    """Return counts by harm as a line: "2 original right, 1 both wrong"."""
    return ", ".join(f"{count:,} {name.replace('-', ' ')}" for name, count in harms.items())


def who_was_right(entry: Finding) -> str | None:
    """Return who was right in a word for a table: "original", "device", "neither"; or None."""
    if not entry.harm:
        return None
    return {"both-wrong": "neither"}.get(entry.harm, entry.harm.partition("-")[0])


def _rate(figures: DeviationRate) -> str:
    line = (
        f"{figures.deviating:,} of {figures.images:,} deviate ({figures.rate:.2%}, "
        f"95 % interval {figures.low:.2%} to {figures.high:.2%})"
    )
    known = figures.harm
    return f"{line}: {harms_in_words(known)}" if known and _labelled(known) else line


def _labelled(harms: Mapping[str, int]) -> bool:
    return not harms.keys() <= {UNLABELLED}


def _what_counts(plan: Mapping[str, Any]) -> str:
    asked = []
    if plan.get("within") is not None:
        asked.append(f"within {plan['within']:g} dB")
    if plan.get("min_strength"):
        asked.append(f"strength from {plan['min_strength']:g}")
    return f"deviate {' and '.join(asked)}" if asked else "deviate at any distance"
