"""The texts of the arms, with the words marked that differ between the compared arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from edgeflare.core.answer_view import TranscriptView
from edgeflare.report.entry_names import ARMS
from edgeflare.report.html.answered_input import AnsweredInput
from edgeflare.report.structured_answers import text_edits

WORDS = 400
"""Words of a text that a card shows."""

Mark = Literal["", "del", "ins"]
"""The HTML element that a word lies in; empty for a word of both texts."""


@dataclass(frozen=True, slots=True)
class MarkedWord:
    """A word of a text, and how it is marked."""

    text: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class TextRow:
    """The text of an arm.

    Attributes:
        arm: its name.
        words: None where the arm failed.
        more: how many words are left out.

    """

    arm: str
    words: tuple[MarkedWord, ...] | None
    more: int


@dataclass(frozen=True, slots=True)
class TextTable:
    """The texts of the arms.

    Attributes:
        head: of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger".
        separator: what stands between two words.
        rows: a text each, in the order of the arms.
        words: what the marks mean; empty where nothing is marked.

    """

    kind: ClassVar[str] = "texts"
    head: str
    what: str
    separator: str
    rows: tuple[TextRow, ...]
    words: str


def text_table(view: TranscriptView, answered: AnsweredInput) -> TextTable:
    """Return the texts of the arms, the words marked that only one of the compared arms has."""
    first, second = answered.compared
    edits = text_edits(view, answered.compared) or ()
    marked: dict[str, tuple[MarkedWord, ...]] = {}
    if any(edit.kind != "same" for edit in edits):
        marked[first] = tuple(
            MarkedWord(edit.first, "" if edit.kind == "same" else "del")
            for edit in edits
            if edit.kind != "inserted"
        )
        marked[second] = tuple(
            MarkedWord(edit.second, "" if edit.kind == "same" else "ins")
            for edit in edits
            if edit.kind != "deleted"
        )
    rows = []
    for arm in ARMS:
        if arm in view.words:
            words = view.words[arm]
            plain = None if words is None else tuple(MarkedWord(word, "") for word in words)
            shown = marked.get(arm, plain)
            more = max(0, len(shown or ()) - WORDS)
            rows.append(TextRow(arm, shown if shown is None else shown[:WORDS], more))
    count = sum(edit.kind != "same" for edit in edits)
    meaning = (
        f"edit distance {count}; struck out: words that {second} does not have; underlined: words "
        f"that {first} does not have"
    )
    return TextTable(
        view.head, answered.what, view.separator, tuple(rows), meaning if count else ""
    )
