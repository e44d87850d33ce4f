from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.record.path_inside import path_inside

Refusal = Callable[..., str]


@pytest.mark.parametrize("name", ["", "a\0b", None, 3, ["a"]])
def test_what_is_no_name_is_refused(tmp_path: Path, name: object, refusal: Refusal) -> None:
    assert "expected a relative path" in refusal(path_inside, tmp_path, name)


@pytest.mark.parametrize("name", ["/etc/passwd", "..", "a/../../b", "../x", "link", "link/x"])
def test_what_lies_outside_is_refused(tmp_path: Path, name: str, refusal: Refusal) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    assert "is outside of it" in refusal(path_inside, tmp_path / "folder", name)


@pytest.mark.parametrize("name", ["a/b", "./a", "a\\b", ".", "..", "a/"])
def test_a_plain_name_leads_below_no_folder(tmp_path: Path, name: str, refusal: Refusal) -> None:
    assert "expected the plain name" in refusal(path_inside, tmp_path, name, single=True)


def test_a_name_is_a_path_below_the_folder(tmp_path: Path) -> None:
    assert path_inside(tmp_path, "a/b.png") == tmp_path / "a" / "b.png"
    assert path_inside(tmp_path, "unit-0001", single=True) == tmp_path / "unit-0001"
