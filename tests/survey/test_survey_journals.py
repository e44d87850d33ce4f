"""What a survey's journal keeps: its plan and its rows, and as a baseline beside its document."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from constructed_surveys import constructed_document
from damaged_documents import VALUES, damage, places
from edgeflare.errors import UserError
from edgeflare.record.folder_lock import lock_folder
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell
from edgeflare.survey.items.survey_inputs import AskedGroups, AskedInputs
from edgeflare.survey.record.survey_document import survey_bytes
from edgeflare.survey.record.survey_journal import VOUCHED_KEY, read_facts, require_sound
from edgeflare.survey.record.survey_plan import (
    ENDED_KEY,
    PRECISION,
    EarlierEnds,
    NotedCondition,
    SurveyPlan,
    default_precision,
    noted_plan,
    resume_plan,
)
from edgeflare.survey.survey_derivation import derive_unwritten_survey
from edgeflare.survey.survey_preparation import load_baseline
from linear_laboratory import linear_laboratory
from surveying import LaboratorySurvey

PLAN = SurveyPlan(
    cells=(Cell(UNCHANGED, 0), Cell("fog", 1), Cell("fog", 3), Cell("jpeg", 2)),
    inputs=AskedInputs("test.npz", 40, 64 * "a"),
    groups=AskedGroups("who", ("a", "b"), (0, 1) * 20),
    device_queries=100,
    gates=("rate<0.01",),
    conditions={"fog": NotedCondition("fog", ("common",)), "jpeg": NotedCondition("jpeg")},
    baseline="/runs/before",
    left_out={"common": ("snow", "frost")},
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[RunJournal]:
    journal = RunJournal.create(tmp_path / "run.db", {SURVEY_KEY: plain_json(PLAN)})
    yield journal
    journal.close()


def test_a_plan_is_read_as_it_was_noted(journal: RunJournal) -> None:
    assert noted_plan(journal) == PLAN
    resume_plan(journal, PLAN)  # the same again goes on


MORE, ANOTHER = "a larger --device-queries", "another folder with --out"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"conditions": {"fog": PLAN.conditions["fog"]}, "cells": PLAN.cells[:3]},
            "with --conditions fog,jpeg, not fog: repeat",
        ),
        (
            {
                "conditions": {name: PLAN.conditions[name] for name in ("jpeg", "fog")},
                "cells": (PLAN.cells[0], PLAN.cells[3], *PLAN.cells[1:3]),
            },
            "with --conditions fog,jpeg, not jpeg,fog: repeat",
        ),
        (
            {"groups": AskedGroups("who", ("a", "b"), (1, 0) * 20)},
            r"with --groups who \(a, b\), which stands for something else now: restore",
        ),
        (
            {"cells": (*PLAN.cells[:2], PLAN.cells[3])},
            "with --severities fog 1,3; jpeg 2, not fog 1; jpeg 2",
        ),
        ({"inputs": replace(PLAN.inputs, sha256=64 * "b")}, "with --inputs test.npz"),
        ({"groups": None}, r"with --groups who \(a, b\), not without --groups"),
        ({"precision": 0.01}, "with --precision 0.005, not 0.01"),
        ({"device_queries": 99}, f"with --device-queries 100, not 99.*{MORE}"),
        ({"time_limit_seconds": 5.0}, "without --time-limit, not with --time-limit 5: "),
        ({"confidence": 0.9}, f"with --confidence 0.95, not 0.9.*{ANOTHER}"),
        ({"gates": ()}, f"with --gate rate<0.01, not without --gate.*{ANOTHER}"),
        ({"findings": 1}, "with --findings 50, not 1"),
        ({"rare_queries": 2000}, "without --rare-queries, not with --rare-queries 2000: repeat"),
        ({"baseline": None}, "with --baseline /runs/before, not without --baseline"),
        (
            {"conditions": {**PLAN.conditions, "fog": NotedCondition("contrast", ("common",))}},
            r"with --conditions fog,jpeg, not fog \(contrast\),jpeg",
        ),
        (
            {"conditions": {**PLAN.conditions, "jpeg": NotedCondition("jpeg", (), "mine 2.0")}},
            r"with --conditions fog,jpeg, not fog,jpeg \(of mine 2.0\)",
        ),
        ({"device_queries": 200, "gates": ("rate<0.02",)}, "with --gate rate<0.01, not rate<0.02"),
    ],
)
def test_another_plan_is_refused_by_the_option(
    changes: dict[str, Any], said: str, journal: RunJournal
) -> None:
    """More queries are advised only where they help."""
    with pytest.raises(UserError, match=said) as refused:
        resume_plan(journal, structs.replace(PLAN, **changes))
    grows = changes.keys() <= {"precision", "device_queries", "time_limit_seconds"}
    assert (MORE in str(refused.value)) == grows
    assert noted_plan(journal) == PLAN


@pytest.mark.parametrize(
    "noted", [{"baseline": True}, {"earlier": [3]}, {"earlier": [{"device_queries": 5}]}]
)
def test_a_plan_of_which_a_part_is_something_else_is_damage(
    noted: dict[str, Any], journal: RunJournal
) -> None:
    journal.note(SURVEY_KEY, {**plain_json(PLAN), **noted})
    with pytest.raises(UserError, match="damaged"):
        noted_plan(journal)


@pytest.mark.parametrize(
    "more", [{"device_queries": 200}, {"device_queries": None}, {"precision": 0.001}]
)
def test_more_is_asked_of_a_survey_that_ended(more: dict[str, Any], journal: RunJournal) -> None:
    journal.note(ENDED_KEY, "device-queries")
    resume_plan(journal, structs.replace(PLAN, **more))
    noted = noted_plan(journal)
    assert structs.replace(noted, earlier=()) == structs.replace(PLAN, **more)
    assert noted.earlier == (EarlierEnds(0.005, 100, None, "device-queries", 0),)
    assert noted.earlier_queries == (100,)
    assert journal.about()[ENDED_KEY] is None
    resume_plan(journal, structs.replace(PLAN, **more))  # the same again is no more
    assert noted_plan(journal) == noted
    with pytest.raises(UserError, match="was begun with"):
        resume_plan(journal, PLAN)


def test_an_end_that_there_was_not_is_refused_with_those_that_there_were(
    journal: RunJournal,
) -> None:
    resume_plan(journal, PLAN)
    said = "a smaller --precision or a larger --device-queries if more is wanted"
    with pytest.raises(UserError, match=rf"without --time-limit, not with --time-limit 9.*{said}"):
        resume_plan(journal, structs.replace(PLAN, time_limit_seconds=9))


def test_a_run_without_a_plan_is_no_survey(tmp_path: Path) -> None:
    with closing(RunJournal.create(tmp_path / "run.db", {})) as journal:
        with pytest.raises(UserError, match="is no survey"):
            noted_plan(journal)
        with pytest.raises(UserError, match="is no survey"):
            resume_plan(journal, PLAN)


@pytest.mark.parametrize(
    ("precision", "others", "taken"),
    [(None, (None, None), PRECISION), (None, (500, None), None), (0.01, (500, None), 0.01)],
)
def test_the_default_precision_is_for_surveys_that_nothing_else_ends(
    precision: float | None, others: tuple[int | None, None], taken: float | None
) -> None:
    assert default_precision(precision, others) == taken


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a survey whose device was asked about all 144 items."""
    folder = tmp_path_factory.mktemp("surveyed")
    groups = AskedGroups("who", ("a", "b"), (0, 1) * 12)
    LaboratorySurvey(linear_laboratory(folder), {"findings": 0, "groups": groups}).run("run")
    document = constructed_document(read_facts(folder / "run"))
    (folder / "run" / "survey.json").write_bytes(survey_bytes(document))
    return folder / "run"


@pytest.fixture
def run(surveyed: Path, tmp_path: Path) -> Path:
    """A copy of it, for the test to change."""
    return Path(shutil.copytree(surveyed, tmp_path / "run"))


def execute(run: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute(statement, values)


def noted_of(run: Path) -> dict[str, Any]:
    with closing(RunJournal.open(run / "run.db")) as journal:
        noted: dict[str, Any] = journal.about()[SURVEY_KEY]
        return noted


def note(run: Path, noted: Any) -> None:
    """Note something else of a survey."""
    execute(run, "UPDATE about SET value = ? WHERE key = ?", json.dumps(noted), SURVEY_KEY)


def resumed(run: Path) -> None:
    """Do what going on with a survey does first."""
    with closing(RunJournal.open(run / "run.db")) as journal:
        require_sound(journal)


def derived(run: Path) -> None:
    """Do what a report does of a survey that was cut off."""
    assert derive_unwritten_survey(RunDirectory(run)).items == 144


READ = (read_facts, resumed, derived)


def test_a_journal_that_nobody_changed_is_sound(surveyed: Path) -> None:
    resumed(surveyed)
    derived(surveyed)
    facts = read_facts(surveyed)
    assert (facts.items, facts.asked.sum(), facts.group_names) == (144, 144, ("a", "b"))


@pytest.mark.slow
@given(data=st.data())
def test_a_damaged_plan_is_refused_in_a_line_or_read(
    data: st.DataObject, surveyed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    noted = noted_of(surveyed)
    place = data.draw(st.sampled_from(list(places(noted))))
    how = data.draw(st.sampled_from(("put", "put", "take", "more")))
    run = tmp_path_factory.getbasetemp() / "damaged"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(surveyed, run)
    note(run, damage(noted, place, how, data.draw(st.sampled_from(VALUES))))
    for read in READ:
        try:
            read(run)
        except UserError as error:
            assert "\n" not in str(error)  # noqa: PT017 - it may be read, too


def test_a_plan_that_lacks_a_key_or_has_one_more_is_damage(run: Path) -> None:
    noted = noted_of(run)
    lacking = [{key: noted[key] for key in noted if key != gone} for gone in ("cells", "inputs")]
    for changed, reads in ((lacking[0], 2), (lacking[1], 2), (noted | {"more": 1}, 1)):
        note(run, changed)
        for read in READ[:reads]:
            with pytest.raises(UserError, match=r"run\.db is damaged"):
                read(run)


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
def test_rows_that_no_survey_wrote_are_damage(statement: str, run: Path) -> None:
    execute(run, statement)
    for read in READ:
        with pytest.raises(UserError, match=r"run\.db is damaged"):
            read(run)


@pytest.mark.parametrize("vouched", [-1, 2.5, "x", None])
def test_a_number_of_vouched_draws_that_is_none_is_damage(vouched: Any, run: Path) -> None:
    with closing(RunJournal.reopen(run / "run.db")) as journal:
        journal.note(VOUCHED_KEY, vouched)
    with pytest.raises(UserError, match=r"run\.db is damaged \(it vouches for "):
        resumed(run)


def test_host_rows_that_are_missing_are_answered_by_going_on_and_are_no_baseline(run: Path) -> None:
    (run / "survey.json").unlink()
    execute(run, "DELETE FROM survey_host WHERE item = 7")
    with pytest.raises(UserError, match="the host answered 143 of 144 items"):
        read_facts(run)
    with pytest.raises(UserError, match=r"\(143 of 144\): finish it with --resume"):
        load_baseline(run)
    resumed(run)


def rewritten(run: Path, **changes: Any) -> None:
    document = json.loads((run / "survey.json").read_bytes())
    (run / "survey.json").write_text(json.dumps({**document, **changes}))


def test_a_baseline_has_its_document_and_its_facts(run: Path) -> None:
    baseline = load_baseline(run)
    assert baseline.name == str(run)
    assert baseline.document.asked == baseline.facts.asked.sum() == 144


def test_a_baseline_whose_document_was_not_written_is_derived(run: Path) -> None:
    written = load_baseline(run)
    (run / "survey.json").unlink()
    derived = load_baseline(run)
    assert derived.document.overall == written.document.overall
    assert derived.document.by_cell == written.document.by_cell
    assert derived.checksums == written.checksums


def test_a_baseline_that_only_the_run_itself_names_is_not_opened(run: Path, tmp_path: Path) -> None:
    named = tmp_path / "somebody's"
    note(run, {**noted_of(run), "baseline": str(named)})
    (run / "survey.json").unlink()
    named.mkdir()
    (named / "run.db").symlink_to("/dev/full")  # what is opened cannot be read
    derived = derive_unwritten_survey(RunDirectory(run))
    assert derived.baseline is None
    (said,) = [line for line in derived.warnings if "not compared" in line]
    assert f"--baseline {shlex.quote(str(named))} --resume" in said


def test_a_baseline_that_is_still_running_is_refused(run: Path) -> None:
    (run / "survey.json").unlink()
    lock = lock_folder(run)
    try:
        with pytest.raises(UserError, match="still running: wait for its end"):
            load_baseline(run)
    finally:
        os.close(lock)


@pytest.mark.parametrize("other", ["inputs", "asked", "cells"])
def test_a_document_of_another_survey_than_its_journal_is_refused(other: str, run: Path) -> None:
    table = json.loads((run / "survey.json").read_bytes())["by_cell"]
    table["slices"].pop()
    rewritten(run, **({"by_cell": table} if other == "cells" else {other: 143}))
    with pytest.raises(UserError, match=rf"its survey\.json and its run\.db have other {other}"):
        load_baseline(run)


def test_a_journal_that_lost_answers_is_refused(run: Path) -> None:
    execute(run, "DELETE FROM survey_device WHERE item = 3")
    with pytest.raises(UserError, match="have other asked"):
        load_baseline(run)


@pytest.mark.parametrize("damage", ["bytes", "plan"])
def test_a_damaged_journal_is_no_reason_to_write_over_it(damage: str, run: Path) -> None:
    if damage == "bytes":
        (run / "run.db").write_bytes(b"no journal at all" * 100)
    else:
        note(run, 3)
    with pytest.raises(UserError, match=r"run\.db is damaged .*name another run with --base") as e:
        load_baseline(run)
    assert "--overwrite" not in str(e.value)


def test_a_cut_document_says_how_it_is_written_anew(run: Path) -> None:
    path = run / "survey.json"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=f"writes it anew from run.db with --out {run} --resume"):
        load_baseline(run)
