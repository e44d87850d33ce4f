"""`--quiet`: the path of what was made, errors, and nothing else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]


@pytest.fixture
def run(finished: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


@pytest.mark.slow
def test_a_search_says_its_run_directory_alone(
    start: Call, example: Path, small: tuple[str, ...], tmp_path: Path
) -> None:
    said = start("search", example, *small, "--out", tmp_path / "run", "--quiet")
    assert (said.code, said.out, said.err) == (1, f"{tmp_path / 'run'}\n", "")
    assert (tmp_path / "run" / "run.json").is_file()


@pytest.mark.parametrize(
    ("command", "options", "made"),
    [
        ("report", ("--csv", "--summary"), ("findings.csv", "summary.md")),
        ("report", (), ()),
        ("replay", ("--out", "{}/again"), ("again",)),
    ],
)
def test_the_paths_of_what_was_made_are_all_that_is_said(
    command: str, options: tuple[str, ...], made: tuple[str, ...], call: Call, run: Path
) -> None:
    said = call(command, run, *(option.format(run) for option in options), "--quiet")
    assert said.out.splitlines() == [str(run / name) for name in made]
    assert said.err == ""
    assert said.code == (1 if command == "replay" else 0)
    assert all((run / name).exists() for name in made)


def test_a_finding_is_explained_and_exported_quietly(call: Call, finished: Any, run: Path) -> None:
    (finding, *_) = sorted((run / "findings").iterdir())
    explained = call("explain", run, finding.name, "--quiet")
    assert (explained.code, explained.out, explained.err) == (0, f"{run / 'explain.json'}\n", "")
    exported = call("export", run, finding.name, "--quiet")
    (archive,) = run.glob("finding-*.zip")
    assert (exported.code, exported.out, exported.err) == (0, f"{archive}\n", "")


def test_errors_are_still_said(call: Call, example: Path, tmp_path: Path) -> None:
    bad = ("--max-linf", "far")
    loud = call("search", example, *bad)
    quiet = call("search", example, *bad, "--quiet")
    assert quiet == loud
    assert "--max-linf far" in quiet.complaint()
    unreadable = call("search", example, "--quiet", "--max-queries", "many")
    assert "--max-queries" in unreadable.complaint()
    streams = sys.stdout, sys.stderr
    assert call("report", tmp_path / "absent", "--quiet").complaint().startswith("there is no run")
    assert (sys.stdout, sys.stderr) == streams


@pytest.mark.parametrize(
    "command", ["bench", "rank", "repair", "search", "explain", "inspect", "replay"]
)
def test_commands_with_progress_have_it(command: str, call: Call) -> None:
    assert "--quiet" in call(command, "--help").out
