"""Which journals are gone on with, and what they say from then on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conforming import a_header
from edgeflare.conform.record.begun_journal import begin_journal, resume_journal
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically


def _lasting(seconds: float) -> ConformHeader:
    header = a_header()
    return replace(header, request=replace(header.request, seconds=seconds))


def test_a_run_that_was_made_longer_is_not_made_shorter_again(tmp_path: Path) -> None:
    begin_journal(tmp_path / "run", _lasting(60.0), overwrite=False).close()
    resume_journal(tmp_path / "run", _lasting(600.0)).close()
    document = tmp_path / "run" / "conform.json"
    write_atomically(document, b"the result of 600 seconds")
    with pytest.raises(UserError, match="type --time-limit 600s or longer"):
        resume_journal(tmp_path / "run", _lasting(60.0))
    assert document.read_text() == "the result of 600 seconds"
    journal = resume_journal(tmp_path / "run", _lasting(600.0))
    assert ConformHeader.from_json(journal.about()) == _lasting(600.0)
    assert not document.exists()
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
    journal.note_request({**_lasting(60.0).request.to_json(), "seconds": "long"})
    journal.close()
    with pytest.raises(UserError, match=r"conform\.db is damaged"):
        resume_journal(tmp_path / "run", _lasting(60.0))


def test_a_device_of_another_name_that_is_alike_goes_on_and_is_noted(tmp_path: Path) -> None:
    header = a_header()
    begin_journal(tmp_path / "run", header, overwrite=False).close()
    other = replace(header, device={**header.device, "name": "board-2"})
    for _ in range(2):
        journal = resume_journal(tmp_path / "run", other)
        assert journal.devices() == ["board", "board-2"]
        journal.close()
