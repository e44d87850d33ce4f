from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from edgeflare.search.operator_pool import built_in_pool
from edgeflare.search.operator_selection import (
    AcceptanceCounts,
    MetropolisHastings,
    Uniform,
    draw_rank,
)

POOL = built_in_pool("image")
DRAWS = 20_000


@pytest.mark.parametrize("previous", [-1, 0, 3, 6])
def test_ranks_are_drawn_as_algorithm_2_accepts_them(previous: int) -> None:
    rng = np.random.default_rng(0)
    drawn = Counter(draw_rank(7, previous, rng) for _ in range(DRAWS))
    accepted = [min(1.0, (6 / 7) ** (rank - previous)) for rank in range(7)]
    for rank in range(7):
        assert drawn[rank] / DRAWS == pytest.approx(accepted[rank] / sum(accepted), abs=0.015)


def test_a_ranking_value_is_the_share_of_acceptances() -> None:
    counts = AcceptanceCounts(3)
    counts.selected[:], counts.accepted[:] = [4, 0, 2], [1, 0, 2]
    assert counts.values() == pytest.approx([0.25, 0.0, 1.0])


def test_the_first_operator_is_uniform() -> None:
    firsts = Counter(
        MetropolisHastings(POOL, np.random.default_rng(seed)).choose().name for seed in range(3500)
    )
    assert set(firsts) == {op.name for op in POOL}
    assert max(firsts.values()) < 600


def test_an_operator_that_pays_is_chosen_more_often() -> None:
    selection, chosen = MetropolisHastings(POOL, np.random.default_rng(0)), Counter[str]()
    for _ in range(4000):
        name = selection.choose().name
        chosen[name] += 1
        if name == "median-blur":
            selection.reward()
    assert chosen.most_common(1)[0][0] == "median-blur"


def test_equal_values_keep_the_order_of_the_pool() -> None:
    # Never rewarded, all values stay equal: the ranks are positions in the pool, whatever is tried.
    selection = MetropolisHastings(POOL, np.random.default_rng(0))
    positions = [POOL.index(selection.choose()) for _ in range(DRAWS)]
    rng = np.random.default_rng(0)
    expected = [int(rng.integers(7))]
    while len(expected) < DRAWS:
        expected.append(draw_rank(7, expected[-1], rng))
    assert positions == expected


def test_uniform_takes_no_notice_of_rewards() -> None:
    selection, chosen = Uniform(POOL, np.random.default_rng(0)), Counter[str]()
    for _ in range(7000):
        chosen[selection.choose().name] += 1
        selection.reward()
    assert len(chosen) == 7
    assert max(chosen.values()) < 1150
