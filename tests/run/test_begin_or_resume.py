from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import FOLDER, LIST, begin_list, list_as
from edgeflare.run.begin_or_resume import resume_run
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory


@pytest.mark.parametrize("header", [{"pair": {}}, {"pair": 3}, {"pair": {"fingerprint": "x"}}])
def test_a_header_that_no_run_wrote_is_damage_and_the_run_is_unlocked(
    tmp_path: Path, header: dict[str, Any]
) -> None:
    whole: dict[str, Any] = {
        "version": "0",
        "plan": {},
        "devices": [],
        "arms": {},
        "classes": [],
        "labels": None,
        "seeds": 1,
    }
    Journal.create(tmp_path / "run.db", {**whole, **header}).close()
    ours: Any = None  # has no pair to compare with, once theirs is one
    with (
        patch("edgeflare.run.run_header.Plan.from_json", return_value=None),
        pytest.raises(UserError, match=r"run\.db is damaged"),
    ):
        resume_run(tmp_path, ours)
    Journal.reopen(tmp_path / "run.db").close()


def test_a_document_that_others_have_changed_is_refused_before_the_run_goes_on(
    tmp_path: Path,
) -> None:
    directory, lock = RunDirectory.claim(tmp_path, overwrite=False)
    Journal.create(directory.journal, {"seeds": 1}, lock=lock).close()
    write_atomically(directory.document, b"{}")
    survey, ours = tmp_path / "survey.json", MagicMock()
    survey.write_text("the user's")
    module = "edgeflare.run.begin_or_resume"
    with patch(f"{module}.RunHeader"), patch(f"{module}.require_same"):
        with pytest.raises(UserError, match=r"survey\.json is not as edgeflare left it"):
            resume_run(tmp_path, ours, documents=["survey.json"])
        with closing(Journal.open(directory.journal)) as journal:
            assert "stopped_by" not in journal.about()
        assert directory.document.exists()
        survey.unlink()
        with patch(f"{module}.note_other_host"), patch(f"{module}.note_other_devices"):
            resume_run(tmp_path, ours, documents=["survey.json"])[1].close()
    assert not directory.document.exists()


@pytest.mark.parametrize("nested", [False, True])
def test_a_run_whose_list_is_lost_is_gone_on_with_without_its_old_document(
    tmp_path: Path, *, nested: bool
) -> None:
    begin_list(tmp_path, "matrix of kernel sets")
    list_as(tmp_path, "builtin", FOLDER)
    if not nested:
        (tmp_path / LIST).unlink()
    directory, lock = RunDirectory.claim(tmp_path / "builtin", overwrite=False)
    Journal.create(directory.journal, {"seeds": 1}, lock=lock).close()
    write_atomically(directory.document, b"{}")
    (directory.path / LIST).unlink()
    module = "edgeflare.run.begin_or_resume"
    with (
        patch(f"{module}.RunHeader"),
        patch(f"{module}.require_same"),
        patch(f"{module}.note_other_host"),
        patch(f"{module}.note_other_devices"),
    ):
        resume_run(directory.path, MagicMock())[1].close()
    assert not directory.document.exists()
    for content in (b"{}", b"{ }"):
        write_atomically(directory.document, content)
