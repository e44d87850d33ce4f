from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.word_edits import Edit, word_edits

texts = st.lists(st.sampled_from("abc"), max_size=6)


def brute_force(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """Return the Levenshtein distance by its definition."""

    @cache
    def distance(a: int, b: int) -> int:
        if not a or not b:
            return a + b
        return min(
            distance(a - 1, b - 1) + (first[a - 1] != second[b - 1]),
            distance(a - 1, b) + 1,
            distance(a, b - 1) + 1,
        )

    return distance(len(first), len(second))


@given(texts, texts)
def test_the_edits_make_the_second_text_of_the_first(first: list[str], second: list[str]) -> None:
    edits = word_edits(first, second)
    assert [one.first for one in edits if one.kind != "inserted"] == first
    assert [one.second for one in edits if one.kind != "deleted"] == second
    for one in edits:
        assert (one.kind == "same") == (one.first == one.second)
        assert (one.kind == "inserted") == (one.first == "")
        assert (one.kind == "deleted") == (one.second == "")


@given(texts, texts)
def test_as_few_words_as_possible_are_edited(first: list[str], second: list[str]) -> None:
    fewest = brute_force(tuple(first), tuple(second))
    for one, other in ((first, second), (second, first)):
        assert sum(edit.kind != "same" for edit in word_edits(one, other)) == fewest


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [
        ("", "", []),
        ("ab", "ab", [Edit("same", "a", "a"), Edit("same", "b", "b")]),
        ("ab", "ac", [Edit("same", "a", "a"), Edit("substituted", "b", "c")]),
        ("ab", "b", [Edit("deleted", "a", ""), Edit("same", "b", "b")]),
        ("b", "ab", [Edit("inserted", "", "a"), Edit("same", "b", "b")]),
        ("aa", "a", [Edit("deleted", "a", ""), Edit("same", "a", "a")]),
        ("a", "bc", [Edit("inserted", "", "b"), Edit("substituted", "a", "c")]),
    ],
)
def test_one_alignment_of_several_is_chosen(first: str, second: str, edits: list[Edit]) -> None:
    assert word_edits(first, second) == edits
