"""A search or a bench that is stopped: by Ctrl-C, or for good; one watched on a terminal."""

from __future__ import annotations

import errno
import os
import pty
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from called_commands import EXAMPLE, completed, document_of
from documents import Document, as_json
from edgeflare.bench.bench_document import Bench
from edgeflare.bench.grid import Grid
from edgeflare.cli import bench
from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import InfrastructureError
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from forked_commands import forked_edgeflare
from interrupted_commands import started
from laboratory import untimed

pytestmark = pytest.mark.slow

LONG = (
    *("--first", "12", "--max-queries", "400", "--chains", "3"),
    *("--shrink", "20", "--fail-on", "none"),
)
DEADLINE_SECONDS = 300.0


@contextmanager
def search(out: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A search in a process group of its own, as a shell starts it."""
    with started("search", str(EXAMPLE), *LONG, *more, "--out", str(out)) as process:
        yield process


def await_the_search(out: Path, stint: int = 1) -> None:
    """Wait until so many processes have searched in a run, and something was found."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if (out / "findings").is_dir():
            with closing(sqlite3.connect(out / "run.db")) as db:
                # An input lies in its folder before its row, which alone counts, is committed.
                found = "SELECT count(*) FROM triggers JOIN chains USING (seed_id)"
                searched = "SELECT count(*) FROM stints WHERE wall_seconds > 0"
                if db.execute(found).fetchone()[0] and db.execute(searched).fetchone()[0] >= stint:
                    return
        time.sleep(0.02)
    pytest.fail("the search did not begin")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Document:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    completed("search", EXAMPLE, *LONG, "--out", out)
    return as_json(load_document(RunDirectory(out)))


def test_ctrl_c_leaves_a_valid_run_that_goes_on_as_if_nothing_had_happened(
    undisturbed: Document, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with search(out) as process:
        await_the_search(out)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_SECONDS)

    assert process.returncode == 130
    assert "Traceback" not in err
    assert "stopping at Ctrl-C: verifying what was found" in err
    document = document_of(out)
    assert document["stopped_by"] == "interrupt"
    assert document["findings"]
    assert document["unverified"] == []
    assert document["totals"]["queries"] < undisturbed["totals"]["queries"]

    completed("search", EXAMPLE, *LONG, "--out", out, "--resume")
    assert untimed(as_json(load_document(RunDirectory(out)))) == untimed(undisturbed)


def test_a_killed_run_can_be_reported_and_so_can_one_that_was_killed_when_resumed(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    with search(out) as process:
        await_the_search(out)
        process.kill()
        process.wait()

    assert not (out / "run.json").exists()
    document = load_document(RunDirectory(out))
    assert document.stopped_by == "killed"
    said = completed("report", out)
    assert "killed before its end" in said.out
    assert "Not verified yet" in said.out
    assert not (out / "run.json").exists()

    with search(out, "--resume") as process:
        await_the_search(out, stint=2)
        process.send_signal(signal.SIGTERM)
        printed, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert "stopping at SIGTERM: verifying what was found; SIGTERM again stops at once" in err
    assert "stopped by SIGTERM before its end" in printed
    interrupted = load_document(RunDirectory(out))
    assert interrupted.stopped_by == "sigterm"

    with search(out, "--resume") as process:
        while (out / "run.json").exists() and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.wait()
    document = load_document(RunDirectory(out))
    assert document.stopped_by == "killed"
    assert document.totals.queries >= interrupted.totals.queries


def test_on_a_terminal_progress_is_live(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    options = ("--first", "2", "--max-queries", "30", "--fail-on", "none")
    command = [str(forked_edgeflare()), "search", str(EXAMPLE), *options]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "run")],
        stdin=end,
        stdout=subprocess.DEVNULL,
        stderr=end,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(end)
        shown = b"".join(_until_it_ends(terminal)).decode()
    os.close(terminal)
    assert process.returncode == 0
    assert "\x1b[" in shown
    assert "opening fashion_lenet4 on emulated-builtin" in shown
    assert "search" in shown
    assert "\x1b[?25h" in shown, "the cursor is hidden, and was not shown again"


def _until_it_ends(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end was closed
            return
        if not part:
            return
        yield part


@pytest.mark.parametrize(
    ("runs", "more", "done"),
    [
        ("bench", (), "0 of 2 runs are done, in {out}"),
        ("command_on_fleet", ("--only", "fashion_lenet4/random-1"), "fashion_lenet4/random-1"),
    ],
)
def test_a_stopped_bench_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: str, more: Sequence[str], done: str
) -> None:
    def stopped(*_: object, interrupt: Interrupt, **__: object) -> Iterator[object]:
        interrupt.ask("interrupt")
        return iter(())

    monkeypatch.setattr(f"edgeflare.cli.{runs}.run_grid", stopped)
    out = tmp_path / "out"
    asked = ("--strategy", "random", "--rng-seeds", "0,1", *more)
    line = completed("bench", EXAMPLE, *asked, "--out", out, code=130).err.splitlines()[-1]
    assert line.startswith(f"stopped: {done.format(out=out)}")
    assert line.endswith("; the same command with --resume goes on")


def test_one_run_of_a_bench_is_done_once_all_that_it_opened_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unclosed(grid: Grid, *_: object, **__: object) -> Iterator[tuple[object, None]]:
        yield SimpleNamespace(run=grid.only), None
        raise InfrastructureError("the device is lost")

    monkeypatch.setattr("edgeflare.cli.command_on_fleet.run_grid", unclosed)
    asked = ("--strategy", "random", "--only", "fashion_lenet4/random-0")
    said = completed("bench", EXAMPLE, *asked, "--out", tmp_path / "out", code=3)
    assert not said.out
    assert "the device is lost; the same command with --resume goes on" in said.err


def test_a_bench_whose_figure_finds_no_room_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bench, "run_grid", lambda *_, **__: iter([(None, None)]))
    monkeypatch.setattr(Bench, "rows", lambda _self: [])
    monkeypatch.setattr(bench, "write_bench", lambda *_: None)
    monkeypatch.setattr(bench, "draw_queries", full)
    said = completed("bench", EXAMPLE, "--strategy", "random", "--out", tmp_path / "out", code=3)
    assert said.err.splitlines()[-1].endswith("; the same command with --resume goes on")
