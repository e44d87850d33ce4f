"""The journal of a conformance run: what it keeps, and which runs go on with it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conforming import ADD, SUM, a_header
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record import conform_header
from edgeflare.conform.record.conform_header import ConformHeader, specification_digest
from edgeflare.conform.record.conform_journal import ConformJournal, begin_journal, resume_journal
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import begin_list
from edgeflare.record.folder_lock import lock_folder
from edgeflare.record.json_types import plain_json


def test_a_header_is_read_back() -> None:
    header = a_header((ADD, SUM))
    request = replace(
        header.request, drawing="memo", graphs="also", time_limit_seconds=0.5, model="ab"
    )
    header = replace(header, request=request)
    again = msgspec.convert(json.loads(json.dumps(plain_json(header))), ConformHeader)
    assert again == header
    again.require_same(header, "run")
    # What changes no answer may differ.
    device = replace(header.device, name="board-2", governor="performance")
    header.require_same(replace(header, device=device, version="0.2.0"), "run")


def test_another_device_is_refused_and_what_it_has_is_named() -> None:
    begun = a_header()
    device: dict[str, Any]
    for device, said in (
        (
            {"delegate": "gpu"},
            "with a device with delegate None, and this is a device with delegate gpu",
        ),
        (
            {"cpu_features": ("asimd", "asimddp")},
            "a device whose processor has no others, and this is one whose processor has asimddp",
        ),
    ):
        with pytest.raises(UserError, match=said) as refused:
            begun.require_same(replace(begun, device=replace(begun.device, **device)), "out/run")
        assert "out/run was begun with" in str(refused.value)
        assert "begin another run with another --out" in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"cells": (ADD, SUM)}, "with --ops ADD --dtype int8, not ADD,SUM --dtype int8: repeat"),
        ({"graphs": "only"}, "with --graphs none, not"),
        ({"models": 97}, "with --models 96, not 97"),
        ({"models": None}, "with --models 96, not without --models"),
        ({"drawing": "memo"}, "with --draw uniform, not memo"),
        ({"model": "ab"}, "without --from, not with --from a model with the sha256 ab"),
    ],
)
def test_another_question_is_refused(request_: Mapping[str, Any], said: str) -> None:
    begun = a_header()
    other = replace(begun, request=replace(begun.request, **request_))
    with pytest.raises(UserError, match=said):
        begun.require_same(other, "run")
    with pytest.raises(UserError, match=r"other declarations .* those of edgeflare 0\.2\.0"):
        begun.require_same(replace(begun, specification="abd", version="0.2.0"), "run")


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (120.0, 120.0, ""),
        (120.0, 120.5, ""),
        (120.0, None, ""),
        (None, None, ""),
        (120.0, 90.5, "with --time-limit 120s, not 90.5s: .*, and a longer --time-limit if more"),
        (2e6, 60.0, "with --time-limit 2000000s, not 60s"),
        (None, 600.0, "without --time-limit, not with --time-limit 600s: repeat"),
    ],
)
def test_less_time_is_refused(was: float | None, now: float | None, said: str) -> None:
    begun = a_header()
    begun = replace(begun, request=replace(begun.request, time_limit_seconds=was))
    other = replace(begun, request=replace(begun.request, time_limit_seconds=now))
    with pytest.raises(UserError, match=said) if said else nullcontext():
        begun.require_same(other, "run")


def test_the_digest_is_that_of_the_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_operators()
    before = specification_digest()
    assert before == specification_digest()
    fewer = {name: one for name, one in known.items() if name != "ADD"}
    monkeypatch.setattr(conform_header, "known_operators", lambda: fewer)
    assert specification_digest() != before


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conform.db"


def test_rounds_are_read_back_as_they_were_kept(path: Path) -> None:
    journal = ConformJournal.create(path, {"seed": 3})
    assert journal.seconds() == 0
    journal.keep(0, "abc", [{"nodes": [None, []]}], 1.5)
    journal.note_seconds(2.0)
    journal.note_seconds(2.5)
    journal.close()
    again = ConformJournal.open(path)
    assert again.about() == {"seed": 3}
    assert again.kept(0) == ("abc", [{"nodes": [None, []]}])
    assert again.kept(1) is None
    assert (again.seconds(), again.seconds_of_rounds()) == (2.5, 1.5)
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


def _lasting(seconds: float) -> ConformHeader:
    header = a_header()
    return replace(header, request=replace(header.request, time_limit_seconds=seconds))


def test_a_run_that_was_made_longer_is_not_made_shorter_again(tmp_path: Path) -> None:
    begin_journal(tmp_path / "run", _lasting(60.0), overwrite=False).close()
    resume_journal(tmp_path / "run", _lasting(600.0)).close()
    document = tmp_path / "run" / "conform.json"
    write_atomically(document, b"the result of 600 seconds")
    with pytest.raises(UserError, match="with --time-limit 600s, not 60s: repeat"):
        resume_journal(tmp_path / "run", _lasting(60.0))
    assert document.read_text() == "the result of 600 seconds"
    journal = resume_journal(tmp_path / "run", _lasting(600.0))
    assert journal.header() == _lasting(600.0)
    assert not document.exists()
    journal.close()
    # A device of another name that is alike is noted, once.
    other = replace(_lasting(600.0), device=replace(a_header().device, name="board-2"))
    for _ in range(2):
        journal = resume_journal(tmp_path / "run", other)
        assert journal.devices() == ["board", "board-2"]
        journal.close()


def test_a_document_that_others_have_changed_is_refused_and_stays(tmp_path: Path) -> None:
    begin_journal(tmp_path / "run", _lasting(60.0), overwrite=False).close()
    document = tmp_path / "run" / "conform.json"
    document.write_text("the user's")
    with pytest.raises(UserError, match=r"conform\.json is not as edgeflare left it"):
        resume_journal(tmp_path / "run", _lasting(600.0))
    assert document.read_text() == "the user's"
    document.unlink()
    resume_journal(tmp_path / "run", _lasting(60.0)).close()


def test_a_limit_that_is_no_number_is_damage(tmp_path: Path) -> None:
    journal = begin_journal(tmp_path / "run", _lasting(60.0), overwrite=False)
    journal.note("request", {**plain_json(_lasting(60.0).request), "time_limit_seconds": "long"})
    journal.close()
    with pytest.raises(UserError, match=r"conform\.db is damaged"):
        resume_journal(tmp_path / "run", _lasting(60.0))
