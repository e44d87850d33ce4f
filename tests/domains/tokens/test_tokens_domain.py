from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.domains.domain_registry import decoder_of_file, find_domain
from edgeflare.domains.tokens.token_seeds import load_token_seeds
from edgeflare.domains.tokens.tokens_domain import TokensDomain
from edgeflare.errors import UserError
from edgeflare_operators import MutationOperator, operators

Ids = NDArray[np.int32]


@given(one=st.integers(0, 30).flatmap(lambda length: arrays(np.int32, length)))
def test_a_file_keeps_ids(one: Ids) -> None:
    data = TokensDomain.encode_file(one)
    kept = TokensDomain.decode_file(data)
    assert kept is not None
    assert kept.dtype == np.int32
    assert np.array_equal(kept, one)


@pytest.mark.parametrize(
    "data",
    [b"", b"[1, 2", b"{}", b"3", b"[1.5]", b"[true]", b'["a"]', b"[2147483648]", b"[" * 99_999],
)
def test_a_file_of_something_else_is_none(data: bytes) -> None:
    assert TokensDomain.decode_file(data) is None


def test_a_file_of_a_seed_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text("[1, 2]")
    assert load_token_seeds(tmp_path, 3, 2).inputs.tolist() == [[1, 2]]
    with file.open("r+b") as endless:
        endless.truncate(2**30)
    with pytest.raises(UserError, match="is larger than 128 MiB"):
        load_token_seeds(tmp_path, 3, 2)


def test_a_stored_file_is_read_without_its_pair() -> None:
    kept = decoder_of_file("findings/000001.tokens.json")(b"[7, 0, 100000]")
    assert kept is not None
    assert kept.tolist() == [7, 0, 100_000]
    assert TokensDomain.count_near([TokensDomain.fingerprint(kept)]) == 0


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
