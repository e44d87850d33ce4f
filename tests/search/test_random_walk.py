from __future__ import annotations

from typing import Any

import numpy as np

from edgeflare.core.goal import Goal
from edgeflare.search.random_walk import RandomWalk
from edgeflare_operators import built_in_operators


def test_every_mutant_is_the_next_parent(agreeing_bench: Any) -> None:
    drive = agreeing_bench.drive(RandomWalk().search, Goal(), rng_seed=3, steps=100)
    rng, pool, image = np.random.default_rng(3), built_in_operators(), agreeing_bench.seed
    for query in drive.queries:
        image = pool[rng.integers(len(pool))](image, rng)
        assert np.array_equal(query.input, image)


def test_names_every_operator_on_the_way(bench: Any) -> None:
    drive = bench.drive(RandomWalk().search, Goal(ties=True), steps=3000)
    assert drive.finding is not None
    assert len(drive.finding.operators) == len(drive.queries)
