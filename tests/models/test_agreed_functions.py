"""Functions that the user agreed to, and what a stranger's document could make of that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from edgeflare.models.agreed_functions import has_changed, is_agreed, keep_agreed

CODE = "def one(x):\n    return x\n\n\ndef other(x):\n    return x\n"


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "front.py").write_text(CODE)
    return f"{tmp_path / 'mine' / 'front.py'}:one"


def test_what_is_agreed_to_holds_for_this_function_and_this_code(function: str) -> None:
    assert not is_agreed(function)
    keep_agreed(function)
    assert is_agreed(function)
    assert is_agreed("mine/front.py:one")
    file = Path(function.rpartition(":")[0])
    file.write_text(f"{CODE}# changed\n")
    assert not is_agreed(function)
    assert has_changed(function)
    file.write_text(CODE)
    assert is_agreed(function)
    assert not has_changed(function)


def test_it_holds_for_nothing_else_that_a_stranger_names(function: str, tmp_path: Path) -> None:
    keep_agreed(function)
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "mine", theirs / "copied")
    os.symlink(tmp_path / "mine", theirs / "linked")
    os.mkfifo(theirs / "pipe.py")
    for named in (
        function.replace(":one", ":other"),
        f"{theirs / 'copied' / 'front.py'}:one",
        f"{theirs / 'linked' / 'front.py'}:one",
        f"{theirs / 'pipe.py'}:one",
        f"{theirs / 'absent.py'}:one",
        f"{tmp_path / 'mine'}.py:one",
        "front:one",
        "json:loads",
        function.rpartition(":")[0],
        "",
    ):
        assert not is_agreed(named)
        assert not has_changed(named)


def test_a_module_is_agreed_to_where_its_files_are(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "mine")
    keep_agreed("front:one")
    assert is_agreed("front:one")
    shutil.copytree(tmp_path / "mine", tmp_path / "theirs")
    monkeypatch.chdir(tmp_path / "theirs")
    assert not is_agreed("front:one")
    assert not is_agreed(function)
