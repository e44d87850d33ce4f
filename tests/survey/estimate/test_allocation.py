"""How the next draws are shared out among the strata."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.estimate.allocation import FLOOR, falling_rates, first_shares, next_shares
from edgeflare.survey.estimate.strata import Strata, strata_of


def _strata(items: int) -> Strata:
    none = np.zeros(items, dtype=bool)
    return strata_of(np.arange(items, dtype=np.float64), none, none)


@given(st.integers(200, 5000), st.data())
def test_shares_add_up_and_leave_out_what_is_exhausted(items: int, data: st.DataObject) -> None:
    strata = _strata(items)
    asked = np.asarray([data.draw(st.integers(0, size)) for size in strata.sizes.tolist()])
    surprises = np.asarray([data.draw(st.integers(0, count)) for count in asked.tolist()])
    if (asked == strata.sizes).all():
        return
    shares = next_shares(strata, asked, surprises, 100)
    assert np.isclose(shares.sum(), 1.0)
    assert (shares[asked == strata.sizes] == 0.0).all()
    assert (shares[asked < strata.sizes] > 0.0).all()


def test_a_stratum_without_surprises_keeps_half_of_the_floor_by_its_items() -> None:
    strata = _strata(4096)
    asked = np.full(strata.count, 60)
    surprises = np.asarray([30, *[0] * (strata.count - 1)])
    shares = next_shares(strata, asked, surprises, 100)
    left = strata.sizes - asked
    assert (shares >= 0.5 * FLOOR * left / left.sum()).all()
    assert shares[0] > 0.0


def test_strata_in_which_more_is_seen_get_more_of_the_draws() -> None:
    strata = _strata(4096)
    asked = np.full(strata.count, 30)
    quiet = next_shares(strata, asked, np.zeros_like(asked), 100)
    surprises = np.zeros_like(asked)
    surprises[4] = 15
    shares = next_shares(strata, asked, surprises, 100)
    assert shares[4] > quiet[4]
    assert shares[6] < quiet[6]


def test_rates_fall_with_the_margin_within_a_block_only() -> None:
    asked = np.full(5, 50)
    rates = falling_rates(asked, np.asarray([1, 9, 4, 0, 20]), ((0, 1, 2), (3, 4)))
    assert rates[0] == rates[1]  # pooled, since the second had more than the first
    assert rates[1] > rates[2]
    assert rates[3] == rates[4]
    assert (rates > 0.0).all()


def test_the_first_shares_go_by_the_root_of_the_items() -> None:
    strata = _strata(4096)
    shares = first_shares(strata)
    assert np.isclose(shares.sum(), 1.0)
    assert np.isclose(shares[-1] / shares[0], np.sqrt(2048 / 64))
