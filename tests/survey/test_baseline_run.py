"""A baseline as it is loaded: its document and its journal have to be of one survey."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from constructed_surveys import constructed_document
from edgeflare.errors import UserError
from edgeflare.record.folder_lock import lock_folder
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.baseline_run import load_baseline
from edgeflare.survey.derived_survey import derive_unwritten_survey
from edgeflare.survey.record.survey_journal import read_facts
from linear_laboratory import linear_laboratory
from surveying import LaboratorySurvey


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run directory of a survey whose device was asked about all 144 items."""
    LaboratorySurvey(linear_laboratory(tmp_path), plan={"findings": 0}).run("run")
    document = constructed_document(read_facts(tmp_path / "run"))
    (tmp_path / "run" / "survey.json").write_text(json.dumps(document))
    return tmp_path / "run"


def rewritten(run: Path, **changes: Any) -> None:
    document = json.loads((run / "survey.json").read_bytes())
    (run / "survey.json").write_text(json.dumps({**document, **changes}))


def test_a_baseline_has_its_document_and_its_facts(run: Path) -> None:
    baseline = load_baseline(run)
    assert baseline.name == str(run)
    assert baseline.document["asked"] == baseline.facts.asked.sum() == 144


def test_a_baseline_whose_document_was_not_written_is_derived(run: Path) -> None:
    written = load_baseline(run)
    (run / "survey.json").unlink()
    derived = load_baseline(run)
    assert derived.document["overall"] == written.document["overall"]
    assert derived.document["by_cell"] == written.document["by_cell"]
    assert derived.checksums == written.checksums


def test_a_baseline_that_only_the_run_itself_names_is_not_opened(run: Path, tmp_path: Path) -> None:
    named = tmp_path / "somebody's"
    with closing(Journal.reopen(run / "run.db")) as journal:
        journal.note(SURVEY_KEY, {**journal.about()[SURVEY_KEY], "baseline": str(named)})
    (run / "survey.json").unlink()
    named.mkdir()
    (named / "run.db").symlink_to("/dev/full")  # what is opened cannot be read
    derived = derive_unwritten_survey(RunDirectory(run))
    assert derived["baseline"] is None
    (said,) = [line for line in derived["warnings"] if "not compared" in line]
    assert f"--baseline {shlex.quote(str(named))} --resume" in said


def test_a_baseline_whose_host_did_not_answer_all_is_refused(run: Path) -> None:
    (run / "survey.json").unlink()
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute("DELETE FROM survey_host WHERE item = 3")
    with pytest.raises(UserError, match=r"\(143 of 144\): finish it with --resume"):
        load_baseline(run)


def test_a_baseline_that_is_still_running_is_refused(run: Path) -> None:
    (run / "survey.json").unlink()
    lock = lock_folder(run)
    try:
        with pytest.raises(UserError, match="still running: wait for its end"):
            load_baseline(run)
    finally:
        os.close(lock)


@pytest.mark.parametrize(("key", "value"), [("inputs", 25), ("asked", 143)])
def test_a_document_of_another_survey_than_its_journal_is_refused(
    key: str, value: int, run: Path
) -> None:
    rewritten(run, **{key: value})
    with pytest.raises(UserError, match=rf"its survey\.json and its run\.db have other {key}"):
        load_baseline(run)


def test_a_document_of_other_cells_than_its_journal_is_refused(run: Path) -> None:
    table = json.loads((run / "survey.json").read_bytes())["by_cell"]
    table["slices"].pop()
    rewritten(run, by_cell=table)
    with pytest.raises(UserError, match=r"its survey\.json and its run\.db have other cells"):
        load_baseline(run)


def test_a_journal_that_lost_answers_is_refused(run: Path) -> None:
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute("DELETE FROM survey_device WHERE item = 3")
    with pytest.raises(UserError, match="have other asked"):
        load_baseline(run)


@pytest.mark.parametrize("damage", ["bytes", "plan"])
def test_a_damaged_journal_is_no_reason_to_write_over_it(damage: str, run: Path) -> None:
    if damage == "bytes":
        (run / "run.db").write_bytes(b"no journal at all" * 100)
    else:
        with closing(sqlite3.connect(run / "run.db")) as db, db:
            db.execute("UPDATE about SET value = '3' WHERE key = 'survey'")
    with pytest.raises(
        UserError, match=r"run\.db is damaged .*name another run with --baseline"
    ) as e:
        load_baseline(run)
    assert "--overwrite" not in str(e.value)


def test_a_cut_document_says_how_it_is_written_anew(run: Path) -> None:
    path = run / "survey.json"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=f"writes it anew from run.db with --out {run} --resume"):
        load_baseline(run)
