"""Texts of ids, and the space that a search moves in."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.domains.domain_registry import find_domain
from edgeflare.domains.tokens_domain import REPLACEMENT, TokensDomain, TokenSpace, load_token_seeds
from edgeflare.errors import UserError
from edgeflare_operators import MutationOperator, operators

Ids = NDArray[np.int32]


def test_a_file_of_a_seed_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text("[1, 2]")
    assert load_token_seeds(tmp_path, 3, 2).inputs.tolist() == [[1, 2]]
    with file.open("r+b") as endless:
        endless.truncate(2**30)
    with pytest.raises(UserError, match="is larger than 128 MiB"):
        load_token_seeds(tmp_path, 3, 2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"vocabulary": 1}, "vocabulary has to be 2 to 2147483647 ids, not 1"),
        ({"vocabulary": 9, "length": 0}, "length has to be 1 id or more, not 0"),
        ({"vocabulary": 9, "padding": 9}, r"padding and reserved: .* be 0 to 8, not \[9\]"),
        ({"vocabulary": 9, "reserved": [-1]}, r"ids have to be 0 to 8, not \[-1\]"),
        ({"vocabulary": 9, "swap_sets": [[1, 2], [3, 10]]}, r"swap set 2: .* not \[10\]"),
        ({"vocabulary": 9, "swap_sets": [[1, 1]]}, "swap set 1 has to have two different ids"),
        ({"vocabulary": 9, "padding": 1, "swap_sets": [[1, 2]]}, r"reserved id, \[1\]: take it"),
        ({"vocabulary": 3, "padding": 0, "reserved": [1]}, "leave fewer than two of 3 ids"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        TokensDomain(**settings)
    assert "\n" not in str(caught.value)


def test_the_vocabulary_is_needed() -> None:
    with pytest.raises(UserError, match="vocabulary is missing: add it"):
        find_domain("tokens")


def test_an_operator_without_sets_is_left_as_it_is() -> None:
    plain = MutationOperator("reverse", "tokens", lambda tokens, _rng: tokens[::-1].copy())
    assert TokensDomain(vocabulary=9).bound(plain) is plain


@pytest.mark.parametrize("name", ["replace", "insert"])
def test_ids_that_are_put_in_are_of_the_vocabulary_but_not_reserved(name: str) -> None:
    domain = TokensDomain(vocabulary=9, padding=0, reserved=[1, 2])
    mutate = domain.bound(*operators("tokens", [name]))
    seed, rng = np.array([1, 3, 3, 3, 2, 0, 0, 0], np.int32), np.random.default_rng(0)
    drawn = [mutate(seed, rng) for _ in range(200)]
    assert set(np.concatenate(drawn).tolist()) == set(range(9))
    for mutant in drawn:
        assert np.bincount(mutant, minlength=3)[1:3].tolist() == [1, 1]


def test_swap_sets_bound_what_replaces_an_id() -> None:
    domain = TokensDomain(vocabulary=9, swap_sets=[[3, 4], [5, 6, 7]])
    replace = domain.bound(*operators("tokens", ["replace"]))
    seed, rng = np.array([3, 5, 8], np.int32), np.random.default_rng(0)
    mutants = {tuple(replace(seed, rng).tolist()) for _ in range(100)}
    assert mutants == {(4, 5, 8), (3, 6, 8), (3, 7, 8)}


def test_no_difference_of_ids_is_bounded() -> None:
    domain = TokensDomain(vocabulary=9)
    assert domain.default_linf is None
    assert domain.default_rms is None


def test_near_duplicates_differ_in_few_ids() -> None:
    rng = np.random.default_rng(0)
    seeds = rng.integers(0, 50, (4, 40)).astype(np.int32)
    near = seeds[0].copy()
    near[[3, 30]] += 1
    far = seeds[1].copy()
    far[[1, 2, 3]] += 1
    assert TokensDomain.count_near([*seeds]) == 0
    assert TokensDomain.count_near([*seeds, near, far]) == 2
    assert TokensDomain.count_near([]) == 0


def test_nearness_counts_the_ids_that_stayed() -> None:
    domain = TokensDomain(vocabulary=10_000)
    seed = np.arange(100, dtype=np.int32)
    one, half = seed.copy(), seed.copy()
    one[3], half[:50] = 9_999, 0
    assert domain.nearness_db(one, seed) == pytest.approx(20.0)
    assert domain.nearness_db(half, seed) < 3.2
    assert domain.nearness_db(seed, seed) == np.inf


def test_ids_reach_the_model_to_the_last_digit() -> None:
    ids = np.array([[20_000_001, 3]], np.int32)
    encoder = TokensDomain(vocabulary=2**31 - 1).encoder(Tensor("ids", (1, 2), "int32"))
    assert encoder.encode(ids).tolist() == ids.tolist()


VOCABULARY = 7
SPACE = TokenSpace.of_vocabulary(VOCABULARY)


ids = arrays(np.int32, 12, elements=st.integers(0, VOCABULARY - 1))
shares = st.floats(0.0, 1.0)


def line(begin: Ids, end: Ids, share: float) -> NDArray[np.float64]:
    """Return the point of a line that a search asks the space about."""
    origin = SPACE.levels(begin)
    return origin + share * (SPACE.levels(end) - origin)


@given(one=ids, other=ids)
def test_levels_are_as_far_apart_as_the_ids(one: Ids, other: Ids) -> None:
    apart = np.linalg.norm(SPACE.levels(one) - SPACE.levels(other))
    differing = np.count_nonzero(one != other)
    assert SPACE.distance(one, other) == pytest.approx(apart)
    assert SPACE.distance(one, other) == pytest.approx(REPLACEMENT * np.sqrt(differing))


@given(one=ids, seed=st.integers(0, 1000))
def test_levels_of_an_input_are_that_input(one: Ids, seed: int) -> None:
    levels = SPACE.levels(one)
    assert np.array_equal(SPACE.nearest(levels), one)
    assert np.array_equal(SPACE.dithered(levels, np.random.default_rng(seed)), one)
    falls, rises = SPACE.limits(one)
    assert np.array_equal(rises - falls, np.full_like(levels, levels.max()))
    assert np.array_equal(levels + falls, np.zeros_like(levels))


@given(begin=ids, end=ids, share=shares)
def test_every_id_between_two_inputs_is_of_either(begin: Ids, end: Ids, share: float) -> None:
    middle = SPACE.between(begin, end, share)
    assert middle.dtype == np.int32
    assert ((middle == begin) | (middle == end)).all()
    assert np.array_equal(SPACE.between(begin, end, 0.0), begin)
    assert np.array_equal(SPACE.between(begin, end, 1.0), end)


@given(begin=ids, end=ids, places=st.lists(shares, min_size=2, max_size=2))
def test_a_position_that_was_replaced_stays_so_further_on(
    begin: Ids, end: Ids, places: list[float]
) -> None:
    early, late = (SPACE.between(begin, end, share) for share in sorted(places))
    assert (late[early != begin] == end[early != begin]).all()


@pytest.mark.slow
@given(begin=ids, end=ids)
def test_a_line_is_a_path_of_single_replacements(begin: Ids, end: Ids) -> None:
    path = [SPACE.between(begin, end, share) for share in np.linspace(0.0, 1.0, 2001)]
    steps = [np.count_nonzero(a != b) for a, b in pairwise(path)]
    assert max(steps) <= 1
    assert sum(steps) == np.count_nonzero(begin != end)


@given(begin=ids, end=ids, share=shares)
def test_what_is_nearest_to_a_point_of_a_line_lies_on_the_path(
    begin: Ids, end: Ids, share: float
) -> None:
    nearest = SPACE.nearest(line(begin, end, share))
    around = [SPACE.between(begin, end, s) for s in (share - 1e-9, share, share + 1e-9)]
    assert any(np.array_equal(nearest, one) for one in around)


def test_bisection_down_to_a_level_tells_256_replacements_apart() -> None:
    space = TokenSpace.of_vocabulary(2)
    begin, end = np.zeros(256, np.int32), np.ones(256, np.int32)
    a_level = 1.0 / space.distance(begin, end)
    places = np.arange(0.0, 1.0, a_level).tolist()
    path = [space.between(begin, end, share) for share in places]
    steps = [np.count_nonzero(a != b) for a, b in pairwise(path)]
    assert max(steps) <= 2
    assert np.mean(steps) <= 1.0


def test_dithering_takes_each_id_as_often_as_its_weight_says() -> None:
    begin, end = np.zeros(2000, np.int32), np.full(2000, 5, np.int32)
    drawn = SPACE.dithered(line(begin, end, 0.3), np.random.default_rng(0))
    assert np.mean(drawn == 5) == pytest.approx(0.3, abs=0.03)
    assert set(drawn.tolist()) == {0, 5}


def test_weights_below_zero_count_as_none() -> None:
    levels = SPACE.levels(np.array([1, 2], np.int32)) - 20.0
    assert SPACE.nearest(levels).tolist() == [1, 2]
    assert SPACE.nearest(np.stack([levels, -levels])).shape == (2, 2)
    assert SPACE.nearest(line(np.array([1]), np.array([4]), 1.5)).tolist() == [4]


def test_a_cell_is_a_position() -> None:
    assert SPACE.cells((12,)) == (12,)
    assert SPACE.cells(SPACE.levels(np.zeros(12, np.int32)).shape) == (12,)
    assert SPACE.cell_mask((12,)) == (12,)
