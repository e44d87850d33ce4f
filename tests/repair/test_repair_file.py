"""Tests of edgeflare.repair.repair_file: documents of both schemas, whole and damaged."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from edgeflare.errors import UserError
from edgeflare.repair.repair_file import by_shifts, holds_repair, read_repair
from edgeflare.run.run_directory import RunDirectory
from repaired_example import repair_by_shifts, repaired_example

__all__ = ["repaired_example"]


def written(folder: Path, document: Any) -> RunDirectory:
    (folder / "repair.json").write_text(json.dumps(document))
    return RunDirectory(folder)


def test_a_repair_by_shifts_is_read(tmp_path: Path) -> None:
    document = repair_by_shifts()
    found = read_repair(written(tmp_path, document))
    assert found == document
    assert by_shifts(found)


@pytest.mark.slow
def test_a_repair_by_fitting_is_read(repaired_example: Path) -> None:
    found = read_repair(RunDirectory(repaired_example))
    assert found == json.loads((repaired_example / "repair.json").read_bytes())
    assert not by_shifts(found)


def test_a_folder_with_a_run_is_no_repair(tmp_path: Path) -> None:
    assert not holds_repair(RunDirectory(tmp_path))
    directory = written(tmp_path, {})
    assert holds_repair(directory)
    directory.journal.touch()
    assert not holds_repair(directory)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "it is [], expected object"),
        ({}, "it has no schema"),
        ({"schema": "edgeflare.repair/v9"}, 'schema is "edgeflare.repair/v9", but must be one of'),
        ({"schema": "edgeflare.repair/v1"}, "it has no edgeflare, run"),
        ({"schema": "edgeflare.repair/v2"}, "it has no edgeflare, pair"),
    ],
)
def test_what_is_no_repair_is_a_line_with_the_place(
    tmp_path: Path, document: Any, says: str
) -> None:
    with pytest.raises(UserError) as error:
        read_repair(written(tmp_path, document))
    assert str(error.value).startswith(f"{tmp_path / 'repair.json'} is damaged: {says}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("judged", "tight", "after", "big"), -1, "judged.tight.after.big is -1"),
        (("candidates", 0, "score"), "low", 'candidates[0].score is "low"'),
        (("shown", 0, "change"), "new", 'shown[0].change is "new"'),
        (("shown", 0, "original", "label"), None, "shown[0].original.label is null"),
        (("front",), [1], "front[0] is 1"),
    ],
)
def test_a_damaged_value_is_named(
    repaired_example: Path, tmp_path: Path, place: tuple[str | int, ...], value: Any, says: str
) -> None:
    document = deepcopy(read_repair(RunDirectory(repaired_example)))
    *before, last = place
    at: Any = document
    for key in before:
        at = at[key]
    at[last] = value
    with pytest.raises(UserError) as error:
        read_repair(written(tmp_path, document))
    assert f"repair.json is damaged: {says}" in str(error.value)


def test_a_document_outside_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(json.dumps(repair_by_shifts()))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "repair.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UserError, match="outside of it"):
        read_repair(RunDirectory(folder))
