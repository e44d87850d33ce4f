"""A campaign over linear models in parts: a run of each seed, their screening, and the whole.

Beside them lies what is left of runs of the whole that were stopped or killed on their way.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from documents import Document
from edgeflare.campaign.campaign import StoppedBy, run_campaign, run_screening
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.screening_answers import GivenScreening, note_screening
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.tensor import RawBatch
from edgeflare.models.evaluator import Evaluator
from edgeflare.run.merge.merge_runs import merge_runs
from edgeflare.run.run_header import RunHeader
from edgeflare.run.seed_ids import SeedIds
from laboratory import Laboratory, Phases
from linear_laboratory import linear_laboratory
from run_content import run_content
from scripted_health import scripted_device
from wrapped_evaluators import WrappedEvaluator

SEEDS = 10
PLAN: dict[str, Any] = {
    "strategy": "boundary",
    "goal": Goal(Find.ANY),
    "min_strength": 0.02,
    "max_queries": 14,
    "strengthen": 20,
    "shrink": 20,
}
"""A strategy that reads other seeds, and queries that are too few for some of the seeds."""


def small_laboratory(folder: Path, seeds: int = SEEDS) -> Laboratory:
    """Return a laboratory of a few seeds, one of which deviates itself, and canaries often."""
    laboratory = linear_laboratory(folder)
    laboratory.images = laboratory.images[:seeds]
    laboratory.monitored = (scripted_device(canary_every=10),)
    return laboratory


def with_screening(path: Path) -> Phases:
    """Return the phases of a search of some seeds that is given a screening."""

    def run(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
        header = RunHeader.from_json(context.journal.about())
        given = GivenScreening.load(path, header, context.seeds)
        resumed = "screening" in context.journal.about()
        note_screening(context.journal, given, resumed=resumed)
        return run_campaign(replace(context, screening=given), interrupt)

    return run


def search_part(
    laboratory: Laboratory, name: str, seed_ids: Iterable[int], screening: Path, **more: Any
) -> Document:
    """Search some seeds of a laboratory, given a screening; `more` is as for `Laboratory.run`."""
    ids = SeedIds.of(seed_ids)
    return laboratory.run(name, phases=with_screening(screening), seed_ids=ids, **more)


@dataclass(frozen=True)
class MergedParts:
    """Runs that lie in a folder: `whole`, `screening`, and of each seed one that has its id."""

    folder: Path

    def single(self, seed_id: int) -> Path:
        """Return the run of one seed."""
        return self.folder / str(seed_id)

    @property
    def singles(self) -> list[Path]:
        """The runs of all seeds, one each."""
        return [self.single(seed_id) for seed_id in range(SEEDS)]

    @property
    def stopped(self) -> list[Path]:
        """Runs of all seeds that the user stopped, each after some queries more."""
        return sorted(self.folder.glob("stopped-*"))

    @property
    def killed(self) -> list[Path]:
        """What is left of a run of all seeds that is killed, each at a later call of its device."""
        return sorted(self.folder.glob("killed-*"))

    @property
    def screening(self) -> Path:
        """The run that only evaluated the seeds."""
        return self.folder / "screening"

    @cached_property
    def whole(self) -> dict[str, Any]:
        """The content of the run that one search of all seeds made."""
        return run_content(self.folder / "whole")


def make_parts(folder: Path) -> None:
    """Run a campaign as a whole, and in parts of one seed each."""
    laboratory = small_laboratory(folder)
    document = laboratory.run("whole", **PLAN)
    totals = document["totals"]
    assert totals["deviating_seeds"] > 0
    assert 1 < totals["findings"] < totals["searched"]
    assert all(one["refined"] for one in document["findings"])
    laboratory.run("screening", phases=run_screening, **PLAN)
    for seed_id in range(SEEDS):
        search_part(laboratory, str(seed_id), [seed_id], folder / "screening", **PLAN)
    for queries in (1, 20, 50, 70):
        laboratory.run(f"stopped-{queries:02}", stop_after=queries, chains=3, **PLAN)
        assert laboratory.stopped == "interrupt"

    def killed_often(evaluator: Evaluator) -> Evaluator:
        return CopiedDuringCalls(evaluator, folder / "undisturbed")

    laboratory.run("undisturbed", wrap_device=killed_often, chains=4, **PLAN)


class CopiedDuringCalls(WrappedEvaluator):
    """A device during some of whose calls the run is copied, as a kill would leave it."""

    def __init__(self, inner: Evaluator, run: Path) -> None:
        """Wrap the device of a run that is in the folder `run`."""
        super().__init__(inner)
        self._run = run

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        answer = super().submit(inputs)
        if self.calls % 5 == 2:  # not all, to be quick
            copied(self._run, self._run.with_name(f"killed-{self.calls:03}"))
        return answer


def merged(paths: Sequence[Path], out: Path) -> Path:
    """Merge runs, and return the path of the merged one."""
    merge_runs(paths, out, overwrite=False)
    return out


def copied(run: Path, to: Path) -> Path:
    """Copy a run, to be changed."""
    shutil.copytree(run, to, copy_function=_copy_if_there)
    return to


def _copy_if_there(source: str, target: str) -> None:
    """Copy a file; what SQLite keeps beside a journal may go while another worker reads the run."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        if not source.endswith(("-wal", "-shm")):
            raise


def change_journal(run: Path, statement: str, *values: object) -> None:
    """Change rows of a run's journal; at least one has to be there."""
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        assert db.execute(statement, values).rowcount > 0


def about_of(run: Path) -> dict[str, Any]:
    """Return what a run's journal says of it."""
    with closing(sqlite3.connect(run / "run.db")) as db:
        rows = db.execute("SELECT key, value FROM about").fetchall()
    return {key: json.loads(text) for key, text in rows}


def note_about(run: Path, **values: Any) -> None:
    """Have a run's journal say something else of it."""
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)
