"""A bench as it is shown: what was asked, and for each pair a row for each strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import floor, log10

from edgeflare.bench.grid import Grid
from edgeflare.bench.strategy_figures import StrategyFigures
from edgeflare.pages.page import Section, Sentences, Table
from edgeflare.statistics.bootstrap import Estimate

_Columns = Mapping[str, Callable[[StrategyFigures], str]]

COLUMNS: _Columns = {
    "strategy": lambda row: row.strategy,
    "success %": lambda row: show_estimate(row.success, 100.0),
    "mean queries": lambda row: show_estimate(row.mean_queries),
    "median queries": lambda row: show_estimate(row.median_queries),
    "device queries": lambda row: show_estimate(row.mean_device_queries),
    "× baseline": lambda row: show_estimate(row.times_baseline),
    "s evaluation": lambda row: show_number(row.evaluation_seconds),
    "s wall": lambda row: show_number(row.wall_seconds),
    "ties": lambda row: f"{row.ties:,}",
    "L2": lambda row: show_number(row.median_l2),
    "strength": lambda row: show_number(row.median_strength),
}

WHITE_BOX_COLUMNS: _Columns = {
    "host gradients": lambda row: show_estimate(row.mean_host_gradients),
    "translated evaluations": lambda row: show_estimate(row.mean_translated_evaluations),
}
"""Columns behind the others where a strategy asks about the inside of the models."""

_MISSED_LEAST = (
    *("s wall", "strength", "ties", "L2", "translated evaluations", "s evaluation"),
    *("host gradients", "median queries", "device queries"),
)

_LEGEND = (
    "In brackets: 95 % bootstrap intervals over the seeds. Queries, device queries, L2 (median, "
    "levels) and strength (median) are of findings. × baseline: mean queries over {baseline}'s"
    ", where both found. s evaluation: evaluation time of a finding's own search; s wall: wall time"
    " of the campaign over its findings. ties: deviations by a tie, in all searches."
)

_WHITE_BOX_LEGEND = (
    " Host gradients and translated evaluations are of findings too. They are no queries, but their"
    " time is part of both kinds of seconds: compare {strategies} with others by seconds."
)


def bench_section(grid: Grid, rows: Sequence[StrategyFigures]) -> Section:
    """Return what was asked, a table for each pair, and what the columns mean.

    Args:
        grid: what was asked.
        rows: those of a pair one after the other.

    """
    tables = [_table(pair, list(group)) for pair, group in groupby(rows, lambda row: row.pair)]
    legend = _LEGEND.format(baseline=grid.baseline)
    if inside := ", ".join(dict.fromkeys(row.strategy for row in rows if _inside(row))):
        legend += _WHITE_BOX_LEGEND.format(strategies=inside)
    return Section(
        id="bench",
        title="Strategies side by side",
        blocks=[Sentences([heading(grid)]), *tables, Sentences([legend])],
    )


def _table(pair: str, rows: Sequence[StrategyFigures]) -> Table:
    columns = {**COLUMNS, **WHITE_BOX_COLUMNS} if any(map(_inside, rows)) else COLUMNS
    return Table(
        title=pair,
        header=list(columns),
        rows=[[tell(row) for tell in columns.values()] for row in rows],
        missed_least=_MISSED_LEAST,
    )


def _inside(row: StrategyFigures) -> bool:
    """Whether a strategy asks about the inside of the models."""
    return bool(row.mean_host_gradients or row.mean_translated_evaluations)


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


def show_estimate(estimate: Estimate | None, unit: float = 1.0) -> str:
    """Return a figure with its interval in brackets, where that is not the figure itself."""
    if estimate is None:
        return "–"
    value, low, high = (
        show_number(number * unit) for number in (estimate.value, estimate.low, estimate.high)
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
