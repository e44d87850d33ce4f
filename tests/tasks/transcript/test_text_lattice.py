from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.tasks.transcript.text_lattice import TextLattice
from edgeflare.tasks.transcript.transcript_symbols import TranscriptSymbols

SYMBOLS = {
    "ctc, each symbol a word": TranscriptSymbols(("a", "b", ""), "", 2),
    "ctc, words of symbols": TranscriptSymbols(("", "a", " "), " ", 0),
    "argmax, each symbol a word": TranscriptSymbols(("a", "b", "c"), "", None),
    "argmax, words of symbols": TranscriptSymbols(("a", " ", "b"), " ", None),
}
decodings = pytest.mark.parametrize("symbols", SYMBOLS.values(), ids=SYMBOLS)
outputs = arrays(np.int64, st.tuples(st.integers(1, 4), st.just(3)), elements=st.integers(0, 4))


def deficits_of(outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(outputs.max(axis=1, keepdims=True) - outputs, np.float64)


def needs(
    deficits: NDArray[np.float64], symbols: TranscriptSymbols
) -> dict[tuple[str, ...], float]:
    """Return what each text needs that any path spells, by trying them all."""
    least: dict[tuple[str, ...], float] = {}
    for path in product(range(deficits.shape[1]), repeat=len(deficits)):
        words = symbols.words(symbols.spelling(np.array(path)))
        need = max(deficits[step, symbol] for step, symbol in enumerate(path))
        least[words] = min(need, least.get(words, inf))
    return least


def lattice_of(path: NDArray[np.int64], symbols: TranscriptSymbols) -> TextLattice:
    return TextLattice(symbols.written(symbols.spelling(path)), symbols)


@decodings
@given(outputs, outputs)
def test_what_a_text_needs_is_that_of_its_best_path(
    symbols: TranscriptSymbols, outputs: NDArray[np.int64], text: NDArray[np.int64]
) -> None:
    deficits, path = deficits_of(outputs), text.argmax(axis=1)
    words = symbols.words(symbols.spelling(path))
    wanted = needs(deficits, symbols).get(words, inf)
    assert lattice_of(path, symbols).need(deficits) == wanted


@decodings
@given(outputs)
def test_the_nearest_other_text_is_that_of_all_which_needs_least(
    symbols: TranscriptSymbols, outputs: NDArray[np.int64]
) -> None:
    deficits, path = deficits_of(outputs), outputs.argmax(axis=1)
    read = symbols.words(symbols.spelling(path))
    others = [need for words, need in needs(deficits, symbols).items() if words != read]
    lattice = lattice_of(path, symbols)
    assert lattice.need(deficits) == 0.0
    assert lattice.need_of_another(deficits) == min(others, default=inf)


def test_a_long_text_of_many_symbols_is_read() -> None:
    outputs = np.random.default_rng(0).normal(size=(400, 1000))
    symbols = TranscriptSymbols((*map(str, range(999)), ""), "", 999)
    deficits = outputs.max(axis=1, keepdims=True) - outputs
    lattice = lattice_of(outputs.argmax(axis=1), symbols)
    assert lattice.need(deficits) == 0.0
    second = np.sort(outputs, axis=1)[:, -2:]
    assert lattice.need_of_another(deficits) >= (second[:, 1] - second[:, 0]).min()
