"""Tests of edgeflare.survey.record.survey_file: whole and damaged documents, a line each."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from constructed_surveys import constructed_document
from edgeflare.errors import UserError
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.record.survey_file import read_survey

DOCUMENT = json.loads(json.dumps(constructed_document()))


def written(folder: Path, document: Any) -> RunDirectory:
    (folder / "survey.json").write_text(json.dumps(document))
    return RunDirectory(folder)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_survey(written(tmp_path, DOCUMENT)) == DOCUMENT


def test_a_folder_without_one_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no survey\.json.*--resume"):
        read_survey(RunDirectory(tmp_path))


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("schema",), "edgeflare.survey/v9", "is not of the schema edgeflare.survey/v1"),
        (("overall", "deviation", "low"), 2, "overall.deviation.low is 2"),
        (("overall", "kernel"), None, "overall.kernel is null"),
        (("overall", "deviation"), None, "overall.deviation is null, and has_original says"),
        (("by_condition", "slices", 0, "items"), "9", 'by_condition.slices[0].items is "9"'),
        (("gates", 0, "state"), "maybe", 'gates[0].state is "maybe"'),
        (("plan", "earlier"), [{}], "plan.earlier[0]"),
        (("findings", 0, "else"), 1, 'findings[0] has the unknown key "else"'),
        (("devices",), [], "devices is []"),
        (("by_cell", "slices"), [], "by_cell.slices is empty"),
        (("by_cell", "slices", 1, "severity"), None, "by_cell.slices[1].severity is null"),
        (("by_group", "slices", 0, "group"), None, "by_group.slices[0].group is null"),
        (("unchanged", "condition"), None, "unchanged.condition is null"),
        (("overall", "accuracy", "original"), None, "overall.accuracy has one of original and"),
    ],
)
def test_damage_is_a_line_with_the_place(
    tmp_path: Path, place: tuple[str | int, ...], value: Any, says: str
) -> None:
    document = deepcopy(DOCUMENT)
    inner: Any = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(UserError) as error:
        read_survey(written(tmp_path, document))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_json_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "survey.json").write_bytes(b"{")
    with pytest.raises(UserError, match="is damaged"):
        read_survey(RunDirectory(tmp_path))
