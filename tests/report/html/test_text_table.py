"""Texts of the arms: the words that differ are marked, and nothing is lost."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.answer_view import TranscriptView
from edgeflare.report.html.answered_input import AnsweredInput
from edgeflare.report.html.text_table import WORDS, TextTable, text_table
from structured_views import TEXTS

TEXT = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=8).map(tuple)


def table(compared: tuple[str, str] = ("original", "device"), **words: object) -> TextTable:
    view = msgspec.convert({**TEXTS, "words": words or TEXTS["words"]}, TranscriptView)
    return text_table(view, AnsweredInput("trigger", compared, None, 1_000))


def marked(made: TextTable, arm: str, mark: str) -> list[str]:
    (row,) = (row for row in made.rows if row.arm == arm)
    return [word.text for word in row.words or () if word.mark == mark]


def test_words_that_only_one_compared_arm_has_are_marked() -> None:
    made = table()
    assert [row.arm for row in made.rows] == ["original", "twin", "device"]
    assert marked(made, "original", "del") == ["two"]
    assert marked(made, "device", "ins") == ["four", "five"]
    assert marked(made, "twin", "") == ["one", "two", "three"]
    assert made.words.startswith("edit distance 2; struck out: words that device does not have")


def test_a_search_for_kernels_marks_the_twin() -> None:
    made = table(("twin", "device"))
    assert marked(made, "twin", "del") == ["two"]
    assert marked(made, "original", "del") == []


def test_nothing_is_marked_where_texts_agree_or_an_arm_failed() -> None:
    for device in (("one",), None):
        made = table(original=("one",), device=device)
        assert made.words == ""
        assert marked(made, "original", "") == ["one"]
    assert made.rows[1].words is None


def test_long_texts_are_cut_off_and_what_is_left_out_is_counted() -> None:
    made = table(original=("a",) * (WORDS + 7), device=("a",))
    assert [row.more for row in made.rows] == [7, 0]
    assert len(made.rows[0].words or ()) == WORDS


@given(TEXT, TEXT)
def test_each_row_is_its_text_and_what_is_not_marked_is_common(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    made = table(original=first, device=second)
    texts = [tuple(word.text for word in row.words or ()) for row in made.rows]
    assert texts == [first, second]
    assert marked(made, "original", "") == marked(made, "device", "")
    assert bool(made.words) == (first != second)
