"""The table of a bench, strategies side by side: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import floor, log10

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.bench.bench_statistics import Estimate
from edgeflare.bench.grid import Grid
from edgeflare.bench.strategy_figures import StrategyFigures
from edgeflare.pages.markdown import markdown_table
from edgeflare.untrusted_text import for_markdown, printable

COLUMNS = (
    "strategy",
    "success %",
    "mean queries",
    "median queries",
    "device queries",
    "× baseline",
    "s evaluation",
    "s wall",
    "ties",
    "L2",
    "strength",
)

WHITE_BOX_COLUMNS = ("host gradients", "translated evaluations")
"""Columns behind the others where a strategy asks about the inside of the models."""

LEGEND = (
    "In brackets: 95 % bootstrap intervals over the seeds. Queries, device queries, L2 (median, "
    "levels) and strength (median) are of findings. × baseline: mean queries over {baseline}'s"
    ", where both found. s evaluation: evaluation time of a finding's own search; s wall: wall time"
    " of the campaign over its findings. ties: deviations by a tie, in all searches."
)

WHITE_BOX_LEGEND = (
    " Host gradients and translated evaluations are of findings too. They are no queries, but their"
    " time is part of both kinds of seconds: compare {strategies} with others by seconds."
)


def print_table(console: Console, grid: Grid, rows: Sequence[StrategyFigures]) -> None:
    """Print what was asked, and a table for each pair, a column for each strategy."""
    console.print(heading(grid), highlight=False, markup=False)
    for pair, group in groupby(rows, key=lambda row: row.pair):
        title = escape(printable(pair))
        table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
        of_pair = list(group)
        cells = [shown(row, inside=_inside(of_pair)) for row in of_pair]
        for label, *values in zip(columns(of_pair), *cells, strict=True):
            if label == "strategy":
                for column in ("", *values):
                    table.add_column(column, justify="right" if column else "left")
            else:
                table.add_row(label, *values)
        console.print(table)
    console.print(legend(grid, rows), style="dim", highlight=False, markup=False)


def to_markdown(grid: Grid, rows: Sequence[StrategyFigures]) -> str:
    """Return what was asked, one table over all pairs, and what its columns mean."""
    table = markdown_table(
        ("pair", *columns(rows)),
        [(row.pair, *shown(row, inside=_inside(rows))) for row in rows],
        numbers_from=2,
    )
    said = for_markdown(heading(grid)), table, for_markdown(legend(grid, rows))
    return "\n\n".join(said) + "\n"


def columns(rows: Sequence[StrategyFigures]) -> tuple[str, ...]:
    """Return the names of the columns that a table of these rows has."""
    return (*COLUMNS, *WHITE_BOX_COLUMNS) if _inside(rows) else COLUMNS


def legend(grid: Grid, rows: Sequence[StrategyFigures]) -> str:
    """Return what the columns of these rows mean."""
    said = LEGEND.format(baseline=grid.baseline)
    if not _inside(rows):
        return said
    inside = dict.fromkeys(row.strategy for row in rows if _inside([row]))
    return said + WHITE_BOX_LEGEND.format(strategies=", ".join(inside))


def _inside(rows: Sequence[StrategyFigures]) -> bool:
    """Whether a strategy of these rows asks about the inside of the models."""
    return any(row.mean_host_gradients or row.mean_translated_evaluations for row in rows)


def heading(grid: Grid) -> str:
    """Return one line that says what was asked, but for the strategies."""
    plan = grid.plan
    seeds = "all seeds"
    if plan.first is not None:
        seeds = f"the first {plan.first} seed{'s' * (plan.first != 1)}"
    elif plan.limit is not None:
        seeds = f"{plan.limit} seed{'s' * (plan.limit != 1)}"
    rng_seeds = ", ".join(map(str, grid.rng_seeds))
    return " · ".join(
        (
            f"find {plan.goal.find} on {grid.device}",
            f"ties {'included' if plan.goal.ties else 'excluded'}",
            f"{seeds} of each pair",
            f"run seed{'s' if len(grid.rng_seeds) > 1 else ''} {rng_seeds}",
            f"at most {plan.max_queries:,} queries for each seed",
            f"bounds: L∞ {_bound(plan.max_linf)}, L2 {_bound(plan.max_l2)}",
        )
    )


def shown(row: StrategyFigures, *, inside: bool = False) -> tuple[str, ...]:
    """Return a row as it is shown, in the order of `COLUMNS`, and `WHITE_BOX_COLUMNS` if asked."""
    white_box = (row.mean_host_gradients, row.mean_translated_evaluations) if inside else ()
    return (
        row.strategy,
        show_estimate(row.success, 100.0),
        show_estimate(row.mean_queries),
        show_estimate(row.median_queries),
        show_estimate(row.mean_device_queries),
        show_estimate(row.times_baseline),
        show_number(row.evaluation_seconds),
        show_number(row.wall_seconds),
        f"{row.ties:,}",
        show_number(row.median_l2),
        show_number(row.median_strength),
        *map(show_estimate, white_box),
    )


def show_estimate(estimate: Estimate | None, unit: float = 1.0) -> str:
    """Return a figure with its interval in brackets, where that is not the figure itself."""
    if estimate is None:
        return "–"
    value, low, high = (
        show_number(one * unit) for one in (estimate.value, estimate.low, estimate.high)
    )
    return value if low == value == high else f"{value} ({low}–{high})"


def show_number(value: float | None) -> str:
    """Return a number in three significant digits, or in all those before the point."""
    if value is None:
        return "–"
    digits = 0 if value == 0.0 else min(4, max(0, 2 - floor(log10(abs(value)))))
    return f"{value:,.{digits}f}"


def _bound(bound: float | str | None) -> str:
    if bound is None:
        return "none"
    return bound if isinstance(bound, str) else f"{bound:g}"
