"""The bisection finds a place where the arms part, and asks no more often than it says."""

from __future__ import annotations

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.prefix_bisection import find_onset


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_before_an_onset_the_arms_are_together_and_behind_it_they_are_not(
    apart: list[bool],
) -> None:
    """Also where they part and meet again."""
    apart[-1] = True
    asked: list[int] = []

    def parted(position: int) -> bool:
        asked.append(position)
        return apart[position]

    onset = find_onset(len(apart), parted)
    assert apart[onset]
    assert onset == 0 or not apart[onset - 1]
    assert len(asked) <= ceil(log2(len(apart)))
    assert len(set(asked)) == len(asked)
    assert len(apart) - 1 not in asked


@given(st.integers(1, 500), st.data())
def test_where_they_never_meet_again_it_is_the_first(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    assert find_onset(count, lambda position: position >= first) == first
