"""Which seeds `--limit` and `--first` take, and the digest of all."""

from __future__ import annotations

import hashlib
import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.seeds import SeedChoice, Seeds, spread_order


def labelled() -> st.SearchStrategy[NDArray[np.int64]]:
    """Return labels of up to 30 classes, sorted or not, with up to 40 seeds of each."""
    classes = st.lists(st.integers(1, 40), min_size=2, max_size=30)

    def drawn(sizes: list[int], rng_seed: int) -> NDArray[np.int64]:
        labels = np.repeat(np.arange(len(sizes)), sizes)
        return np.random.default_rng(rng_seed).permutation(labels) if rng_seed else labels

    return st.builds(drawn, classes, st.integers(0, 5))


def test_the_digest_of_inputs_takes_no_copy_of_them() -> None:
    inputs = np.arange(2**20, dtype=np.float32).reshape(64, -1)
    seeds = Seeds(inputs, None, ())
    tracemalloc.start()
    digest = seeds.sha256
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert digest == hashlib.sha256(b"(64, 16384)" + inputs.tobytes()).hexdigest()
    assert taken < inputs.nbytes / 8


@given(labelled())
@settings(max_examples=15)
def test_each_label_has_its_share_and_a_larger_number_takes_what_a_smaller_one_does(
    labels: NDArray[np.int64],
) -> None:
    total, before = len(labels), set[int]()
    sizes = np.bincount(labels)
    for count in range(1, total + 1):
        places = SeedChoice(limit=count).places(total, labels)
        assert (np.diff(places) > 0).all()
        taken = set(places.tolist())
        assert len(taken) == count
        assert before <= taken
        before = taken
        shares = np.bincount(labels[places], minlength=len(sizes))
        assert (np.abs(shares - sizes * count / total) < 1.0).all()
        for label, share in enumerate(shares.tolist()):  # the first of it
            assert set(np.flatnonzero(labels == label)[:share].tolist()) <= taken
        assert set(spread_order(total, labels)[:count].tolist()) == taken


@given(st.integers(1, 400), st.data())
def test_without_labels_what_is_taken_is_spread_evenly(total: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, total))
    one_label = data.draw(st.sampled_from([None, 0, -1]))
    labels = None if one_label is None else np.full(total, one_label)
    places = SeedChoice(limit=count).places(total, labels)
    assert len(places) == count
    assert places[0] == 0
    gaps = np.diff([*places.tolist(), total])
    assert gaps.max() <= 2 * total / count + 1
    more = SeedChoice(limit=count + 1).places(total, labels)
    assert set(places.tolist()) <= set(more.tolist())


def test_what_is_unlabelled_has_its_share_too_spread_evenly() -> None:
    labels = np.array([0] * 50 + [-1] * 100 + [-7] * 50)
    places = SeedChoice(limit=20).places(200, labels)
    known, unknown = places[places < 50], places[places >= 50]
    assert known.tolist() == [0, 1, 2, 3, 4]
    assert np.diff(unknown).max() <= 20


def test_labels_of_one_seed_each_say_nothing_of_where_to_take_them() -> None:
    places = SeedChoice(limit=10).places(100, np.arange(100))
    assert np.diff([*places.tolist(), 100]).max() <= 20


def test_several_labels_for_each_seed_are_no_classes() -> None:
    several, none = np.zeros((10, 3), np.int64), SeedChoice(limit=4).places(10)
    assert SeedChoice(limit=4).places(10, several).tolist() == none.tolist()


def test_the_first_are_the_first_whatever_their_labels() -> None:
    assert SeedChoice(first=3).places(10, np.arange(10)[::-1]).tolist() == [0, 1, 2]
    assert SeedChoice(first=30).places(10).tolist() == list(range(10))
    assert SeedChoice(limit=30).places(10).tolist() == list(range(10))
