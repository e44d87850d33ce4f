"""Texts that a model reads: how two are compared, and what each needs of the outputs."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.classification import softmax
from edgeflare.tasks.transcript.transcript_answer import TextLattice, TranscriptAnswer
from edgeflare.tasks.transcript.transcript_symbols import TranscriptSymbols
from edgeflare.tasks.transcript.transcript_task import TranscriptDecoder

Array = NDArray[np.float32]

CTC = TranscriptSymbols(("a", "b", "_"), "", 2)
ARGMAX = TranscriptSymbols(("a", "b", "c"), "", None)

logits = arrays(np.float32, (4, 3), elements=st.floats(-4, 4, width=16))
wider = arrays(np.float32, (6, 3), elements=st.floats(-4, 4, width=16))


def answer(outputs: Array, symbols: TranscriptSymbols = CTC) -> TranscriptAnswer:
    tensor = Tensor("steps", (1, *outputs.shape), "float32")
    decoder = TranscriptDecoder((tensor,), 0, symbols, "logits")
    (read,) = decoder.read(RawBatch(outputs[None]))
    assert isinstance(read, TranscriptAnswer)
    return read


def path(text: str, symbols: str = "ab_") -> Array:
    """Return logits that are 5 for the symbol of each step, and 0 for the others."""
    return np.array([[5.0 * (one == symbol) for symbol in symbols] for one in text], np.float32)


@given(wider, wider, st.sampled_from([CTC, ARGMAX]))
def test_texts_differ_where_a_word_does(
    first: Array, second: Array, symbols: TranscriptSymbols
) -> None:
    one, other = answer(first, symbols), answer(second, symbols)
    assert one.differs(other) == (one.words != other.words)
    strength = one.strength_against(other)
    assert strength is not None
    assert strength == pytest.approx(other.strength_against(one))
    assert 0.0 <= strength <= float(one.differs(other))
    if one.differs(other):
        assert one.kind_against(other) in {"word-substituted", "word-deleted", "word-inserted"}


@given(logits, logits)
def test_the_margin_is_below_zero_where_the_text_is_not_that_of_home(
    first: Array, second: Array
) -> None:
    one, home = answer(first), answer(second)
    margin = one.margin(home)
    assert margin <= 0.0 if one.differs(home) else margin >= 0.0
    assert (one.margin(one) == 0.0) == one.tied


@given(logits, logits, st.floats(0, 1), st.floats(0, 1))
def test_the_margin_changes_no_faster_than_the_outputs(
    first: Array, second: Array, here: float, there: float
) -> None:
    home = answer(first)
    one, other = (((1 - at) * first + at * second).astype(np.float32) for at in (here, there))
    apart = float(np.abs(one.astype(np.float64) - other).max())
    assert abs(answer(one).margin(home) - answer(other).margin(home)) <= 2 * apart + 1e-4


@given(logits, logits)
def test_a_deviation_in_one_step_is_as_strong_as_among_classes(first: Array, second: Array) -> None:
    one, other = answer(first[:1], ARGMAX), answer(second[:1], ARGMAX)
    p, q = (softmax(rows[:1].astype(np.float64))[0] for rows in (first, second))
    a, b = int(p.argmax()), int(q.argmax())
    assert one.strength_against(other) == pytest.approx(min(p[a] - p[b], q[b] - q[a]), abs=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("a_b_", "a_a_", "word-substituted"),
        ("a_b_", "a___", "word-deleted"),
        ("a___", "a_b_", "word-inserted"),
        ("a_b_", "b___", "word-deleted"),
    ],
)
def test_the_kind_is_that_of_the_first_word_that_differs(
    first: str, second: str, kind: str
) -> None:
    assert answer(path(first)).kind_against(answer(path(second))) == kind


def tied(rows: Array, step: int, symbol: int) -> bool:
    """Tell whether a text is tied once another symbol's output equals the largest of a step."""
    changed = rows.copy()
    changed[step, symbol] = changed[step].max()
    return answer(changed).tied


def test_a_tie_counts_where_another_choice_changes_the_text() -> None:
    rows = path("aa_b")
    assert not answer(rows).tied
    assert not tied(rows, 1, 2)  # "aa_b" or "a__b": both are "ab"
    assert not tied(rows, 2, 0)  # "aa_b" or "aaab"
    assert not tied(rows, 2, 1)  # "aa_b" or "aabb"
    assert tied(rows, 3, 2)  # "aa_b" or "aa__", which lacks b
    assert tied(rows, 1, 1)  # "aa_b" or "ab_b", which has b twice


def test_ties_count_that_change_the_text_together_alone() -> None:
    rows = path("_aa_")
    rows[1:3, 2] = 5.0
    assert answer(rows).tied
    assert not tied(path("_aa_"), 1, 2)


def test_steps_whose_choices_spell_the_same_text_make_no_difference() -> None:
    first, second = path("aa__b"), path("a___b")
    second[4] = (0.0, 1.0, 1.5)  # hardly a blank, so that b is missing
    second[1] = (0.9, -5.0, 1.0)  # hardly a blank too, but the text is the same with an "a"
    strength = answer(first).strength_against(answer(second))
    p = softmax(second[4:].astype(np.float64))[0]
    assert strength == pytest.approx(p[2] - p[1], abs=1e-6)


def test_of_several_words_the_one_that_differs_least_counts() -> None:
    first, second = path("a_b_"), path("b_a_")
    second[2] = (1.0, 0.9, 0.0)
    p = softmax(second[2:3].astype(np.float64))[0]
    strength = answer(first).strength_against(answer(second))
    assert strength == pytest.approx(p[0] - p[1], abs=1e-6)


@given(logits, logits)
def test_what_the_strategies_ask_is_defined(first: Array, second: Array) -> None:
    one, other = answer(first), answer(second)
    assert one.distance(other) == other.distance(one) >= 0.0
    assert one.distance(one) == 0.0
    assert (one.lead() == 0.0) == one.tied or one.lead() < 1e-12
    assert 0.0 <= one.certainty(2) <= one.certainty(3) <= 1.0
    assert one.state().shape == other.state().shape
    assert one.equals(one)
    assert one.equals(other) == np.array_equal(first, second)


def test_a_long_answer_has_a_short_state() -> None:
    long: Answer = answer(np.zeros((600, 3), np.float32))
    assert long.state().shape == (512,)


def test_the_text_of_a_target_is_right_word_for_word() -> None:
    words = TranscriptSymbols(("a", "b", "_", " "), " ", 2)
    tensor = Tensor("steps", (1, 5, 4), "float32")
    decoder = TranscriptDecoder((tensor,), 0, words, "logits")
    (read,) = decoder.read(RawBatch(path("ab ba", "ab_ ")[None]))
    assert not read.differs(decoder.target(np.array("ab  ba")))
    truth = decoder.target(np.array("ab ba b"))
    assert read.differs(truth)
    assert read.against_truth(truth) == pytest.approx(1 / 3)
    both = [truth, decoder.target(np.array("ab"))]
    assert TranscriptAnswer.pooled([read, read], both) == pytest.approx(2 / 4)
    assert TranscriptAnswer.pooled([read], [decoder.target(np.array(""))]) is None
    with pytest.raises(UserError, match="expected a text for each seed"):
        decoder.target(np.array([1, 2]))


def test_spaces_between_words_of_one_letter_are_no_words() -> None:
    assert TranscriptSymbols(("1", "2", ""), "", 2).words_of("1 2\n") == ("1", "2")
    assert TranscriptSymbols(("1", " ", ""), "", 2).words_of("1 1") == ("1", " ", "1")


SYMBOLS = {
    "ctc, each symbol a word": TranscriptSymbols(("a", "b", ""), "", 2),
    "ctc, words of symbols": TranscriptSymbols(("", "a", " "), " ", 0),
    "argmax, each symbol a word": TranscriptSymbols(("a", "b", "c"), "", None),
    "argmax, words of symbols": TranscriptSymbols(("a", " ", "b"), " ", None),
}
decodings = pytest.mark.parametrize("symbols", SYMBOLS.values(), ids=SYMBOLS)
lattice_outputs = arrays(
    np.int64, st.tuples(st.integers(1, 4), st.just(3)), elements=st.integers(0, 4)
)


def deficits_of(lattice_outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(lattice_outputs.max(axis=1, keepdims=True) - lattice_outputs, np.float64)


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
@given(lattice_outputs, lattice_outputs)
def test_what_a_text_needs_is_that_of_its_best_path(
    symbols: TranscriptSymbols, lattice_outputs: NDArray[np.int64], text: NDArray[np.int64]
) -> None:
    deficits, path = deficits_of(lattice_outputs), text.argmax(axis=1)
    words = symbols.words(symbols.spelling(path))
    wanted = needs(deficits, symbols).get(words, inf)
    assert lattice_of(path, symbols).need(deficits) == wanted


@decodings
@given(lattice_outputs)
def test_the_nearest_other_text_is_that_of_all_which_needs_least(
    symbols: TranscriptSymbols, lattice_outputs: NDArray[np.int64]
) -> None:
    deficits, path = deficits_of(lattice_outputs), lattice_outputs.argmax(axis=1)
    read = symbols.words(symbols.spelling(path))
    others = [need for words, need in needs(deficits, symbols).items() if words != read]
    lattice = lattice_of(path, symbols)
    assert lattice.need(deficits) == 0.0
    assert lattice.need_of_another(deficits) == min(others, default=inf)


def test_a_long_text_of_many_symbols_is_read() -> None:
    lattice_outputs = np.random.default_rng(0).normal(size=(400, 1000))
    symbols = TranscriptSymbols((*map(str, range(999)), ""), "", 999)
    deficits = lattice_outputs.max(axis=1, keepdims=True) - lattice_outputs
    lattice = lattice_of(lattice_outputs.argmax(axis=1), symbols)
    assert lattice.need(deficits) == 0.0
    second = np.sort(lattice_outputs, axis=1)[:, -2:]
    assert lattice.need_of_another(deficits) >= (second[:, 1] - second[:, 0]).min()
