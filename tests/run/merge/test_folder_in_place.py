"""A run directory that takes the place of another once it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.run.merge import folder_in_place
from edgeflare.run.merge.folder_in_place import made_in_place_of
from edgeflare.run.run_lock import lock_run

Refusal = Callable[..., str]


def a_run(path: Path, content: str = "before") -> Path:
    """Make what is known as a run, with an input and a file of the user's."""
    (path / "findings").mkdir(parents=True)
    (path / "findings" / "000001.png").write_text(content)
    (path / "run.json").write_text(content)
    (path / "notes.txt").write_text("the user's")
    return path


def replace_run(out: Path) -> None:
    with made_in_place_of(out, overwrite=True) as made:
        (made / "seeds").mkdir()
        (made / "run.json").write_text("after")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_absent_place_and_an_empty_one_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "deep/absent"):
        replace_run(tmp_path / name)
        assert (tmp_path / name / "run.json").read_text() == "after"
    assert names(tmp_path) == ["deep", "empty"]
    assert names(tmp_path / "deep") == ["absent"]


def test_a_run_is_replaced_and_what_is_none_of_it_is_kept(tmp_path: Path) -> None:
    out = a_run(tmp_path / "out")
    replace_run(out)
    assert names(out) == ["notes.txt", "run.json", "seeds"]
    assert (out / "run.json").read_text() == "after"
    assert names(tmp_path) == ["out"]


def test_a_link_to_a_run_stays_a_link(tmp_path: Path) -> None:
    a_run(tmp_path / "disk" / "run")
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "run")
    replace_run(tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "disk" / "run" / "run.json").read_text() == "after"
    assert names(tmp_path / "disk") == ["run"]


def test_a_mounted_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount stands in: what is mounted cannot be renamed, and nothing goes beside it."""
    out = a_run(tmp_path / "out")
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) == str(out))
    monkeypatch.setattr(folder_in_place, "_take_place", lambda *_: pytest.fail("it was renamed"))
    replace_run(out)
    assert (out / "run.json").read_text() == "after"
    assert names(out) == ["notes.txt", "run.json", "seeds"]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, OSError])
def test_what_is_stopped_leaves_what_was_there(tmp_path: Path, raised: type[BaseException]) -> None:
    out = a_run(tmp_path / "out")

    def stop_half_way() -> None:
        with made_in_place_of(out, overwrite=True) as made:
            (made / "run.json").write_text("half")
            raise raised

    with pytest.raises(raised):
        stop_half_way()
    assert (out / "run.json").read_text() == "before"
    assert names(tmp_path) == ["out"]


def test_a_rename_that_fails_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = a_run(tmp_path / "out")
    rename, done = os.rename, list[Path]()

    def second_fails(source: Path, target: Path) -> None:
        done.append(target)
        if len(done) == 2:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(KeyboardInterrupt):
        replace_run(out)
    assert (out / "run.json").read_text() == "before"
    assert names(tmp_path) == ["out"]


def test_a_run_that_is_worked_on_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    out = a_run(tmp_path / "out")
    lock = lock_run(out)
    try:
        assert "is being worked on by another process" in refusal(replace_run, out)
    finally:
        os.close(lock)
    assert (out / "run.json").read_text() == "before"
