"""Tests of edgeflare.survey.shown.page.worst_examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgeflare.report.html.pictures import Picture
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.record.survey_file import read_survey
from edgeflare.survey.shown.page.survey_page import render_survey
from edgeflare.survey.shown.page.worst_examples import CONDITIONS, EXAMPLES, worst_conditions
from edgeflare.survey.shown.survey_tables import worst_first
from surveyed_runs import surveyed_run


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return surveyed_run(tmp_path / "run")


@pytest.fixture
def document(directory: RunDirectory) -> dict[str, Any]:
    return read_survey(directory)


def test_the_worst_conditions_come_first_with_their_strongest_inputs(
    document: dict[str, Any], directory: RunDirectory
) -> None:
    found = worst_conditions(document, load_document(directory), directory)
    slices = document["by_condition"]["slices"]
    assert [one.name for one in found] == [
        *(one["condition"] for one in worst_first(document, slices)), "unchanged",
    ]  # fmt: skip
    shown = {
        one.name: [(example.severity, example.card.entry.seed_id) for example in one.examples]
        for one in found
    }
    assert shown == {"fog": [(5, 0), (1, 1)], "dark": [(3, 2)], "unchanged": [(0, 3)]}
    for one in found:
        for example in one.examples:
            (group,) = example.card.shots
            kinds = [shot.what for shot in group.shots if isinstance(shot, Picture) and shot.uri]
            changed = ["seed", "trigger", "difference"]
            assert kinds == (["seed"] if one.name == "unchanged" else changed)


def test_only_some_of_many_are_shown(document: dict[str, Any], directory: RunDirectory) -> None:
    names = [f"condition {n}" for n in range(CONDITIONS + 2)]
    slices = document["by_condition"]["slices"]
    document["by_condition"]["slices"] = [
        {**slices[0], "condition": name, "name": name} for name in names
    ]
    document["findings"] = [
        {"seed_id": n % 3, "condition": name, "severity": 1, "strength": n / 10}
        for name in names
        for n in range(EXAMPLES + 2)
    ]
    found = worst_conditions(document, load_document(directory), directory)
    assert len(found) == CONDITIONS
    assert {len(one.examples) for one in found} == {EXAMPLES}


def test_a_condition_that_a_gate_names_is_shown_without_examples_too(
    document: dict[str, Any], directory: RunDirectory
) -> None:
    document["findings"] = [one for one in document["findings"] if one["condition"] == "dark"]
    shown = {
        one.name: len(one.examples)
        for one in worst_conditions(document, load_document(directory), directory)
    }
    assert shown == {"dark": 1, "fog": 0}
    page = render_survey(document, directory, load_document(directory))
    assert page.count("none of them is under this condition") == 1
    document["gates"] = []
    found = worst_conditions(document, load_document(directory), directory)
    assert [one.name for one in found] == ["dark"]


def test_what_the_run_does_not_have_is_left_out(
    document: dict[str, Any], directory: RunDirectory
) -> None:
    assert worst_conditions(document, None, directory) == []
    document["findings"] = [{"seed_id": 99, "condition": "fog", "severity": 1, "strength": None}]
    assert worst_conditions(document, load_document(directory), directory) == []
