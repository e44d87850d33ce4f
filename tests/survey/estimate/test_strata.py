"""Strata: every item in one, by prediction and doubt, then by margin."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.estimate.strata import LEAST, strata_of


@given(st.integers(1, 2000), st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_every_item_is_in_one_stratum_and_equal_margins_are_together(
    items: int, seed: int, values: int
) -> None:
    rng = np.random.default_rng(seed)
    margin = rng.integers(0, values, items).astype(np.float64)
    foretold, doubtful = rng.random(items) < 0.1, rng.random(items) < 0.1
    strata = strata_of(margin, foretold, doubtful)
    assert strata.sizes.sum() == items
    assert (strata.sizes > 0).all()
    for block in strata.blocks:
        inside = np.isin(strata.of, block)
        assert len(set(zip(foretold[inside], doubtful[inside], strict=True))) == 1
        for lower, upper in pairwise(block):
            assert margin[strata.of == lower].max() < margin[strata.of == upper].min()


def test_each_stratum_of_a_block_has_half_of_the_items_below_it() -> None:
    margin = np.arange(4096, dtype=np.float64)
    none = np.zeros(4096, dtype=bool)
    sizes = strata_of(margin, none, none).sizes
    assert sizes.tolist() == [64, 64, 128, 256, 512, 1024, 2048]
    assert sizes.min() == LEAST


def test_items_of_one_margin_are_one_stratum() -> None:
    none = np.zeros(500, dtype=bool)
    assert strata_of(np.zeros(500), none, none).count == 1
