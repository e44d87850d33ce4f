"""What a bench says, held against the runs that it sums up."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from documents import finding
from edgeflare.bench.bench_document import Bench, write_bench
from edgeflare.bench.bench_table import (
    COLUMNS,
    WHITE_BOX_COLUMNS,
    print_table,
    shown,
    to_markdown,
)
from edgeflare.bench.strategy_figures import StrategyFigures, queries_needed, summarize

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def rows(whole: tuple[Path, Bench]) -> list[StrategyFigures]:
    return whole[1].rows()


def test_a_row_sums_up_the_runs_of_a_strategy(
    whole: tuple[Path, Bench], rows: list[StrategyFigures]
) -> None:
    bench = whole[1]
    assert [row.strategy for row in rows] == ["random", "dflare"]
    for row in rows:
        runs = [document for cell, document in bench.runs if cell.plan.strategy == row.strategy]
        totals = [run.totals for run in runs]
        found = [finding for run in runs for finding in run.findings]
        assert row.runs == 2
        assert row.searches == sum(one.seeds - one.deviating_seeds for one in totals)
        assert row.findings == len(found) > 0
        assert row.success is not None
        assert row.success.value == pytest.approx(np.mean([one.success_rate for one in totals]))
        assert row.mean_queries is not None
        assert row.mean_queries.value == pytest.approx(np.mean([one.queries for one in found]))
        assert row.median_queries is not None
        assert row.median_queries.value == np.median([one.queries for one in found])
        assert row.wall_seconds == pytest.approx(
            sum(one.wall_seconds for one in totals) / len(found)
        )
        assert row.ties == sum(one.ties for one in totals)
        assert row.median_l2 == np.median([one.distortion.l2 for one in found])
        strengths = [one.strength for one in found if one.strength is not None]
        assert row.median_strength == np.median(strengths)


def test_the_baseline_is_once_itself(rows: list[StrategyFigures]) -> None:
    (baseline,) = (row for row in rows if row.strategy == "dflare")
    assert baseline.times_baseline is not None
    assert baseline.times_baseline.value == baseline.times_baseline.low == 1.0


def test_only_run_seeds_that_both_ran_are_compared(whole: tuple[Path, Bench]) -> None:
    runs = whole[1].by_pair()["fashion_lenet4"]
    (_, cut) = summarize("pair", {"dflare": runs["dflare"], "random": runs["random"][1:]}, "dflare")
    (_, same) = summarize(
        "pair", {"dflare": runs["dflare"][1:], "random": runs["random"][1:]}, "dflare"
    )
    assert cut.times_baseline == same.times_baseline
    (alone,) = summarize("pair", {"dflare": [], "random": runs["random"]}, "dflare")
    assert alone.times_baseline is None


def test_seeds_that_deviate_themselves_are_not_searches(whole: tuple[Path, Bench]) -> None:
    document = whole[1].runs[0][1]
    seed_id = next(i for i in range(8) if i not in {f.seed_id for f in document.findings})
    deviating = replace(document, deviating_seeds=(finding(seed_id=seed_id),))
    assert len(queries_needed([document])) == 8
    assert len(queries_needed([deviating])) == len(queries_needed([document, deviating])) == 7


def test_a_run_without_findings_has_a_row(whole: tuple[Path, Bench]) -> None:
    document = replace(whole[1].runs[0][1], findings=())
    (row,) = summarize("pair", {"random": [document]}, "random")
    assert row.success is not None
    assert row.success.value == 0.0
    for figure in (row.mean_queries, row.times_baseline, row.wall_seconds, row.median_l2):
        assert figure is None
    assert shown(row)[2:8] == ("–",) * 6


def test_gradients_are_shown_where_a_strategy_asks_for_any(whole: tuple[Path, Bench]) -> None:
    bench = whole[1]
    document = next(one for _, one in bench.runs if one.findings)
    spent = {"host_gradients": 40, "translated_evaluations": 110}
    asking = replace(
        document,
        totals=replace(document.totals, **spent),
        findings=tuple(replace(one, **spent) for one in document.findings),
    )
    runs = {"random": [document], "asking": [asking]}
    rows = [plain, inside] = summarize("pair", runs, "random")
    assert plain.mean_host_gradients is plain.mean_translated_evaluations is None
    assert inside.mean_host_gradients is not None
    assert inside.mean_host_gradients.value == 40.0
    assert inside.mean_translated_evaluations is not None
    assert inside.mean_translated_evaluations.value == 110.0
    header, _, first, second = (
        line for line in to_markdown(bench.grid, rows).splitlines() if line.startswith("|")
    )
    assert header.endswith(f"| {' | '.join(WHITE_BOX_COLUMNS)} |")
    assert first.endswith("| – | – |")
    assert second.endswith("| 40.0 | 110 |")
    assert "compare asking with others by seconds" in to_markdown(bench.grid, rows)
    assert WHITE_BOX_COLUMNS[0] not in to_markdown(bench.grid, [plain])


def test_what_is_written_can_be_read(
    whole: tuple[Path, Bench], rows: list[StrategyFigures], tmp_path: Path
) -> None:
    bench = whole[1]
    write_bench(bench, rows, tmp_path)
    document = json.loads((tmp_path / "bench.json").read_text())
    assert document["schema"] == "edgeflare.bench/v1"
    assert document["plan"]["goal"] == {"find": "any", "ties": False, "min_strength": 0.0}
    # The queries of a strategy count findings as the search meets them, however far and weak.
    plan = document["plan"]
    assert (plan["within"], plan["min_strength"]) == (None, 0.0)
    assert (plan["strengthen"], plan["shrink"]) == (0, 0)
    assert document["strategies"] == ["random", "dflare"]
    written_runs = [run["run"] for run in document["runs"]]
    assert written_runs == [cell.run.as_posix() for cell, _ in bench.runs]
    for written, row in zip(document["rows"], rows, strict=True):
        assert written["strategy"] == row.strategy
        assert row.success is not None
        assert written["success"]["value"] == row.success.value
    assert (tmp_path / "table.md").read_text() == to_markdown(bench.grid, rows)


def test_the_tables_of_a_terminal_are_of_one_grid(
    whole: tuple[Path, Bench], rows: list[StrategyFigures]
) -> None:
    console = Console(file=StringIO(), width=200)
    print_table(console, whole[1].grid, rows)
    assert isinstance(console.file, StringIO)
    said = console.file.getvalue()
    assert said.startswith("find any on emulated-builtin · ties excluded · the first 8 seeds")
    assert all(row.strategy in said for row in rows)


def test_the_table_has_a_line_for_each_row(
    whole: tuple[Path, Bench], rows: list[StrategyFigures]
) -> None:
    lines = to_markdown(whole[1].grid, rows).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(rows)
    assert {line.count("|") for line in table} == {len(COLUMNS) + 2}
    assert "find any on emulated-builtin · ties excluded · the first 8 seeds" in lines[0]
    assert "at most 80 queries" in lines[0]
