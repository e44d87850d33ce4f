"""What ends a conformance run: on arms that compute exactly, and when the command is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from called_commands import completed
from conforming import (
    ADD,
    CLAMPED,
    HUNG,
    SUM,
    ExactArm,
    PlantedFault,
    SeenProgress,
    a_header,
    an_addition,
    faulty_arms,
)
from edgeflare.conform import conform_run
from edgeflare.conform.conform_run import ConformanceRun, run_conformance
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import Draft, drafted
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.graph_file import signatures_file
from edgeflare.conform.record.conform_document import read_conformance
from edgeflare.conform.record.conform_journal import begin_journal, resume_journal
from edgeflare.conform.record.finding_files import load_finding
from edgeflare.conform.rounds import conform_rounds, refinement, smallest_models
from edgeflare.conform.rounds.model_figures import model_figures
from edgeflare.core.interrupt import InterruptedBy
from edgeflare.errors import InfrastructureError
from edgeflare.run.run_directory import RunDirectory
from interrupted_commands import started

pytestmark = pytest.mark.slow

ROUND = 64
"""Models of a round."""


def ended(
    folder: Path,
    arms: Sequence[ExactArm],
    cells: Sequence[Cell] = (ADD,),
    interrupted: Callable[[], InterruptedBy | None] = lambda: None,
    observer: SeenProgress | None = None,
    content: bytes | None = None,
    **asked: Any,
) -> dict[str, Any]:
    """Begin a run, or go on with that of the folder; return its document, as it was written.

    Its rounds draw less than those of the command, and its findings are refined and shrunk with
    fewer models.
    """
    header = a_header(cells)
    header = replace(header, request=replace(header.request, **asked))
    begun = (folder / "conform.db").exists()
    journal = (
        resume_journal(folder, header) if begun else begin_journal(folder, header, overwrite=False)
    )
    try:
        reading = None if content is None else read_operators(content)
        model = (
            None
            if reading is None or content is None
            else model_figures("model.tflite", content, reading, cells)
        )
        run = ConformanceRun(header, RunDirectory(folder), journal, model, reading, ())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conform_run, "ROUND_MODELS", ROUND)
            patch.setattr(conform_run, "_LAST_ROUNDS", 1)
            patch.setattr(conform_rounds, "_MOST_LEFT_OUT", 2 * ROUND)
            patch.setattr(refinement, "_EACH", 8)
            patch.setattr(smallest_models, "_RUNS", 50)
            run_conformance(run, arms, observer or SeenProgress(), interrupted)
    finally:
        journal.close()
    return dict(msgspec.to_builtins(read_conformance(RunDirectory(folder))))


def untimed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without how long the run took."""
    return {key: value for key, value in document.items() if key != "seconds"}


def test_ctrl_c_ends_a_run_while_findings_are_shrunk_and_not_after(tmp_path: Path) -> None:
    seen = SeenProgress()
    cut = ended(
        *(tmp_path / "run", faulty_arms(CLAMPED)),
        interrupted=lambda: "sigterm" if seen.shrinking else None,
        observer=seen,
        models=48,
    )
    assert cut["stopped_by"] == "sigterm"
    resumed = ended(tmp_path / "run", faulty_arms(CLAMPED), models=48)
    seen = SeenProgress()
    whole = ended(
        *(tmp_path / "whole", faulty_arms(CLAMPED)),
        interrupted=lambda: "interrupt" if seen.shrinking[-1:] == [(1, 1)] else None,
        observer=seen,
        models=48,
    )
    assert seen.shrinking[-1] == (1, 1)
    assert whole["stopped_by"] == "models"
    assert untimed(resumed) == untimed(whole)
    (unshrunk,), (shrunk,) = cut["findings"], whole["findings"]
    assert unshrunk["smallest"]["device_runs"] < shrunk["smallest"]["device_runs"]


def test_in_a_short_time_few_models_are_drawn_in_short_rounds(tmp_path: Path) -> None:
    seen = SeenProgress()
    cut = ended(
        *(tmp_path, faulty_arms()),
        interrupted=lambda: "interrupt" if seen.rounds else None,
        observer=seen,
        models=96,
        time_limit_seconds=3600.0,
    )
    assert cut["models"] == 16  # without a time, a third of the 96, or a whole round


def test_findings_name_the_signatures_in_which_they_are(tmp_path: Path) -> None:
    plain, clamped = an_addition(), an_addition(activation="RELU6", output_scale=0.01)
    chain = Draft((plain, an_addition(source=0)))
    graphs = [drafted(draft).graph for draft in (chain, Draft((clamped,)))]
    content = signatures_file(graphs)
    document = ended(tmp_path / "alone", faulty_arms(CLAMPED), content=content, models=48)
    assert [part["name"] for part in document["model"]["graphs"]] == [
        *("signature first", "signature second"),
    ]
    assert document["model"]["operators_tried"] == 3
    assert [finding["graphs"] for finding in document["findings"]] == [("signature second",)]
    together = PlantedFault("ADD", joined=True)
    document = ended(
        *(tmp_path / "whole", faulty_arms(together)), content=content, models=1, graphs="only"
    )
    assert [finding["graphs"] for finding in document["findings"]] == [("signature first",)]
    assert document["graphs"]["tried"] == 3


def test_a_run_of_which_all_models_hang_ends_when_nothing_else_is_left(tmp_path: Path) -> None:
    hanging = PlantedFault("SUM", failure="hang")
    arms = faulty_arms(hanging)
    document = ended(tmp_path / "run", arms, (SUM,), models=None, time_limit_seconds=3600.0)
    assert document["stopped_by"] == "nothing-left"
    assert document["models"] == document["cells"][0]["verdicts"]["hang"]
    again = ended(
        tmp_path / "run", faulty_arms(hanging), (SUM,), models=None, time_limit_seconds=3600.0
    )
    assert untimed(again) == untimed(document)


def test_cells_beside_one_that_hangs_are_run_to_the_end(tmp_path: Path) -> None:
    document = ended(
        *(tmp_path / "run", faulty_arms(PlantedFault("SUM", failure="hang")), (ADD, SUM)),
        models=100,
    )
    assert (document["stopped_by"], document["models"]) == ("models", 100)
    by_cell = {one["operator"]: sum(one["verdicts"].values()) for one in document["cells"]}
    assert by_cell["SUM"] < 33
    assert by_cell["ADD"] == 100 - by_cell["SUM"]
    few = ended(tmp_path / "few", faulty_arms(HUNG), (SUM,), models=ROUND + 1)
    assert few["stopped_by"] == "models"


@dataclass
class KilledWhileShrinking(SeenProgress):
    """An observer of a slow device: shrinking takes 400 seconds each time, and is cut off once.

    Attributes:
        passed: seconds.
        lives: whether it is not cut off.

    """

    passed: float = 0.0
    lives: bool = False

    def shrunk(self, done: int, total: int) -> None:
        """Let time pass."""
        super().shrunk(done, total)
        self.passed += 400.0
        if not self.lives and len(self.shrinking) == 3:
            raise InfrastructureError("the device is gone")


def test_shrinking_that_was_cut_off_is_added_up_and_has_its_time_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = KilledWhileShrinking()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + seen.passed)
    monkeypatch.setattr(conform_rounds, "time", clock)
    asked: dict[str, Any] = {"models": 48, "time_limit_seconds": 1400.0}
    with pytest.raises(InfrastructureError, match="gone"):
        ended(tmp_path / "run", faulty_arms(CLAMPED), observer=seen, **asked)
    cut_off_at, seen.lives, seen.shrinking = seen.passed, True, []
    resumed = ended(tmp_path / "run", faulty_arms(CLAMPED), observer=seen, **asked)
    taken = seen.passed
    # The time that passed when the device was lost is noted nowhere.
    assert taken - 400 < resumed["seconds"] < taken
    seen.shrinking = []
    whole = ended(tmp_path / "whole", faulty_arms(CLAMPED), observer=seen, **asked)
    assert untimed(resumed) == untimed(whole)
    assert whole["seconds"] < taken - cut_off_at + 400


def test_graphs_are_drawn_until_the_limit_where_shrinking_takes_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [0.0]

    class SlowArm(ExactArm):
        def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
            passed[0] += 25.0
            return super().run(models)

    clock = SimpleNamespace(monotonic=lambda: passed[0])
    monkeypatch.setattr(conform_rounds, "time", clock)
    monkeypatch.setattr(conform_run, "GRAPHS_OF_ROUND", 8)
    arms = (SlowArm(), ExactArm("xnnpack"))
    asked: dict[str, Any] = {"models": None, "time_limit_seconds": 2000.0, "graphs": "only"}
    document = ended(tmp_path / "run", arms, (ADD, SUM), **asked)
    assert document["stopped_by"] == "time-limit"
    assert document["seconds"] > 0.9 * 2000.0


RUN = (
    *("conform", "--ops", "TANH", "--dtype", "int16x8"),
    *("--models", "32", "--time-limit", "1h"),
)
"""Rounds, which are short with a time limit, of an operator that all kernels get wrong. What they
make of a sum of no values would be another one in each process."""

KILLS = 1


def _command(out: Path) -> list[str]:
    if _has_begun(out):
        return [*RUN, "--out", str(out), "--resume"]
    return [*RUN, "--out", str(out), "--overwrite"]


def _has_begun(out: Path) -> bool:
    """Whether there is a journal to go on with."""
    if not (out / "conform.db").exists():
        return False
    with closing(sqlite3.connect(out / "conform.db")) as db:
        return bool(db.execute("PRAGMA user_version").fetchone()[0])


def _run(out: Path) -> dict[str, Any]:
    completed(*_command(out))
    document = msgspec.to_builtins(read_conformance(RunDirectory(out)))
    return {key: value for key, value in document.items() if key != "seconds"}


def _kill(out: Path, after: float) -> None:
    """Kill the host, not what it has started, as the system does where memory is short."""
    with started(*_command(out)) as process:
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_run_that_is_killed_comes_to_the_same(tmp_path: Path) -> None:
    began = time.monotonic()
    whole = _run(tmp_path / "whole")
    seconds = time.monotonic() - began
    assert {one["operator"] for one in whole["findings"]} == {"TANH"}
    moments = np.random.default_rng(15).uniform(0, seconds, KILLS)
    for after in moments:
        _kill(tmp_path / "killed", float(after))
    assert _run(tmp_path / "killed") == whole, moments
    for one in whole["findings"]:
        files = [
            load_finding(RunDirectory(tmp_path / run), one["smallest"]["file"])
            for run in ("whole", "killed")
        ]
        assert files[0].model == files[1].model
        assert files[0].arrays.keys() == files[1].arrays.keys()
        for name, values in files[0].arrays.items():
            np.testing.assert_array_equal(values, files[1].arrays[name])
