"""What a survey is asked, kept in its journal, and held to when it is gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgeflare.errors import UserError
from edgeflare.run.journal import Journal
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.items.noted_conditions import NotedCondition
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell
from edgeflare.survey.record.survey_plan import (
    ENDED_KEY,
    PRECISION,
    SurveyPlan,
    default_precision,
    noted_plan,
    resume_plan,
)

PLAN = SurveyPlan(
    cells=(Cell(UNCHANGED, 0), Cell("fog", 1), Cell("fog", 3), Cell("jpeg", 2)),
    inputs={"path": "test.npz", "count": 40, "sha256": 64 * "a"},
    groups={"column": "who", "names": ["a", "b"], "of_inputs": 20 * [0, 1]},
    device_queries=100,
    gates=("rate<0.01",),
    conditions={"fog": NotedCondition("fog", ("common",)), "jpeg": NotedCondition("jpeg")},
    baseline="/runs/before",
    left_out={"common": ("snow", "frost")},
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal.create(tmp_path / "run.db", {SURVEY_KEY: PLAN.to_json()})
    yield journal
    journal.close()


def test_a_plan_is_read_as_it_was_noted(journal: Journal) -> None:
    assert noted_plan(journal) == PLAN
    resume_plan(journal, PLAN)  # the same again goes on


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cells": PLAN.cells[:3]}, "with --conditions fog,jpeg, not fog"),
        (
            {"cells": (*PLAN.cells[:2], PLAN.cells[3])},
            "with --severities fog 1,3; jpeg 2, not fog 1; jpeg 2",
        ),
        ({"inputs": {**PLAN.inputs, "sha256": 64 * "b"}}, "with --inputs test.npz"),
        ({"groups": None}, r"with --groups who \(a, b\), not without it"),
        ({"precision": 0.01}, "with --precision 0.005, not 0.01"),
        ({"device_queries": 99}, "with --device-queries 100, not 99"),
        ({"time_limit": 5.0}, "without --time-limit, not with --time-limit 5.0"),
        ({"confidence": 0.9}, "with --confidence 0.95, not 0.9"),
        ({"gates": ()}, "with --gate rate<0.01, not without it"),
        ({"findings": 1}, "with --findings 50, not 1"),
        ({"rare_queries": 2000}, "without --rare, not with it: repeat"),
        ({"baseline": None}, "with --baseline /runs/before, not without it"),
        (
            {"conditions": {**PLAN.conditions, "fog": NotedCondition("contrast", ("common",))}},
            r"with --conditions fog,jpeg, not fog \(contrast\),jpeg",
        ),
        (
            {"conditions": {**PLAN.conditions, "jpeg": NotedCondition("jpeg", (), "mine 2.0")}},
            r"with --conditions fog,jpeg, not fog,jpeg \(of mine 2.0\)",
        ),
    ],
)
def test_another_plan_is_refused_by_the_option(
    changes: dict[str, Any], said: str, journal: Journal
) -> None:
    with pytest.raises(UserError, match=said):
        resume_plan(journal, replace(PLAN, **changes))


@pytest.mark.parametrize(
    ("changes", "further"),
    [({"device_queries": 99}, True), ({"gates": ()}, False), ({"confidence": 0.9}, False)],
)
def test_more_queries_are_advised_only_where_they_help(
    changes: dict[str, Any], further: bool, journal: Journal
) -> None:
    resume_plan(journal, PLAN)
    with pytest.raises(UserError) as refused:
        resume_plan(journal, replace(PLAN, **changes))
    assert ("a larger --device-queries" in str(refused.value)) == further
    assert ("another folder with --out" in str(refused.value)) != further


def test_a_baseline_that_is_no_path_is_damage(journal: Journal) -> None:
    journal.note(SURVEY_KEY, {**PLAN.to_json(), "baseline": True})
    with pytest.raises(UserError, match="damaged"):
        noted_plan(journal)


@pytest.mark.parametrize("earlier", [3, {"device_queries": 5}])
def test_what_had_been_to_end_it_is_damage_where_a_part_is_missing(
    earlier: object, journal: Journal
) -> None:
    journal.note(SURVEY_KEY, {**PLAN.to_json(), "earlier": [earlier]})
    with pytest.raises(UserError, match="damaged"):
        noted_plan(journal)


@pytest.mark.parametrize(
    "more", [{"device_queries": 200}, {"device_queries": None}, {"precision": 0.001}]
)
def test_more_is_asked_of_a_survey_that_ended(more: dict[str, Any], journal: Journal) -> None:
    journal.note(ENDED_KEY, "device-queries")
    resume_plan(journal, replace(PLAN, **more))
    noted = noted_plan(journal)
    assert replace(noted, earlier=()) == replace(PLAN, **more)
    asked = {"precision": 0.005, "device_queries": 100, "time_limit": None}
    assert noted.earlier == ({**asked, "ended": "device-queries", "asked": 0},)
    assert noted.earlier_queries == (100,)
    assert journal.about()[ENDED_KEY] is None
    resume_plan(journal, replace(PLAN, **more))  # the same again is no more
    assert noted_plan(journal) == noted
    with pytest.raises(UserError, match="was begun with"):
        resume_plan(journal, PLAN)


def test_an_end_that_there_was_not_is_refused_with_those_that_there_were(journal: Journal) -> None:
    resume_plan(journal, PLAN)
    said = "a smaller --precision or a larger --device-queries if the device is to be asked further"
    with pytest.raises(UserError, match=rf"without --time-limit, not with --time-limit 9.*{said}"):
        resume_plan(journal, replace(PLAN, time_limit=9))


def test_more_and_something_else_is_refused(journal: Journal) -> None:
    with pytest.raises(UserError, match=r"with --gate rate<0\.01, not rate<0\.02"):
        resume_plan(journal, replace(PLAN, device_queries=200, gates=("rate<0.02",)))
    assert noted_plan(journal) == PLAN


def test_a_run_without_a_plan_is_no_survey(tmp_path: Path) -> None:
    with closing(Journal.create(tmp_path / "run.db", {})) as journal:
        with pytest.raises(UserError, match="is no survey"):
            noted_plan(journal)
        with pytest.raises(UserError, match="is no survey"):
            resume_plan(journal, PLAN)


def test_the_default_precision_is_for_surveys_that_nothing_else_ends() -> None:
    assert default_precision(None, (None, None)) == PRECISION
    assert default_precision(None, (500, None)) is None
    assert default_precision(0.01, (500, None)) == 0.01
