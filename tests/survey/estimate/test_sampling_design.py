"""Drawing without replacement, with probabilities that are known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.estimate.sampling_design import FIRST_ROUND
from survey_populations import with_good_twin, with_useless_twin


@given(st.integers(30, 1500), st.integers(0, 2**32 - 1))
def test_every_item_is_drawn_once_until_none_is_left(items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    population = with_good_twin(0.05, items, rng)
    design = population.design(rng)
    assert population.asked(design, items).all()
    drawn = design.draws
    assert sorted(drawn.items.tolist()) == list(range(items))
    assert np.allclose(drawn.shares.sum(axis=1), 1.0)
    of = design.strata.of[drawn.items]
    assert (drawn.shares[np.arange(items), of] > 0.0).all()
    assert design.left == 0
    assert design.draw(5) == []


def test_the_same_generator_draws_the_same_items() -> None:
    population = with_good_twin(0.01, 5000, np.random.default_rng(1))
    one, two = (population.design(np.random.default_rng(7)) for _ in range(2))
    population.asked(one, 900)
    population.asked(two, 900)
    assert one.draws.items.tolist() == two.draws.items.tolist()


def test_a_round_is_half_of_what_was_drawn_and_depends_on_counts_alone() -> None:
    population = with_useless_twin(0.01, 5000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    sizes = []
    for _ in range(4):
        sizes.append(design.round_size)
        population.ask(design, design.round_size)
    assert sizes == [FIRST_ROUND, FIRST_ROUND, FIRST_ROUND, FIRST_ROUND * 3 // 2]


def test_items_near_a_tie_are_drawn_oftener_once_they_surprise() -> None:
    population = with_good_twin(0.02, 20_000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    asked = population.asked(design, 1500)
    near = population.margin < 0.1
    assert asked[near].mean() > 3 * asked[~near].mean()


def test_a_useless_twin_leaves_the_draws_nearly_in_proportion() -> None:
    population = with_useless_twin(0.05, 20_000, np.random.default_rng(1))
    design = population.design(np.random.default_rng(2))
    asked = population.asked(design, 3000)
    near = population.margin < np.quantile(population.margin, 0.5)
    assert 0.7 < asked[near].mean() / asked[~near].mean() < 1.6
