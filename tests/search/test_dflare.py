"""Each chain is compared, query by query, with Algorithms 1 and 2 written down a second time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driving import BeginSearch
from edgeflare.core.goal import Find, Goal
from edgeflare.domains.image.image_domain import TABLE_3
from edgeflare.search.dflare import DFlare, DFlareD, DFlareR
from edgeflare_operators import operators


def algorithm_1(
    bench: Any, goal: Goal, rng_seed: int, steps: int, *, delta: float, novel: bool, ranked: bool
) -> tuple[list[bytes], list[str]]:
    """The images that are asked about, and the operators of the accepted ones."""
    rng = np.random.default_rng(rng_seed)
    pool = list(operators(names=TABLE_3))
    tried, gained = dict.fromkeys(TABLE_3, 0), dict.fromkeys(TABLE_3, 0)
    seen: list[Any] = []

    def fitness(image: Any) -> float:
        f, g = (bench.models[arm](image) for arm in goal.compared)
        both = np.concatenate([f, g])
        o = all(np.sum((both - other) ** 2) > 0.5 for other in seen)
        seen.append(both)
        return float(abs(max(f) - max(g)) / delta + (o if novel else 0))

    x_max, h_max = bench.seed, fitness(bench.seed)
    op = pool[rng.integers(6)]
    asked: list[bytes] = []
    accepted: list[str] = []
    while True:
        tried[op.name] += 1
        x = op(x_max, rng)
        asked.append(x.tobytes())
        f, g = (bench.models[arm](x) for arm in goal.compared)
        if len(asked) == steps or f.argmax() != g.argmax():
            return asked, accepted
        h = fitness(x)
        if h >= h_max:
            x_max, h_max = x, h
            accepted.append(op.name)
            gained[op.name] += 1
        if not ranked:
            op = pool[rng.integers(6)]
            continue
        op_list = sorted(pool, key=lambda o: -gained[o.name] / (tried[o.name] + 1e-7))
        k_last = op_list.index(op)
        while True:
            op = op_list[rng.integers(6)]
            if rng.random() < (1 - 1 / 6) ** (op_list.index(op) - k_last):
                break


VARIANTS = [
    (DFlare().search, {"delta": 1e-3, "novel": True, "ranked": True}),
    (DFlareD().search, {"delta": 1.0, "novel": False, "ranked": True}),
    (DFlareR().search, {"delta": 1e-3, "novel": True, "ranked": False}),
]


@pytest.mark.parametrize("find", [Find.ANY, Find.KERNEL])
@pytest.mark.parametrize(("search", "variant"), VARIANTS, ids=["dflare", "dflare-d", "dflare-r"])
def test_asks_what_the_paper_asks(
    bench: Any, agreeing_bench: Any, search: BeginSearch, variant: dict[str, Any], find: Find
) -> None:
    goal = Goal(find, ties=True)
    for models in (bench, agreeing_bench):
        for rng_seed in range(4):
            drive = models.drive(search, goal, rng_seed, steps=150)
            asked, accepted = algorithm_1(models, goal, rng_seed, 150, **variant)
            assert drive.images == asked
            if drive.finding is not None:
                *trail, _last = drive.finding.operators
                assert trail == accepted


def test_the_variants_are_three_searches(agreeing_bench: Any) -> None:
    runs = [tuple(agreeing_bench.drive(search, Goal(), steps=100).images) for search, _ in VARIANTS]
    assert len(set(runs)) == 3


def test_finds_triggers(bench: Any) -> None:
    found = [bench.drive(DFlare().search, Goal(), seed, steps=3000).finding for seed in range(5)]
    assert sum(trigger is not None for trigger in found) >= 3
