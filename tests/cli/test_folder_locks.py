"""Whatever command writes into a folder, another one that works there is not disturbed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from called_commands import EXAMPLE, SMALL, call_here, completed, document_of
from edgeflare.cli import report
from edgeflare.cli.app import app
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import FleetRequest, FleetState, PlaceState
from edgeflare.record.folder_lock import lock_folder

WRITING: Mapping[str, tuple[str, ...]] = {
    "search": (
        "{example} --out {out}",
        "{example} --out {run} --overwrite",
        "{example} {small} --out {run} --resume",
        "{example} --device emulated-all --out {out}",
    ),
    "replay": ("{other} --out {out}",),
    "merge": ("{other} --out {out}", "{other} --out {run} --overwrite"),
    "explain": ("{run}",),
    "inspect": ("{run}",),
    "layers": ("{example} --out {out}",),
    "check": ("{example} --out {out}",),
    "bench": ("{example} --out {out}",),
    "rank": ("{example} --compressed {biased} --out {out}",),
    "repair": ("{other} --out {out}",),
    "survey": ("{example} --out {out}", "{example} --conditions fog --show {run}/conditions.html"),
    "conform": ("--out {out} --time-limit 5",),
    "report": ("{run} --junit", "{run} --csv", "{run} --summary", "{run} --html --summary"),
    "export": ("{run} {finding}", "{other} {finding} --out {run}/finding.zip"),
    "compare": ("{run} {other} --figure {run}/nearness.svg",),
}
"""Command lines of each command that writes into folders of runs."""

FLEET_REQUEST = FleetRequest(("phone",), ("survey",))

OTHERS: Mapping[str, str] = {
    "fleet drain": "writes while a fleet's command holds the lock: see below",
    **dict.fromkeys(("fleet status", "devices list", "devices show", "devices check"), "reads"),
    **dict.fromkeys(("strategies", "doctor", "operators", "conditions"), "reads"),
    "agent serve": "keeps models in the agent's own folder",
    "agent bundle": "writes a file that the user names, and no list has it",
    "agent install": "writes on the device",
    "agent uninstall": "likewise",
}
"""All other commands, and why they need no lock."""

WHITEBOX = frozenset({"explain", "repair"})
"""Commands that need the extra before they lock a folder."""

LINES = [
    pytest.param(f"{command} {line}", marks=[pytest.mark.whitebox] if command in WHITEBOX else [])
    for command, lines in WRITING.items()
    for line in lines
]


def commands_in(command: Any, name: str = "") -> Iterator[str]:
    loaded = command.load() if hasattr(command, "load") else command
    if not hasattr(loaded, "commands"):
        yield name
    for inner, one in getattr(loaded, "commands", {}).items():
        yield from commands_in(one, f"{name} {inner}".strip())


def test_each_command_is_tried_or_needs_no_lock() -> None:
    assert not WRITING.keys() & OTHERS.keys()
    assert {*WRITING, *OTHERS} == {*commands_in(get_group(app))}


def content(folder: Path) -> dict[str, bytes]:
    return {
        one.relative_to(folder).as_posix(): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file()
    }


@pytest.fixture
def run(finished: Any, tmp_path: Path) -> Path:
    """A finished run, for the test to lock."""
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


@pytest.fixture(scope="module")
def finding(finished: Any) -> str:
    """A finding of the run, by its seed."""
    document = document_of(finished.folder)
    return str(document["findings"][0]["seed_id"])


@pytest.fixture
def named(run: Path, finished: Any, finding: str, biased: Path, tmp_path: Path) -> dict[str, str]:
    """What command lines name."""
    (tmp_path / "out").mkdir()
    paths = {"run": run, "out": tmp_path / "out", "other": finished.folder}
    paths |= {"example": EXAMPLE, "biased": biased}
    return {"finding": finding, **{name: str(path) for name, path in paths.items()}}


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_a_folder_that_is_being_worked_on_stays_as_it_is(
    line: str, named: dict[str, str], tmp_path: Path
) -> None:
    said = [
        one.format(**named)
        for word in line.split()
        for one in (SMALL if word == "{small}" else (word,))
    ]
    locks = [lock_folder(Path(named[name])) for name in ("run", "out")]
    before = content(tmp_path)
    try:
        answer = call_here(*said)
    finally:
        for lock in locks:
            os.close(lock)
    assert answer.code == 2, answer.err
    assert "is being worked on by another process: wait until" in answer.err
    assert content(tmp_path) == before


@pytest.mark.slow
def test_a_run_is_not_read_for_an_export_before_it_is_locked(run: Path, finding: str) -> None:
    (run / "run.db").write_bytes(b"of another moment")
    lock = lock_folder(run)
    try:
        said = call_here("export", run, finding)
    finally:
        os.close(lock)
    assert "is being worked on by another process" in said.complaint()


@pytest.mark.slow
def test_a_run_that_is_being_worked_on_may_be_watched(
    run: Path, finished: Any, finding: str, tmp_path: Path
) -> None:
    before = content(run)
    lock = lock_folder(run)
    try:
        completed("report", run)
        completed("report", run, "--json")
        completed("compare", run, finished.folder)
        completed("export", run, finding, "--out", tmp_path / "finding.zip")
        assert content(run) == before
        completed("report", run, "--html")
    finally:
        os.close(lock)
    now = content(run)
    assert now.pop("report.html")
    assert now.pop("contents.jsonl").startswith(before.pop("contents.jsonl"))
    assert now == before


@pytest.mark.slow
def test_whoever_watches_a_run_keeps_nobody_from_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = report._page

    def meanwhile(*given: Any) -> bytes:
        os.close(lock_folder(run))
        return page(*given)

    monkeypatch.setattr(report, "_page", meanwhile)
    completed("report", run, "--html")


def test_a_fleet_that_works_is_told_of_hosts_that_get_nothing_more(tmp_path: Path) -> None:
    folder = FleetFolder.beside(tmp_path / "run")
    with folder.claim(FLEET_REQUEST, resume=False, overwrite=False):
        folder.begin(FLEET_REQUEST)
        places = [PlaceState(f"{host}: one", host) for host in ("first", "second")]
        folder.show(FleetState("campaign", places=places))
        for words, drained in (
            (("first",), ["first"]),
            (("second",), ["first", "second"]),
            (("first", "--undo"), ["second"]),
        ):
            completed("fleet", "drain", tmp_path / "run", *words)
            assert folder.drained(["first", "second"]) == drained
