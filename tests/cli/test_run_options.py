"""Where a run lies, and whether it begins, replaces one or goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeflare.cli.run_options import RunFolder
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.run_directory import RunDirectory


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        (RunFolder(resume=True), "--resume has to know which run: add --out RUN"),
        (RunFolder(Path("run"), overwrite=True, resume=True), "give one of them"),
    ],
)
def test_contradictions_are_refused(folder: RunFolder, message: str) -> None:
    with pytest.raises(UserError, match=message):
        folder.require_one_way()


def test_a_run_that_begins_is_not_written_over_another(tmp_path: Path) -> None:
    os.close(RunDirectory.claim(tmp_path, overwrite=False)[1])
    write_atomically(tmp_path / "run.json", b"{}")
    with pytest.raises(UserError, match="holds a run already"):
        RunFolder(tmp_path).choose("pair")
    assert RunFolder(tmp_path, overwrite=True).choose("pair") == tmp_path
    assert RunFolder(tmp_path, resume=True).choose("pair") == tmp_path


def test_by_default_a_run_lies_in_a_new_folder_of_runs() -> None:
    path = RunFolder().choose("pair")
    assert path.parent == Path("runs")
    assert path.name.startswith("pair-")
