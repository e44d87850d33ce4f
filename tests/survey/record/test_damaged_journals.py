"""Journals of surveys with a value that does not belong in its place: refused in a line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaged_documents import VALUES, damage, places
from edgeflare.errors import UserError
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.derived_survey import derive_unwritten_survey
from edgeflare.survey.record.survey_journal import VOUCHED_KEY, read_facts, require_sound
from linear_laboratory import linear_laboratory
from surveying import LaboratorySurvey


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a survey of 144 items, 60 of which the device was asked about."""
    folder = tmp_path_factory.mktemp("surveyed")
    groups = {"column": "who", "names": ["a", "b"], "of_inputs": 12 * [0, 1]}
    plan = {"device_queries": 60, "findings": 0, "groups": groups}
    LaboratorySurvey(linear_laboratory(folder), plan=plan).run("run")
    return folder / "run"


def changed(run: Path, folder: Path, *statements: str, noted: Any = None) -> Path:
    """Return a copy of a run with other rows, or with something else noted of its survey."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run, folder)
    with closing(sqlite3.connect(folder / "run.db")) as db, db:
        for statement in statements:
            db.execute(statement)
        if noted is not None:
            new = (json.dumps(noted), SURVEY_KEY)
            db.execute("UPDATE about SET value = ? WHERE key = ?", new)
    return folder


def noted_of(run: Path) -> dict[str, Any]:
    with closing(Journal.open(run / "run.db")) as journal:
        noted: dict[str, Any] = journal.about()[SURVEY_KEY]
        return noted


def resumed(run: Path) -> None:
    """Do what going on with a survey does first."""
    with closing(Journal.open(run / "run.db")) as journal:
        require_sound(journal)


def derived(run: Path) -> None:
    """Do what a report does of a survey that was cut off."""
    assert derive_unwritten_survey(RunDirectory(run))["items"] == 144


def test_a_journal_that_nobody_changed_is_sound(surveyed: Path) -> None:
    resumed(surveyed)
    derived(surveyed)
    facts = read_facts(surveyed)
    assert (facts.items, facts.asked.sum(), facts.group_names) == (144, 60, ("a", "b"))


@given(data=st.data())
def test_a_damaged_plan_is_refused_in_a_line_or_read(
    data: st.DataObject, surveyed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    noted = noted_of(surveyed)
    place = data.draw(st.sampled_from(list(places(noted))))
    how = data.draw(st.sampled_from(("put", "put", "take", "more")))
    value = damage(noted, place, how, data.draw(st.sampled_from(VALUES)))
    run = changed(surveyed, tmp_path_factory.getbasetemp() / "damaged", noted=value)
    for read in (read_facts, resumed, derived):
        refusal = ""
        try:
            read(run)
        except UserError as error:
            refusal = str(error)
        assert "\n" not in refusal


@pytest.mark.parametrize("missing", ["cells", "inputs"])
def test_a_plan_that_lacks_a_key_is_damage(missing: str, surveyed: Path, tmp_path: Path) -> None:
    noted = noted_of(surveyed)
    del noted[missing]
    run = changed(surveyed, tmp_path / "run", noted=noted)
    for read in (read_facts, resumed):
        with pytest.raises(UserError, match=r"run\.db is damaged"):
            read(run)


def test_a_plan_with_one_key_more_is_damage(surveyed: Path, tmp_path: Path) -> None:
    run = changed(surveyed, tmp_path / "run", noted={**noted_of(surveyed), "more": 1})
    with pytest.raises(UserError, match=r"run\.db is damaged"):
        read_facts(run)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE survey_device SET item = -1 WHERE item = (SELECT max(item) FROM survey_device)",
        "UPDATE survey_device SET item = 144 WHERE item = (SELECT max(item) FROM survey_device)",
        "UPDATE survey_device SET device_decision = 3",
        "UPDATE survey_device SET device_decision = 'x'",
        "UPDATE survey_device SET strength = 'x'",
        "UPDATE survey_host SET item = -1 WHERE item = 143",
        "UPDATE survey_host SET margin = 'x' WHERE item = 5",
        "UPDATE survey_host SET margin = -1 WHERE item = 5",
        "UPDATE survey_host SET twin_decision = 99 WHERE item = 5",
        "UPDATE survey_host SET original_decision = -2 WHERE item = 5",
        "UPDATE survey_host SET twin_distance = 'x' WHERE item = 5",
        "ALTER TABLE survey_host DROP COLUMN seconds",
        "UPDATE about SET value = '[1, 2]' WHERE key = 'labels'",
    ],
)
def test_rows_that_no_survey_wrote_are_damage(
    statement: str, surveyed: Path, tmp_path: Path
) -> None:
    run = changed(surveyed, tmp_path / "run", statement)
    for read in (read_facts, resumed, derived):
        with pytest.raises(UserError, match=r"run\.db is damaged"):
            read(run)


@pytest.mark.parametrize("vouched", [-1, 2.5, "x", None])
def test_a_number_of_vouched_draws_that_is_none_is_damage(
    vouched: Any, surveyed: Path, tmp_path: Path
) -> None:
    run = changed(surveyed, tmp_path / "run")
    with closing(Journal.reopen(run / "run.db")) as journal:
        journal.note(VOUCHED_KEY, vouched)
    with pytest.raises(UserError, match=r"run\.db is damaged \(it vouches for "):
        resumed(run)


def test_host_rows_that_are_missing_are_no_survey_to_compare_with(
    surveyed: Path, tmp_path: Path
) -> None:
    """Going on with it answers them."""
    run = changed(surveyed, tmp_path / "run", "DELETE FROM survey_host WHERE item = 7")
    with pytest.raises(UserError, match="the host answered 143 of 144 items"):
        read_facts(run)
    resumed(run)
