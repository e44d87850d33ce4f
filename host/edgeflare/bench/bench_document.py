"""The result of a bench: `bench.json`, schema `edgeflare.bench/v1`, its table and its figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count, groupby, islice
from math import floor, log10
from pathlib import Path
from statistics import fmean
from statistics import median as middle

import numpy as np

from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.errors import UserError
from edgeflare.pages.facts import count_of
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.page import Section, Sentences, Table
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.report.figure_lines import add_legend, line_style
from edgeflare.run.run_document import RunDocument, to_json
from edgeflare.statistics.bootstrap import (
    Estimate,
    Values,
    mean,
    median,
    ratio_of_means,
    success_rate,
)
from edgeflare_protos import __version__


@dataclass(frozen=True, slots=True)
class StrategyFigures:
    """A strategy on a pair; means and medians are over findings, and None where there is none.

    Attributes:
        pair: the pair's name.
        strategy: the strategy's name.
        runs: campaigns that it sums up, one for each run seed.
        searches: seeds searched, over all of them.
        findings: findings, over all of them.
        success: share of the searches that ended in a finding.
        mean_queries: queries for a finding.
        median_queries: queries for a finding.
        mean_device_queries: device queries for a finding.
        mean_host_gradients: gradients for a finding; None where the strategy asks for none.
        mean_translated_evaluations: translated evaluations for a finding, likewise.
        times_baseline: mean queries over the baseline's, over the searches in which both found.
        evaluation_seconds: evaluation time of a finding's own chain, mean.
        wall_seconds: wall time of the campaigns over their findings, failed searches included.
        ties: queries whose labels differ by a tie only, over all campaigns.
        median_l2: distance of a triggering input from its seed, in gray levels.
        median_strength: strength of a finding.

    """

    pair: str
    strategy: str
    runs: int
    searches: int
    findings: int
    success: Estimate | None
    mean_queries: Estimate | None
    median_queries: Estimate | None
    mean_device_queries: Estimate | None
    mean_host_gradients: Estimate | None
    mean_translated_evaluations: Estimate | None
    times_baseline: Estimate | None
    evaluation_seconds: float | None
    wall_seconds: float | None
    ties: int
    median_l2: float | None
    median_strength: float | None


def summarize(
    pair: str, runs: Mapping[str, Sequence[RunDocument]], baseline: str
) -> list[StrategyFigures]:
    """Sum up the campaigns on a pair.

    Args:
        pair: the pair's name.
        runs: finished campaigns by strategy, in the order of their run seeds.
        baseline: the strategy that the others are compared with.

    """
    return [
        _row(pair, strategy, documents, runs.get(baseline, ()))
        for strategy, documents in runs.items()
        if documents
    ]


def queries_needed(documents: Sequence[RunDocument], key: str = "queries") -> Values:
    """Return what each search needed: (seeds, runs), NaN where it found nothing.

    Seeds that deviate themselves are not searched and have no row.
    """
    total = documents[0].totals.seeds
    deviating = {entry.seed_id for run in documents for entry in run.deviating_seeds}
    named = deviating | {entry.seed_id for run in documents for entry in run.findings}
    # Which seeds a document does not name nobody knows, and need not: they have the same row.
    unnamed = islice(
        (number for number in count() if number not in named), max(0, total - len(named))
    )
    places = {seed_id: at for at, seed_id in enumerate(sorted({*named, *unnamed} - deviating))}
    values = np.full((len(places), len(documents)), np.nan)
    for column, document in enumerate(documents):
        for finding in document.findings:
            if finding.seed_id in places:
                values[places[finding.seed_id], column] = getattr(finding, key) or 0  # unset: none
    return values


def _row(
    pair: str, strategy: str, documents: Sequence[RunDocument], baseline: Sequence[RunDocument]
) -> StrategyFigures:
    queries = queries_needed(documents)
    findings = [finding for document in documents for finding in document.findings]
    totals = [document.totals for document in documents]
    strengths = [finding.strength for finding in findings if finding.strength is not None]
    return StrategyFigures(
        pair,
        strategy,
        runs=len(documents),
        searches=queries.size,
        findings=len(findings),
        success=success_rate(queries),
        mean_queries=mean(queries),
        median_queries=median(queries),
        mean_device_queries=mean(queries_needed(documents, "device_queries")),
        mean_host_gradients=_mean_inside(documents, "host_gradients"),
        mean_translated_evaluations=_mean_inside(documents, "translated_evaluations"),
        times_baseline=_times_baseline(documents, baseline),
        evaluation_seconds=fmean(finding.seconds for finding in findings) if findings else None,
        wall_seconds=(
            sum(total.wall_seconds for total in totals) / len(findings) if findings else None
        ),
        ties=sum(total.ties for total in totals),
        median_l2=middle(finding.distortion.l2 for finding in findings) if findings else None,
        median_strength=middle(strengths) if strengths else None,
    )


def _mean_inside(documents: Sequence[RunDocument], key: str) -> Estimate | None:
    """Return the mean of what white-box queries cost; None where there were none."""
    asked = any(getattr(document.totals, key) for document in documents)
    return mean(queries_needed(documents, key)) if asked else None


def _times_baseline(
    documents: Sequence[RunDocument], baseline: Sequence[RunDocument]
) -> Estimate | None:
    """Compare the run seeds that both have run."""
    known = {document.rng_seed: document for document in baseline}
    shared = [document for document in documents if document.rng_seed in known]
    if not shared:
        return None
    theirs = [known[document.rng_seed] for document in shared]
    queries = queries_needed([*shared, *theirs])
    return ratio_of_means(queries[:, : len(shared)], queries[:, len(shared) :])


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
    "In brackets: 95 % bootstrap intervals over the seeds; where none or all of the searches found "
    "something, the exact one. Queries, device queries, L2 (median, levels) and strength (median) "
    "are of findings. × baseline: mean queries over {baseline}'s, where both found. s evaluation: "
    "evaluation time of a finding's own search; s wall: wall time of the campaign over its "
    "findings. ties: deviations by a tie, in all searches."
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
            f"at most {count_of(plan.max_queries, 'query', 'queries')} for each seed",
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


SCHEMA = "edgeflare.bench/v1"


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench as far as it has come.

    Attributes:
        grid: what was asked.
        runs: the campaigns that reached their end; grows.

    """

    grid: Grid
    runs: list[tuple[BenchRun, RunDocument]]

    def by_pair(self) -> dict[str, dict[str, list[RunDocument]]]:
        """Return the runs by the pair's name, then by strategy, in the order of the grid."""
        found: dict[str, dict[str, list[RunDocument]]] = {}
        for cell, document in self.runs:
            strategies = found.setdefault(
                cell.pair.name, {name: [] for name in self.grid.strategies}
            )
            strategies[cell.plan.strategy].append(document)
        return found

    def rows(self) -> list[StrategyFigures]:
        """Return a row for each strategy on each pair."""
        return [
            row
            for pair, runs in self.by_pair().items()
            for row in summarize(pair, runs, self.grid.baseline)
        ]


def write_bench(bench: Bench, rows: Sequence[StrategyFigures], out: Path) -> None:
    """Write `bench.json` and `table.md` into the bench's folder."""
    document = {
        "schema": SCHEMA,
        "edgeflare": __version__,
        **bench.grid.to_json(),
        "runs": [
            {
                "pair": cell.pair.name,
                "strategy": cell.plan.strategy,
                "rng_seed": cell.plan.rng_seed,
                "run": cell.run.as_posix(),
                "devices": list(map(to_json, document.devices)),
                "totals": to_json(document.totals),
            }
            for cell, document in bench.runs
        ],
        "rows": [asdict(row) for row in rows],
    }
    write_atomically(out / "bench.json", json_bytes(document))
    write_atomically(out / "table.md", markdown_section(bench_section(bench.grid, rows)).encode())


def draw_queries(bench: Bench, path: Path) -> None:
    """Draw the figure as an SVG; the same runs give the same file.

    Raises:
        UserError: matplotlib is not installed.

    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415

        from edgeflare.pages.chart import drawn_svg, name_decades  # noqa: PLC0415
    except ImportError:
        raise UserError(f"{path.name} needs matplotlib: pip install 'edgeflare[plots]'") from None
    pairs = bench.by_pair()
    most = float(bench.grid.plan.max_queries)
    # A strategy that no pair has yet has no line; of one that some pairs lack, all lines are alike.
    strategies = [
        strategy
        for strategy in bench.grid.strategies
        if any(runs[strategy] for runs in pairs.values())
    ]
    style = {"svg.hashsalt": "edgeflare", "svg.fonttype": "none", "text.parse_math": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(5.0 * max(1, len(pairs)), 3.6), layout="constrained")
        panels = figure.subplots(1, max(1, len(pairs)), squeeze=False, sharey=True)[0]
        for panel, (pair, runs) in zip(panels, pairs.items(), strict=False):
            for strategy, documents in runs.items():
                if documents:
                    spent, rates = cumulative_success(queries_needed(documents))
                    # From one query on, since the axis is logarithmic, to the bound.
                    last = rates[-1] if rates.size else 0.0
                    x, y = [1.0, *spent, most], [0.0, *rates, last]
                    panel.step(x, y, where="post", **line_style(strategies.index(strategy)))
            panel.set(title=pair, xlabel="queries", ylim=(0, 1.02))
            panel.set(xscale="log", xlim=(1, max(10.0, most)))
            name_decades(panel)
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("share of the seeds with a finding")
        add_legend(panels[0], strategies, "upper left")
        drawn = drawn_svg(figure, {"Date": None})
    write_atomically(path, drawn.encode())


def cumulative_success(values: Values) -> tuple[Values, Values]:
    """Return the success rate against what was spent: (found,) of each, both rising."""
    spent = np.sort(values[np.isfinite(values)])
    return spent, np.arange(1, spent.size + 1) / max(1, values.size)
