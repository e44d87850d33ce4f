"""What is told apart of commands that were typed after one that was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from killed_commands import ELSEWHERE, OUT, Typed, faults_of, kind_of_temporary, names_below


def typed(code: int = 0, out: str = OUT, said: str = "") -> Typed:
    return Typed(("merge", "--out", out), code, said, steps=1)


@pytest.mark.parametrize(
    ("said", "elsewhere", "faults"),
    [
        ([typed(2, said="edgeflare: name another folder"), typed()], False, []),
        ([typed(out=ELSEWHERE)], True, []),
        ([typed(out=ELSEWHERE)], False, ["another folder had to be named"]),
        ([typed(2, ELSEWHERE, "edgeflare: no")], False, ["stuck: edgeflare: no"]),
        ([typed(-11), typed()], False, ["exit code -11"]),
    ],
)
def test_another_folder_is_a_fault_where_the_first_is_ours(
    said: list[Typed], elsewhere: bool, faults: list[str]
) -> None:
    assert faults_of(said, elsewhere=elsewhere) == faults


def test_folders_are_compared_too(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert names_below(tmp_path) == {"empty/", "file"}


@pytest.mark.parametrize("start", ["edgeflare-", "edgeflare-scratch-"])
def test_kinds_of_temporary_folders_are_told_apart(start: str) -> None:
    assert kind_of_temporary(f"{start}ab_c0123") == start
