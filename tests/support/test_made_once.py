"""What is slow to make is made once, by one of those who need it at the same time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from made_once import made_once


def test_those_who_need_it_at_the_same_time_get_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tmp_path_factory.getbasetemp()  # made at its first call, which is none for threads
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        time.sleep(0.1)
        (folder / "file").write_text("whole")

    with ThreadPoolExecutor(4) as workers:
        asked = [workers.submit(made_once, tmp_path_factory, "one", make) for _ in range(4)]
        folders = {one.result() for one in asked}
    assert len(made) == 1
    (folder,) = folders
    assert (folder / "file").read_text() == "whole"


def test_what_failed_is_made_anew(tmp_path_factory: pytest.TempPathFactory) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        made_once(tmp_path_factory, "failing", fail)
    folder = made_once(tmp_path_factory, "failing", lambda folder: (folder / "file").touch())
    assert [path.name for path in folder.iterdir()] == ["file"]
