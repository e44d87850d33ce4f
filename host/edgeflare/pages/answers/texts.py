"""Texts, and the words in which those of the compared arms differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import msgspec

from edgeflare.core.word_edits import Edit, word_edits
from edgeflare.pages.answers.answer_form import (
    ARMS,
    AnswerBlock,
    AnsweredInput,
    AnswerForm,
    AnswerWords,
    Cell,
    in_order,
)

LETTERS = 100_000
"""Characters of a text, with its separators: two hours of speech."""

MOST_ALIGNED = 250_000
"""Pairs of words of two texts that are aligned: 500 words each, about .1 s."""

WORDS = 400
"""Words of a text that a card shows."""

Mark = Literal["", "del", "ins"]
"""The HTML element that a word lies in; empty for a word of both texts."""


class TranscriptView(AnswerForm, frozen=True, tag_field="form", tag="transcript"):
    """The text of each arm.

    Attributes:
        separator: what stands between two words.
        words: words by arm, in their order; null where the arm failed.

    """

    task: ClassVar[str] = "transcript"
    spoken: ClassVar[AnswerWords] = AnswerWords(
        "give texts that differ in a word",
        strength="the least margin, on either side, among the frames that make the difference",
    )
    structured: ClassVar[bool] = True
    table_columns: ClassVar[tuple[str, ...]] = ("edits",)
    csv_columns: ClassVar[tuple[str, ...]] = (*(f"{arm}_text" for arm in ARMS), "edit_distance")

    separator: str
    words: Mapping[str, tuple[str, ...] | None]

    def wrong(self, place: str) -> Iterator[str]:
        """Yield texts that are longer than any."""
        for arm, words in self.words.items():
            letters = sum(len(word) + len(self.separator) for word in words or ())
            if letters > LETTERS:
                yield f"{place}.words.{arm} has {letters:,} characters, more than {LETTERS:,}"

    def decision(self, arm: str) -> str:
        """Return an arm's text."""
        return self.separator.join(self.words.get(arm) or ()) or "(no words)"

    def edits(self, compared: tuple[str, str]) -> int | None:
        """Return in how many words two texts differ; None where one failed, or they are long."""
        edits = self.aligned(compared)
        return None if edits is None else sum(edit.kind != "same" for edit in edits)

    def aligned(self, compared: tuple[str, str]) -> list[Edit] | None:
        """Return the edits between two arms' texts; None where one failed, or they are long."""
        first, second = (self.words.get(arm) for arm in compared)
        if first is None or second is None or len(first) * len(second) > MOST_ALIGNED:
            return None
        return word_edits(first, second)

    def csv_cells(self) -> Mapping[str, Cell]:
        """Return the texts; their edit distance is that of all heads."""
        return {
            f"{arm}_text": self.separator.join(words)
            for arm, words in self.words.items()
            if words is not None
        }

    def block(self, shown: AnsweredInput) -> TextTable:
        """Return the texts, the words marked that only one of the compared arms has."""
        first, second = shown.compared
        edits = self.aligned(shown.compared) or ()
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
        for arm in in_order(self.words):
            words = self.words[arm]
            plain = None if words is None else tuple(MarkedWord(word, "") for word in words)
            text = marked.get(arm, plain)
            more = max(0, len(text or ()) - WORDS)
            rows.append(TextRow(arm, text if text is None else text[:WORDS], more))
        count = sum(edit.kind != "same" for edit in edits)
        meaning = (
            f"edit distance {count}; struck out: words that {second} does not have; underlined: "
            f"words that {first} does not have"
        )
        return TextTable(
            self.head, shown.what, self.separator, tuple(rows), meaning if count else ""
        )


class MarkedWord(msgspec.Struct, frozen=True):
    """A word of a text, and how it is marked."""

    text: str
    mark: Mark


class TextRow(msgspec.Struct, frozen=True):
    """The text of an arm.

    Attributes:
        arm: name of the arm.
        words: words of the text; None where the arm failed.
        more: how many words are left out.

    """

    arm: str
    words: tuple[MarkedWord, ...] | None
    more: int


class TextTable(AnswerBlock, msgspec.Struct, frozen=True):
    """The texts of the arms.

    Attributes:
        head: output of the model; empty where it has only one.
        what: the input that they are of, "seed" or "trigger", or "input" of one as it came.
        separator: what stands between two words.
        rows: a text each, in the order of the arms.
        words: what the marks mean; empty where nothing is marked.

    """

    template: ClassVar[str] = "answers/texts.html.j2"
    below_player: ClassVar[bool] = True
    head: str
    what: str
    separator: str
    rows: tuple[TextRow, ...]
    words: str
