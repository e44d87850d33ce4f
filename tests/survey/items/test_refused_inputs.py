from __future__ import annotations

import pytest

from edgeflare.errors import UserError
from edgeflare.survey.items.refused_inputs import speaking_of_inputs


@pytest.mark.parametrize(
    ("of_seeds", "of_inputs"),
    [
        ("there are no seeds at seeds: give", "--inputs: there are no inputs at seeds: give"),
        ("seeds seeds.npz: give each", "--inputs seeds.npz: give each"),
        ("seeds: a/seeds 1.png ends", "--inputs: a/seeds 1.png ends"),
        ("seeds x.npz: seed 5 has values", "--inputs x.npz: input 5 has values"),
    ],
)
def test_what_refuses_seeds_speaks_of_inputs(of_seeds: str, of_inputs: str) -> None:
    with pytest.raises(UserError) as caught, speaking_of_inputs(own_inputs=True):
        raise UserError(of_seeds)
    assert str(caught.value) == of_inputs


def test_what_refuses_the_seeds_of_a_pair_stays() -> None:
    with (
        pytest.raises(UserError, match=r"^seeds x\.npz"),
        speaking_of_inputs(own_inputs=False),
    ):
        raise UserError("seeds x.npz: there are none in it")
