"""The files of a folder that are seeds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeflare.domains.seed_files import seed_files
from edgeflare.errors import UserError


def test_links_are_what_they_lead_to_and_those_that_lead_nowhere_are_left_out(
    tmp_path: Path,
) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.mkdir()
    outer.mkdir()
    (outer / "a.png").touch()
    (outer / "a.txt").touch()
    for name, target in (
        ("itself.png", "itself.png"),
        ("gone.png", "nothing"),
        ("long.png", "x" * 300),
        ("b.png", "../outer/a.png"),
    ):
        (inner / name).symlink_to(target)
    assert seed_files(inner, {".png"}) == [inner / "b.png"]
    assert seed_files(tmp_path, {".png"}) == [inner / "b.png", outer / "a.png"]


def test_folders_within_a_folder_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.png").touch()
    for name, target in (
        ("itself", "itself"),
        ("gone", "nothing"),
        ("long", "x" * 300),
        ("linked", "../elsewhere"),
    ):
        (tmp_path / "seeds" / name).symlink_to(target)
    found = seed_files(tmp_path / "seeds", {".png"})
    assert found == [tmp_path / "seeds" / "linked" / "a.png"]


def test_a_folder_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(UserError, match="closed: cannot be read: Permission denied"):
        seed_files(tmp_path, {".png"})
