"""Whatever command writes into a folder, another one that works there is not disturbed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflare.record.folder_lock import lock_folder

Call = Callable[..., Any]

COMMANDS = {
    "search": "search {example} --out {out}",
    "search anew": "search {example} --out {run} --overwrite",
    "search on": "search {example} {small} --out {run} --resume",
    "all kernel sets": "search {example} --device emulated-all --out {out}",
    "replay": "replay {other} --out {out}",
    "merge": "merge {other} --out {out}",
    "merge anew": "merge {other} --out {run} --overwrite",
    "explain": "explain {run}",
    "inspect": "inspect {run}",
    "bench": "bench {example} --out {out}",
    "rank": "rank {example} --compressed {biased} --out {out}",
    "repair": "repair {other} --out {out}",
    "survey": "survey {example} --out {out}",
    "conform": "conform --out {out} --time-limit 5",
}


def content(folder: Path) -> dict[str, bytes]:
    return {
        one.relative_to(folder).as_posix(): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file()
    }


@pytest.mark.slow
@pytest.mark.whitebox
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_folder_that_is_being_worked_on_stays_as_it_is(
    words: str,
    finished: Any,
    example: Path,
    biased: Path,
    small: tuple[str, ...],
    tmp_path: Path,
    call: Call,
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(finished.folder, run)
    out.mkdir()
    names = {"example": example, "biased": biased, "run": run, "out": out, "other": finished.folder}
    said = [
        one.format(**names)
        for word in words.split()
        for one in (small if word == "{small}" else (word,))
    ]
    locks = [lock_folder(folder) for folder in (run, out)]
    before = content(tmp_path)
    try:
        answer = call(*said)
    finally:
        for lock in locks:
            os.close(lock)
    assert answer.code == 2, answer.err
    assert "is being worked on by another process: wait until" in answer.err
    assert content(tmp_path) == before
