"""Where the device is asked."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.rare.shell_allocation import INSURANCE, shell_shares

SHELLS = st.lists(
    st.tuples(st.floats(1e-8, 1.0), st.integers(0, 60), st.floats(0.0, 1.0)), min_size=1, max_size=9
)


@given(SHELLS, st.booleans())
def test_every_shell_has_a_share_by_its_weight(
    shells: list[tuple[float, int, float]], told: bool
) -> None:
    weight = np.asarray([one[0] for one in shells])
    asked = np.asarray([one[1] for one in shells])
    surprises = np.asarray([round(one[1] * one[2]) for one in shells])
    foretold = np.zeros(len(shells), dtype=bool)
    foretold[-1] = told
    shares = shell_shares(weight, asked, surprises, foretold)
    assert np.isclose(shares.sum(), 1.0)
    assert (shares >= INSURANCE * weight / weight.sum() - 1e-12).all()


def test_more_is_asked_where_the_device_surprised() -> None:
    weight, asked = np.asarray([0.5, 0.25, 0.125, 0.125]), np.full(4, 25)
    none = np.zeros(4, dtype=bool)
    calm = shell_shares(weight, asked, np.asarray([0, 0, 0, 5]), none)
    odd = shell_shares(weight, asked, np.asarray([0, 5, 0, 5]), none)
    assert odd[1] > 2.0 * calm[1]


def test_what_is_foretold_needs_little_where_the_host_is_right() -> None:
    weight, asked = np.asarray([0.998, 0.001, 0.001]), np.full(3, 400)
    foretold = np.asarray([False, False, True])
    right = shell_shares(weight, asked, np.asarray([0, 40, 0]), foretold)
    wrong = shell_shares(weight, asked, np.asarray([0, 40, 200]), foretold)
    assert right[2] < 0.5 * right[1] < wrong[2]
