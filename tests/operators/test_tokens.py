from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare_operators import MutationOperator
from edgeflare_operators.tokens import TokenSets, drop, insert, replace, swap

Ids = NDArray[np.int32]

ALL = (drop, insert, replace, swap)
PADDING, BEGIN = 0, 1
SETS = TokenSets((np.array([2, 3, 4], np.int32), np.array([4, 5, 6, 7], np.int32)), PADDING)
UNPADDED = TokenSets(SETS.sets)
SEEDS = st.integers(0, 2**32)

texts = st.lists(st.integers(2, 7), max_size=12).flatmap(
    lambda ids: st.integers(0, 4).map(
        lambda padded: np.array([BEGIN, *ids, *[PADDING] * padded], np.int32)
    )
)


def edited(op: MutationOperator, text: Ids, seed: int, sets: TokenSets = SETS) -> list[int]:
    """Return what an operator makes of a text, with these sets."""
    apply = partial(op.apply, sets=sets)  # type: ignore[call-arg]
    mutant = MutationOperator(op.name, op.domain, apply)(text, np.random.default_rng(seed))
    ids: list[int] = mutant.tolist()
    return ids


def differing(text: Ids, mutant: list[int]) -> list[int]:
    return [int(at) for at in np.flatnonzero(text != mutant)]


@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
@given(one=st.integers(1, 20).flatmap(lambda length: arrays(np.int32, length)), seed=SEEDS)
def test_without_sets_the_ids_of_the_input_are_exchangeable(
    op: MutationOperator, one: Ids, seed: int
) -> None:
    mutant = op(one, np.random.default_rng(seed))
    assert set(mutant.tolist()) <= set(one.tolist())


@pytest.mark.parametrize("sets", [SETS, UNPADDED], ids=["padded", "unpadded"])
@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
@given(text=texts, seed=SEEDS)
def test_ids_in_no_set_are_neither_put_in_nor_moved_before_others(
    op: MutationOperator, sets: TokenSets, text: Ids, seed: int
) -> None:
    mutant = edited(op, text, seed, sets)
    assert mutant[0] == BEGIN
    assert mutant.count(BEGIN) == 1
    if sets.padding is None:
        assert mutant.count(PADDING) == np.count_nonzero(text == PADDING)


@given(text=texts, seed=SEEDS)
def test_replace_stays_within_a_set_of_the_id(text: Ids, seed: int) -> None:
    mutant = edited(replace, text, seed)
    places = differing(text, mutant)
    assert len(places) <= max(1, len(text) // 10)
    assert bool(places) == bool(np.isin(text, range(2, 8)).any())
    for place in places:
        assert any({int(text[place]), mutant[place]} <= set(ids.tolist()) for ids in SETS.sets)


@given(text=texts, seed=SEEDS)
def test_swap_exchanges_two_neighbours(text: Ids, seed: int) -> None:
    mutant = edited(swap, text, seed)
    places = differing(text, mutant)
    assert Counter(mutant) == Counter(text.tolist())
    assert places in ([], [*places[:1], places[0] + 1] if places else [])


@given(text=texts, seed=SEEDS)
def test_drop_leaves_one_out_and_pads_the_end(text: Ids, seed: int) -> None:
    mutant = edited(drop, text, seed)
    words = [one for one in text.tolist() if one != PADDING]
    left = [one for one in mutant if one != PADDING]
    if len(words) == 1:  # the begin alone
        assert mutant == text.tolist()
    else:
        assert left in [words[:at] + words[at + 1 :] for at in range(1, len(words))]
        assert mutant == left + [PADDING] * (len(text) - len(left))


@given(text=texts, seed=SEEDS)
def test_insert_puts_one_in_and_takes_a_padding(text: Ids, seed: int) -> None:
    mutant = edited(insert, text, seed)
    words = [one for one in text.tolist() if one != PADDING]
    grown = [one for one in mutant if one != PADDING]
    if len(words) == 1:
        assert mutant == text.tolist()
    else:
        whole = [*words, None] if len(words) < len(text) else words
        assert len(grown) == len(whole)
        assert any(
            grown == (words[:at] + grown[at : at + 1] + words[at:])[: len(text)]
            for at in range(1, len(grown))
        )


@given(text=texts, seed=SEEDS)
def test_without_padding_the_number_of_words_stays(text: Ids, seed: int) -> None:
    for op in (drop, insert):
        mutant = edited(op, text, seed, UNPADDED)
        assert np.array_equal(np.isin(mutant, range(2, 8)), np.isin(text, range(2, 8)))


def test_a_text_without_exchangeable_ids_stays() -> None:
    text = np.array([BEGIN, PADDING, PADDING], np.int32)
    for op in ALL:
        assert edited(op, text, 0) == text.tolist()
