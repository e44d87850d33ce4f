"""The result of a bench: `bench.json`, schema `edgeflare.bench/v1`, its table and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare import __version__
from edgeflare.bench.bench_table import bench_section
from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.bench.strategy_figures import StrategyFigures, queries_needed, summarize
from edgeflare.errors import UserError
from edgeflare.pages.markdown import markdown_section
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.report.nearness_figure import label_lines
from edgeflare.run.run_document import RunDocument, to_json
from edgeflare.statistics.bootstrap import Values

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
        "runs": [_run(cell, document) for cell, document in bench.runs],
        "rows": [asdict(row) for row in rows],
    }
    write_atomically(out / "bench.json", json_bytes(document))
    write_atomically(out / "table.md", markdown_section(bench_section(bench.grid, rows)).encode())


def _run(cell: BenchRun, document: RunDocument) -> dict[str, Any]:
    return {
        "pair": cell.pair.name,
        "strategy": cell.plan.strategy,
        "rng_seed": cell.plan.rng_seed,
        "run": cell.run.as_posix(),
        "devices": list(map(to_json, document.devices)),
        "totals": to_json(document.totals),
    }


def draw_queries(bench: Bench, path: Path) -> None:
    """Draw the figure as an SVG; the same runs give the same file.

    Raises:
        UserError: matplotlib is not installed.

    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415

        from edgeflare.pages.chart import drawn_svg  # noqa: PLC0415
    except ImportError:
        raise UserError(f"{path.name} needs matplotlib: pip install 'edgeflare[plots]'") from None
    pairs = bench.by_pair()
    most = bench.grid.plan.max_queries
    style = {"svg.hashsalt": "edgeflare", "svg.fonttype": "none", "text.parse_math": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(5.0 * max(1, len(pairs)), 3.6), layout="constrained")
        panels = figure.subplots(1, max(1, len(pairs)), squeeze=False, sharey=True)[0]
        for panel, (pair, runs) in zip(panels, pairs.items(), strict=False):
            for documents in runs.values():
                if documents:
                    spent, rates = cumulative_success(queries_needed(documents))
                    # From one query on, since the axis is logarithmic, to the bound.
                    last = rates[-1] if rates.size else 0.0
                    x, y = [1.0, *spent, float(most)], [0.0, *rates, last]
                    panel.step(x, y, where="post")
            panel.set(title=pair, xlabel="queries", xscale="log", xlim=(1, most), ylim=(0, 1.02))
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("share of the seeds with a finding")
        first = next(iter(pairs.values()), {})
        drawn_first = [strategy for strategy, documents in first.items() if documents]
        label_lines(panels[0], drawn_first, "upper left")
        drawn = drawn_svg(figure, {"Date": None})
    write_atomically(path, drawn.encode())


def cumulative_success(values: Values) -> tuple[Values, Values]:
    """Return the success rate against what was spent: (found,) of each, both rising."""
    spent = np.sort(values[np.isfinite(values)])
    return spent, np.arange(1, spent.size + 1) / max(1, values.size)
