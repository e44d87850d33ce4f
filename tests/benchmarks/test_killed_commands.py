"""What counts as a fault of commands that were typed after one that was killed."""

from __future__ import annotations

import pytest

from killed_commands import ELSEWHERE, OUT, Typed, faults_of


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
