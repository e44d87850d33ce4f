"""The result of a bench: `bench.json`, schema `edgeflare.bench/v1`, and its table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgeflare import __version__
from edgeflare.bench.bench_table import bench_section
from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.bench.strategy_figures import StrategyFigures, summarize
from edgeflare.pages.markdown import markdown_section
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.run.run_document import RunDocument, to_json

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
