from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driving import SearchCase
from edgeflare.core.goal import Goal
from edgeflare.core.input import Input
from edgeflare.errors import UserError
from edgeflare.search.operator_pool import built_in_pool, domain_operators, pool_names
from edgeflare.search.strategy_registry import strategies
from edgeflare_operators import MutationOperator, operator, operator_registry, operators

BUILT_IN = tuple(operator.name for operator in built_in_pool("image"))


@pytest.fixture
def invert(monkeypatch: pytest.MonkeyPatch) -> MutationOperator:
    """An installed operator that is not built in."""
    operators()
    monkeypatch.setattr(operator_registry, "_registered", dict(operator_registry._registered))

    @operator("invert")
    def invert(image: Input, rng: np.random.Generator) -> Input:
        return 255 - image

    return invert


def test_a_pool_is_what_is_built_in_unless_told_otherwise(invert: MutationOperator) -> None:
    assert pool_names("image") == BUILT_IN
    assert invert not in built_in_pool("image")


def test_names_and_sets_of_names_make_a_pool_in_the_order_of_names(
    invert: MutationOperator,
) -> None:
    assert pool_names("image", ["pixel-change", "invert", "pixel-change"]) == (
        "invert",
        "pixel-change",
    )
    assert pool_names("image", ["invert", "built-in"]) == tuple(sorted((*BUILT_IN, "invert")))
    assert pool_names("image", ["all"]) == tuple(made.name for made in operators())


def test_an_unknown_operator_is_the_users_mistake() -> None:
    for look_up in (pool_names, domain_operators):
        with pytest.raises(UserError, match="did you mean median-blur"):
            look_up("image", ["median-blurr"])


@pytest.mark.parametrize("name", strategies())
def test_a_strategy_draws_from_the_pool_that_it_is_handed(
    name: str, agreeing_bench: SearchCase
) -> None:
    """Those that have operators of their own draw none of it."""
    drawn = []

    def scatter(image: Input, rng: np.random.Generator) -> Input:
        drawn.append(image)
        return rng.integers(256, size=image.shape, dtype=np.uint8)

    entry, pool = strategies()[name], [MutationOperator("scatter", "image", scatter)]
    drive = agreeing_bench.drive(
        lambda start: entry.strategy().search(replace(start, operators=pool)), Goal(), steps=20
    )
    assert drive.queries or entry.strategy.needs_gradients  # which query what they found alone
    assert bool(drawn) == entry.strategy.draws_from_pool
