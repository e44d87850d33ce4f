"""What a bench says: rows held against the runs, and the figure."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from msgspec.structs import replace

from changed_documents import known
from documents import finding
from edgeflare.bench.bench_document import (
    COLUMNS,
    WHITE_BOX_COLUMNS,
    Bench,
    StrategyFigures,
    bench_section,
    cumulative_success,
    draw_queries,
    queries_needed,
    summarize,
    write_bench,
)
from edgeflare.errors import UserError
from edgeflare.pages.markdown import markdown_section
from edgeflare.statistics.bootstrap import Values, success_rate

queries = st.integers(1, 3000).map(float)
shapes = array_shapes(min_dims=2, max_dims=2, max_side=12)
tables = arrays(np.float64, shapes, elements=queries | st.just(np.nan))
laws = settings(max_examples=25, deadline=None)


def markdown(bench: Bench, rows: Sequence[StrategyFigures]) -> str:
    return markdown_section(bench_section(bench.grid, rows))


@given(tables)
def test_cumulative_success_rises_to_the_success_rate(values: Values) -> None:
    spent, rates = cumulative_success(values)
    assert (np.diff(spent) >= 0).all()
    assert (np.diff(rates) > 0).all()
    assert (rates[-1] if rates.size else 0.0) == pytest.approx(known(success_rate(values)).value)


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
        assert row.searches == sum(total.seeds - total.deviating_seeds for total in totals)
        assert row.findings == len(found) > 0
        assert row.success is not None
        assert row.success.value == pytest.approx(np.mean([total.success_rate for total in totals]))
        assert row.mean_queries is not None
        assert row.mean_queries.value == pytest.approx(np.mean([one.queries for one in found]))
        assert row.median_queries is not None
        assert row.median_queries.value == np.median([one.queries for one in found])
        assert row.wall_seconds == pytest.approx(
            sum(total.wall_seconds for total in totals) / len(found)
        )
        assert row.ties == sum(total.ties for total in totals)
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
    seed_id = next(i for i in range(5) if i not in {f.seed_id for f in document.findings})
    deviating = replace(document, deviating_seeds=(finding(seed_id=seed_id),))
    assert len(queries_needed([document])) == 5
    assert len(queries_needed([deviating])) == len(queries_needed([document, deviating])) == 4


def test_seeds_that_are_not_the_first_ones_count_as_well(whole: tuple[Path, Bench]) -> None:
    document = next(one for _, one in whole[1].runs if one.findings)
    ids = {f.seed_id: 10 * f.seed_id for f in document.findings}
    spread = [replace(one, seed_id=ids[one.seed_id]) for one in document.findings]
    needed = queries_needed([replace(document, findings=tuple(spread))])
    assert needed.shape == queries_needed([document]).shape
    assert np.nansum(needed) == np.nansum(queries_needed([document]))


def test_a_run_without_findings_has_a_row(whole: tuple[Path, Bench]) -> None:
    document = replace(whole[1].runs[0][1], findings=())
    (row,) = summarize("pair", {"random": [document]}, "random")
    assert row.success is not None
    assert row.success.value == 0.0
    for figure in (row.mean_queries, row.times_baseline, row.wall_seconds, row.median_l2):
        assert figure is None
    assert [tell(row) for tell in COLUMNS.values()][2:8] == ["–"] * 6


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
        line for line in markdown(bench, rows).splitlines() if line.startswith("|")
    )
    assert header.endswith(f"| {' | '.join(WHITE_BOX_COLUMNS)} |")
    assert first.endswith("| – | – |")
    assert second.endswith("| 40.0 | 110 |")
    assert "compare asking with others by seconds" in markdown(bench, rows)
    assert not any(name in markdown(bench, [plain]) for name in WHITE_BOX_COLUMNS)


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
    assert (plan["within_db"], plan["min_strength"]) == (None, 0.0)
    assert (plan["strengthen"], plan["shrink"]) == (0, 0)
    assert document["strategies"] == ["random", "dflare"]
    written_runs = [run["run"] for run in document["runs"]]
    assert written_runs == [cell.run.as_posix() for cell, _ in bench.runs]
    for written, row in zip(document["rows"], rows, strict=True):
        assert written["strategy"] == row.strategy
        assert row.success is not None
        assert written["success"]["value"] == row.success.value
    assert (tmp_path / "table.md").read_text() == markdown(bench, rows)


def test_the_table_has_a_line_for_each_row(
    whole: tuple[Path, Bench], rows: list[StrategyFigures]
) -> None:
    lines = markdown(whole[1], rows).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(rows)
    assert {line.count("|") for line in table} == {len(COLUMNS) + 1}
    assert "find any on emulated-builtin · ties excluded · the first 5 seeds" in lines[2]
    assert "at most 50 queries" in lines[2]


def test_without_matplotlib_it_says_how_to_get_it(
    whole: tuple[Path, Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 'edgeflare\[plots\]'"):
        draw_queries(whole[1], tmp_path / "queries.svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["fashion_lenet4", r"$\broken{$"])
def test_the_figure_names_pair_and_strategies_as_they_are(
    whole: tuple[Path, Bench], tmp_path: Path, name: str
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    (runs,) = whole[1].by_pair().values()
    named: Any = SimpleNamespace(by_pair=lambda: {name: runs}, grid=whole[1].grid)
    for file in ("one.svg", "two.svg"):
        draw_queries(named, tmp_path / file)
    drawn = (tmp_path / "one.svg").read_bytes()
    assert drawn == (tmp_path / "two.svg").read_bytes()
    words = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 - our own file
    for word in (name, "random", "dflare"):
        assert word in words


def test_a_strategy_is_drawn_alike_on_all_pairs_and_named_once(
    whole: tuple[Path, Bench], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    (runs,) = whole[1].by_pair().values()
    pairs = {"stopped": {**runs, "random": []}, "done": runs}
    grid = whole[1].grid
    short = dataclasses.replace(grid, plan=dataclasses.replace(grid.plan, max_queries=1))
    bench: Any = SimpleNamespace(by_pair=lambda: pairs, grid=short)
    draw_queries(bench, tmp_path / "queries.svg")
    drawn = (tmp_path / "queries.svg").read_text(encoding="utf-8")
    # The curves and the line of the legend; random comes first.
    strokes = Counter(re.findall(r"stroke: (#1f77b4|#ff7f0e)", drawn))
    assert strokes == {"#1f77b4": 2, "#ff7f0e": 3}
    texts = {element.text for element in ElementTree.fromstring(drawn).iter()}  # noqa: S314
    assert texts >= {"random", "dflare", "1", "2", "5", "10"}
