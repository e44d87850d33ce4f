"""A search by gradients that is stopped or killed: all is as if nothing had happened."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from called_commands import call_here
from documents import Document, as_json
from edgeflare.campaign import scheduler
from edgeflare.campaign.chain import Chain
from edgeflare.campaign.search_phase import SearchPhase
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare.strategies import strategy
from interrupted_commands import started
from laboratory import untimed

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
SEARCH = (
    *("search", str(EXAMPLE), "--strategy", "gradient", "--first", "6"),
    *("--shrink", "0", "--fail-on", "none"),
)
STRONGEST = ("--set", "strongest=true", "--set", "iterations=30")
"""Every chain takes all iterations, so that there is time to be killed in."""

DEADLINE_SECONDS = 300.0


def search(out: Path, *more: str, code: int = 0) -> Document:
    said = call_here(*SEARCH, *more, "--out", out)
    assert said.code == code, said.err
    return as_json(load_document(RunDirectory(out)))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Document:
    document = search(tmp_path_factory.mktemp("undisturbed") / "run", "--chains", "1")
    found = document["findings"]
    assert len(found) == 6
    for key in ("host_gradients", "translated_evaluations"):
        assert document["totals"][key] == sum(one[key] for one in found) > 0
    return document


@pytest.fixture(scope="module")
def strongest(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return search(tmp_path_factory.mktemp("strongest") / "run", *STRONGEST)


def test_a_run_seed_decides_all_whatever_the_number_of_chains(
    undisturbed: Document, tmp_path: Path
) -> None:
    assert untimed(search(tmp_path / "chains", "--chains", "4")) == untimed(undisturbed)
    other = search(tmp_path / "other", "--rng-seed", "1", "--first", "1")
    (found,) = other["findings"]
    assert found["sha256"] not in [one["sha256"] for one in undisturbed["findings"]]


def test_shrinking_by_gradients_depends_on_the_run_seed_alone(tmp_path: Path) -> None:
    by = (
        *("--strategy", "boundary", "--shrink", "150", "--shrink-by", "gradient"),
        *("--first", "3", "--device", "emulated-xnnpack"),
    )
    one, other = (search(tmp_path / chains, *by, "--chains", chains) for chains in ("1", "3"))
    assert untimed(one) == untimed(other)
    assert len(one["findings"]) == 3
    for key in ("host_gradients", "translated_evaluations"):
        assert key not in one["totals"]  # the search asked for none
        spent = [found["refined"][key] for found in one["findings"]]
        assert one["totals"][f"refine_{key}"] == sum(spent)
        assert min(spent) > 0
    for found in one["findings"]:
        assert found["distortion"]["l2"] < 0.8 * found["refined"]["distortion_before"]["l2"]


@pytest.mark.parametrize("batches", [1, 4])
def test_ctrl_c_in_the_middle_of_a_chain_costs_time_only(
    undisturbed: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """The first seed takes two queries, so its chain is open after the first batch."""
    reported = 0
    report = SearchPhase.report

    def interrupt_then_report(phase: SearchPhase) -> None:
        nonlocal reported
        reported += 1
        if reported == batches:
            os.kill(os.getpid(), signal.SIGINT)
        report(phase)

    out = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(SearchPhase, "report", interrupt_then_report)
        stopped = search(out, "--chains", "1", code=130)
    assert stopped["stopped_by"] == "interrupt"
    ended, spent = stopped["totals"]["searched"], undisturbed["totals"]
    assert ended < 6
    assert stopped["totals"].get("host_gradients", 0) < spent["host_gradients"]
    assert ("host_gradients" in stopped["totals"]) == (ended > 0)

    assert untimed(search(out, "--chains", "1", "--resume")) == untimed(undisturbed)


def test_what_is_killed_twice_ends_alike(strongest: Document, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = (*SEARCH, *STRONGEST, "--chains", "2", "--out", str(out))
    for ended, resumed in ((1, ()), (3, ("--resume",))):
        with started(*words, *resumed) as process:
            await_chains(out / "run.db", ended)
            assert process.poll() is None
            process.kill()
            process.wait()
    document = load_document(RunDirectory(out))
    assert document.stopped_by == "killed"
    assert 3 <= document.totals.searched < 6
    assert untimed(search(out, *STRONGEST, "--resume")) == untimed(strongest)


def test_ctrl_c_ends_the_opening_of_chains_and_keeps_those_that_ended(
    undisturbed: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many chains may be open as there are seeds, and each searches as soon as it is opened."""
    monkeypatch.setattr(scheduler, "_OPENING_SECONDS", 0.0)
    opened = 0
    open_chain = SearchPhase.open

    def open_then_interrupt(phase: SearchPhase, seed_id: int) -> Chain:
        nonlocal opened
        opened += 1
        if opened == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return open_chain(phase, seed_id)

    out = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(SearchPhase, "open", open_then_interrupt)
        stopped = search(out, code=130)
    assert opened == 4
    assert 1 <= stopped["totals"]["searched"] <= 4
    assert untimed(search(out, "--resume")) == untimed(undisturbed)


def test_time_that_is_up_leaves_what_was_found(
    strongest: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = SimpleNamespace(perf_counter=count(0.0, 0.01).__next__)
    with monkeypatch.context() as patched:
        patched.setattr(strategy, "time", ticks)  # however fast the machine: .01 s an answer
        document = search(tmp_path / "run", *STRONGEST, "--max-time", "0.2")
    totals = document["totals"]
    assert totals["host_gradients"] < strongest["totals"]["host_gradients"]
    assert 0 < totals["findings"] <= totals["searched"] == 6
    with closing(RunJournal.open(tmp_path / "run" / "run.db")) as journal:
        ends = {one.ended for one in journal.chains().values()}
    assert "finding" in ends <= {"finding", "max-time", "gave-up"}  # before the time was up


def await_chains(journal: Path, ended: int) -> None:
    """Wait until so many chains of a run have ended."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if journal.exists():
            with closing(sqlite3.connect(journal)) as db:
                if (
                    db.execute("PRAGMA user_version").fetchone()[0]
                    and db.execute("SELECT count(*) FROM chains").fetchone()[0] >= ended
                ):
                    return
        time.sleep(0.01)
    pytest.fail(f"{ended} chains did not end")
