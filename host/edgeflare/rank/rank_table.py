"""The table of a ranking, a row for each model: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from edgeflare.bench.bench_statistics import Estimate
from edgeflare.bench.bench_table import show_estimate, show_number
from edgeflare.core.nearness_measure import PSNR
from edgeflare.pages.markdown import markdown_table
from edgeflare.rank.ranking import Ranked, Ranking
from edgeflare.untrusted_text import for_markdown, printable

LEGEND = (
    "Mean queries: what a search made until it found something or its budget was spent; in "
    "brackets the 95 % interval of a bootstrap over the seeds. Found: searches that did. Area: "
    "under the curve of the share of all seeds that have a deviating input within a nearness in "
    f"dB, of images a PSNR from {PSNR.curve[0]:g} to {PSNR.curve[1]:g} dB; 0 to 1, less is better. "
    "Dev.: other decisions than the original's, unmutated. Right: accuracy. Set: the labelled "
    "one. KB: the file. ms: median of single inputs on the device, without the link."
)

_Tell = Callable[[Ranked], str]


def _rate(of: Callable[[Ranked], Estimate | None]) -> tuple[_Tell, _Tell]:
    """Return how a rate is told in percent: in short, and with its interval."""

    def short(one: Ranked) -> str:
        rate = of(one)
        return show_number(None if rate is None else rate.value * 100.0)

    return short, lambda one: show_estimate(of(one), 100.0)


def _value(estimate: Estimate | None) -> str:
    return show_number(None if estimate is None else estimate.value)


def _both(tell: _Tell) -> tuple[_Tell, _Tell]:
    return tell, tell


_COLUMNS: tuple[tuple[str, tuple[_Tell, _Tell]], ...] = (
    ("#", _both(lambda one: str(one.place))),
    ("model", _both(lambda one: one.name)),
    ("mean queries", _both(lambda one: show_estimate(one.mean_queries))),
    ("area", (lambda one: _value(one.area), lambda one: show_estimate(one.area))),
    ("found %", _rate(lambda one: one.success)),
    ("seeds dev. %", _rate(lambda one: one.deviation_rate)),
    ("seeds right %", _rate(lambda one: one.seed_accuracy)),
    ("set dev. %", _rate(lambda one: one.labelled_deviation_rate)),
    ("set right %", _rate(lambda one: one.labelled_accuracy)),
    ("strength", _both(lambda one: show_number(one.median_strength))),
    ("KB", _both(lambda one: show_number(one.size_bytes / 1000))),
    ("ms", _both(lambda one: show_number(one.latency_ms))),
)
_WIDE = ("model", "mean queries")
"""Columns that are broken where a terminal is narrow."""


def print_ranking(
    console: Console, ranking: Ranking, heading: str, sentences: Sequence[str]
) -> None:
    """Print what was asked, the table with the interval of the queries alone, and the sentences."""
    console.print(heading, highlight=False, markup=False)
    label, *rows = _rows(ranking, 0)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=0)
    for name in label:
        justify: JustifyMethod = "left" if name == "model" else "right"
        head = name if name in _WIDE else name.replace(" ", "\n")
        table.add_column(head, justify=justify, overflow="fold", no_wrap=name not in _WIDE)
    for row in rows:
        table.add_row(*(escape(printable(value)) for value in row))
    console.print(table)
    for line in sentences:
        console.print(f"• {printable(line)}", markup=False, highlight=False)
    console.print(LEGEND, style="dim", highlight=False)


def to_markdown(ranking: Ranking, heading: str, sentences: Sequence[str]) -> str:
    """Return what was asked, the table with all intervals, the sentences, and a legend."""
    label, *rows = _rows(ranking, 1)
    said = "\n".join(f"- {for_markdown(line)}" for line in sentences)
    table = markdown_table(label, rows, numbers_from=2)
    return "\n\n".join([for_markdown(heading), table, said, for_markdown(LEGEND)]) + "\n"


def _rows(ranking: Ranking, how: int) -> list[tuple[str, ...]]:
    """Return the columns' names and a row for each model, without columns that say nothing."""
    columns = [(name, *map(tells[how], ranking.models)) for name, tells in _COLUMNS]
    return list(zip(*(one for one in columns if set(one[1:]) != {"–"}), strict=True))
