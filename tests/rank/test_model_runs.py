"""What is read from the runs of a model, held against those runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.bench.bench_runs import run_grid
from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.campaign.observer import Observer
from edgeflare.core.goal import Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import UserError
from edgeflare.rank.model_runs import ModelRuns, read_runs
from edgeflare.run.nearness import nearness_db, rise
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDocument
from example_bench import Watcher
from example_compressions import SEEDS, Models

PLAN = Plan("boundary", Goal(), ("emulated-xnnpack",), max_queries=60, ensemble=("xnnpack",))


@dataclass(frozen=True)
class Ran:
    """Two runs of the broken model: where they lie, their documents, and what is read."""

    paths: list[Path]
    documents: list[RunDocument]
    searched: ModelRuns


def run(models: Models, out: Path, shrink: int) -> Ran:
    @contextmanager
    def watch(_cell: BenchRun) -> Iterator[Observer]:
        yield Watcher(Interrupt())

    grid = Grid(("boundary",), (0, 1), "boundary", replace(PLAN, shrink=shrink))
    cells = list(
        run_grid(
            grid,
            [models.pairs[2]],
            out,
            chains=SEEDS,
            watch=watch,
            interrupt=Interrupt(),
        )
    )
    paths = [out / cell.run for cell, _ in cells]
    return Ran(paths, [document for _, document in cells], read_runs(paths))


@pytest.fixture(scope="module")
def shrunk(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(models, tmp_path_factory.mktemp("shrunk"), 60)


@pytest.fixture(scope="module")
def found(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(models, tmp_path_factory.mktemp("found"), 0)


@pytest.mark.slow
def test_shrinking_changes_neither_queries_nor_strengths(shrunk: Ran, found: Ran) -> None:
    assert any(one.refined for one in shrunk.documents[0].findings)
    np.testing.assert_array_equal(shrunk.searched.queries, found.searched.queries)
    assert np.isfinite(found.searched.queries).any()
    assert shrunk.searched.strengths == pytest.approx(found.searched.strengths)
    assert shrunk.searched.searched == found.searched.searched


def test_a_budget_that_is_used_up_is_no_time_limit(found: Ran) -> None:
    assert not np.isfinite(found.searched.queries).all()
    assert found.searched.cut_by_time == 0


def test_the_mean_of_the_rises_is_the_area_of_the_run(shrunk: Ran) -> None:
    rises = shrunk.searched.rises
    assert rises is not None
    assert rises.shape == (SEEDS, 2)
    areas = [document.nearness.area for document in shrunk.documents if document.nearness]
    assert rises.mean(axis=0).tolist() == pytest.approx(areas)
    assert 0.0 < min(areas) < max(areas) < 1.0


def test_each_seed_counts_as_near_as_its_finding(shrunk: Ran) -> None:
    rises = shrunk.searched.rises
    assert rises is not None
    for column, document in enumerate(shrunk.documents):
        expected = np.zeros(SEEDS)
        for entry in document.findings:
            distance = nearness_db(entry)
            assert distance is not None
            expected[entry.seed_id] = rise(distance)
        deviating = [entry.seed_id for entry in document.deviating_seeds]
        assert deviating, "the broken model deviates on seeds"
        expected[deviating] = 1.0
        assert rises[:, column] == pytest.approx(expected)


def test_findings_that_were_not_shrunk_have_no_area(found: Ran) -> None:
    assert found.searched.rises is None


@pytest.mark.slow
def test_an_older_run_whose_images_are_gone_is_refused(
    models: Models, shrunk: Ran, tmp_path: Path
) -> None:
    """Older journals do not say how near an input is to its seed, so its size has to be known."""
    ran = run(models, tmp_path, 1)
    path = ran.paths[0]
    (path / "run.json").unlink()
    with closing(sqlite3.connect(path / "run.db")) as journal, journal:
        journal.execute("DELETE FROM nearness")
    for image in path.rglob("*.png"):
        image.unlink()
    with pytest.raises(UserError, match=r"has none of the images that it stored: remove it"):
        read_runs([path])
