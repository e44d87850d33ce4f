"""The journal of a conformance run: what it keeps, and whom it lets in."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.errors import UserError
from edgeflare.record.folder_contents import begin_list
from edgeflare.record.folder_lock import lock_folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conform.db"


def test_rounds_are_read_back_as_they_were_kept(path: Path) -> None:
    journal = ConformJournal.create(path, {"seed": 3})
    journal.keep(0, "abc", [{"nodes": [None, []]}], 1.5)
    journal.close()
    again = ConformJournal.open(path)
    assert again.about() == {"seed": 3}
    assert again.kept(0) == ("abc", [{"nodes": [None, []]}])
    assert again.kept(1) is None
    assert again.seconds_of_rounds() == 1.5
    again.close()


def test_what_was_last_noted_is_what_a_run_has_taken(path: Path) -> None:
    journal = ConformJournal.create(path, {})
    assert journal.seconds() == 0
    journal.note_seconds(1.5)
    journal.note_seconds(2.5)
    journal.close()
    again = ConformJournal.open(path)
    assert (again.seconds(), again.seconds_of_rounds()) == (2.5, 0)
    again.close()


def test_two_processes_do_not_work_on_one_run(path: Path) -> None:
    journal = ConformJournal.create(path, {})
    with pytest.raises(UserError, match="another process"):
        ConformJournal.reopen(path)
    journal.close()
    ConformJournal.reopen(path).close()


def test_what_a_killed_command_left_in_the_folder_is_removed_first(path: Path) -> None:
    begin_list(path.parent, "run")
    ConformJournal.create(path, {}).close()
    (path.parent / ".edgeflare" / "made").mkdir(parents=True)
    ConformJournal.reopen(path).close()
    assert not (path.parent / ".edgeflare").exists()


def test_a_damaged_round_is_said_in_one_line(path: Path) -> None:
    journal = ConformJournal.create(path, {})
    journal.keep(0, "abc", [], 1.0)
    journal.close()
    db = sqlite3.connect(path)
    db.execute("UPDATE rounds SET outcomes = x'00'")
    db.commit()
    db.close()
    with pytest.raises(UserError, match=r"conform\.db is damaged \(round 0"):
        ConformJournal.open(path).kept(0)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run directory"):
        ConformJournal.open(tmp_path / "conform.db")
    with pytest.raises(UserError, match="there is no run directory"):
        ConformJournal.open(tmp_path / "absent" / "conform.db")


def test_a_journal_that_cannot_be_begun_leaves_its_folder_to_others(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        ConformJournal.create(tmp_path / "a.db", {"seeds": object()})
    os.close(lock_folder(tmp_path))
