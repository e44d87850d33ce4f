"""The symbols of a model of speech, and the words that a symbol for each step spells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Spelling = tuple[tuple[int, ...], ...]
"""The words of a text, each as the indices of its symbols, without separators between words."""


@dataclass(frozen=True)
class TranscriptSymbols:
    """What the model's outputs of one step stand for.

    Attributes:
        names: symbol of each output, in order; empty for the blank.
        separator: what stands between words; empty where each symbol is a word. A symbol is the
            separator, begins with it, or is without it.
        blank: the output of CTC's blank; None where each step writes its symbol (argmax).

    """

    names: tuple[str, ...]
    separator: str
    blank: int | None

    @cached_property
    def space(self) -> int | None:
        """The output that is the separator; None where there is none."""
        known = self.separator and self.separator in self.names
        return self.names.index(self.separator) if known else None

    @cached_property
    def _begins(self) -> tuple[bool, ...]:
        """Whether a symbol begins a word: each does where there is no separator."""
        return tuple(name.startswith(self.separator) for name in self.names)

    def spelling(self, path: NDArray[np.int64]) -> Spelling:
        """Return the words of a path.

        Under CTC repeated symbols are merged and blanks dropped, so that a symbol is written twice
        only where a blank lies between.

        Args:
            path: (steps,), the output chosen in each step.

        """
        if self.blank is not None:
            new = np.concatenate(([True], path[1:] != path[:-1]))
            path = path[new & (path != self.blank)]
        words: list[list[int]] = [[]]
        for symbol in path.tolist():
            if self._begins[symbol]:
                words.append([])
            if symbol != self.space:
                words[-1].append(symbol)
        return tuple(tuple(word) for word in words if word)

    def words(self, spelling: Spelling) -> tuple[str, ...]:
        """Return the words of a spelling."""
        texts = ("".join(self.names[symbol] for symbol in word) for word in spelling)
        return tuple(text.removeprefix(self.separator) for text in texts)

    def written(self, spelling: Sequence[Sequence[int]]) -> list[int]:
        """Return the symbols that write words, with separators where they need them."""
        symbols: list[int] = []
        for word in spelling:
            if symbols and self.space is not None and not self._begins[word[0]]:
                symbols.append(self.space)
            symbols.extend(word)
        return symbols

    @property
    def shown_separator(self) -> str:
        """What people see between words: a space where each symbol is a word of several letters."""
        return self.separator or (" " if any(len(name) > 1 for name in self.names) else "")

    def text(self, words: Sequence[str]) -> str:
        """Return words as people read them."""
        return self.shown_separator.join(words)

    def words_of(self, text: str) -> tuple[str, ...]:
        """Return the words of a text, between which there are separators or spaces."""
        if not self.shown_separator:
            return tuple(text if " " in self.names else "".join(text.split()))
        return tuple(text.replace(self.shown_separator, " ").split())
