"""Strategies by their names, their parameters, and the operators that they draw from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import SearchCase, linear_model
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.strategies.operator_pool import built_in_pool, domain_operators, pool_names
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_parameters import (
    Parameter,
    Value,
    parameter,
    parameters_of,
    read_assignments,
)
from edgeflare.strategies.strategy_registry import find_strategy, strategies
from edgeflare_operators import MutationOperator, operator, operator_registry, operators

NAMES = list(strategies())


def test_the_strategies_that_there_are() -> None:
    assert tuple(strategies()) == (
        *("boundary", "boundary-mh", "dflare", "dflare-d", "dflare-r", "dflare-published"),
        *("diffchaser", "donor", "climb", "random", "gradient", "deepxplore", "fgsm", "pgd"),
    )
    for name, entry in strategies().items():
        assert entry.name == name
        assert find_strategy(name) is entry
        assert entry.summary
        assert "\n" not in entry.summary


def test_an_unknown_strategy_is_answered_with_the_nearest_or_with_all() -> None:
    with pytest.raises(UserError, match="unknown strategy 'dflair'; did you mean 'dflare'"):
        find_strategy("dflair")
    with pytest.raises(UserError, match=", ".join(NAMES)):
        find_strategy("zzzz")


DRAWING = [name for name in NAMES if not strategies()[name].strategy.needs_gradients]
"""Those whose first queries are drawn; gradients lead to the same place, drawn or not."""

_WEIGHTS = np.random.default_rng(7).normal(0.0, 1.0, (4, 36))

SMALL_BENCH = SearchCase(
    np.random.default_rng(8).integers(256, size=(6, 6, 1), dtype=np.uint8),
    {
        Arm.ORIGINAL: linear_model(_WEIGHTS),
        Arm.TWIN: linear_model(_WEIGHTS, 0.05),
        Arm.DEVICE: linear_model(_WEIGHTS, 0.05),
    },
)

GOALS = st.builds(Goal, st.sampled_from(Find), st.booleans())
BOUNDS = st.builds(Bounds, st.none() | st.floats(1.0, 255.0), st.none() | st.floats(5.0, 2000.0))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow)
        if name in ("deepxplore", "gradient", "pgd")
        else name
        for name in NAMES
    ],
)
@given(rng_seed=st.integers(0, 2**32), goal=GOALS, bounds=BOUNDS)
@settings(max_examples=10, deadline=None)
def test_the_same_start_asks_the_same_within_the_bounds_and_ends_with_a_trigger(
    bench: SearchCase, name: str, rng_seed: int, goal: Goal, bounds: Bounds
) -> None:
    search = find_strategy(name).create({}).search
    bench = replace(bench if name in DRAWING else SMALL_BENCH, bounds=bounds)
    seed = bench.seed.copy()
    once = bench.drive(search, goal, rng_seed, steps=60)
    again = bench.drive(search, goal, rng_seed, steps=60)
    assert once.images == again.images
    assert all(bench.bounds.holds(query.input, seed) for query in once.queries)
    assert np.array_equal(bench.seed, seed)
    # Only where the device answered, and with it all that the goal needs, is there a verdict.
    assert all(set(goal.needed) <= outcome.answers.keys() for outcome in once.on_device)
    verdicts = [goal.met(outcome) for outcome in once.on_device]
    assert not any(verdicts[:-1])
    assert (once.finding is None) == (not any(verdicts))
    if once.finding is not None:
        assert once.finding.kind == verdicts[-1]
        assert once.finding.outcome == once.on_device[-1]
        assert once.finding.input.tobytes() == once.images[-1]


@pytest.mark.parametrize("name", DRAWING)
def test_another_generator_asks_something_else(bench: Any, name: str) -> None:
    search = find_strategy(name).create({}).search
    runs = [bench.drive(search, Goal(), rng_seed, steps=5).images for rng_seed in range(3)]
    assert runs[0] != runs[1] != runs[2]


@pytest.mark.parametrize("name", DRAWING)
def test_nothing_asked_is_changed_later(agreeing_bench: Any, name: str) -> None:
    drive = agreeing_bench.drive(find_strategy(name).create({}).search, Goal(), steps=60)
    recomputed = [
        agreeing_bench.evaluate(query.input, query.arms).answers for query in drive.queries
    ]
    for told, now in zip(drive.outcomes, recomputed, strict=True):
        for arm, answer in told.answers.items():
            assert np.array_equal(answer.probabilities, now[arm].probabilities)


@dataclass(frozen=True)
class Example(Strategy):
    """A strategy with a parameter of each type."""

    count: int = parameter(8, "How many.", at_least=1, at_most=64)
    share: float = parameter(0.25, "How much.", above=0.0, at_most=1.0)
    whole: bool = parameter(False, "Whether all.")
    order: str = parameter("random", "In which order.")
    plain: int = 3

    def search(self, start: Start) -> SearchGenerator:  # noqa: ARG002
        """Find nothing."""
        yield from ()
        return None


PARAMETERS = parameters_of(Example)


def read(*assignments: str) -> dict[str, Value]:
    return dict(read_assignments(assignments, "example", PARAMETERS))


def test_a_dataclass_s_fields_are_its_parameters() -> None:
    assert PARAMETERS[0] == Parameter("count", int, 8, "How many.", at_least=1, at_most=64)
    assert [one.name for one in PARAMETERS] == ["count", "share", "whole", "order", "plain"]
    assert PARAMETERS[1].expected == "a number, above 0, at most 1"


@given(
    st.integers(1, 64),
    st.floats(0.0, 1.0, exclude_min=True),
    st.booleans(),
    st.text(st.characters(min_codepoint=33, max_codepoint=126)),
)
def test_what_is_set_is_read_as_it_was(count: int, share: float, whole: bool, order: str) -> None:
    said = (f"count={count}", f"share={share!r}", f"whole={whole}".lower(), f"order={order}")
    values = read(*said)
    assert values == {"count": count, "share": share, "whole": whole, "order": order}
    assert Example(count, share, whole, order) == Example(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("count", r"--set count: expected NAME=VALUE; `edgeflare strategies example`"),
        ("cuont=3", r"strategy example has no parameter 'cuont' \(did you mean 'count'\?\)"),
        ("count=few", "parameter count=few: expected a whole number, at least 1, at most 64"),
        ("count=0", "parameter count=0: expected a whole number, at least 1, at most 64"),
        ("count=65", "at most 64"),
        ("count=1.5", "expected a whole number"),
        ("share=0", "parameter share=0.0: expected a number, above 0, at most 1"),
        ("share=nan", "expected a number"),
        ("share=inf", "expected a number"),
        ("whole=yes", "parameter whole=yes: expected true or false"),
        ("=3", "no parameter ''"),
        ("count=2 count=3", "count is set twice"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(assignment: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        read(*assignment.split())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": True}, {"count": "8"}, {"share": 2}])
def test_what_python_sets_is_checked_too(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match="expected a"):
        Example(**wrong)  # type: ignore[arg-type]
    assert type(Example(share=1).share) is float


@pytest.mark.parametrize(
    ("strategy", "wrong"),
    [
        ("boundary", {"first_leap": 9, "longest_leap": 8}),
        ("diffchaser", {"population": 4, "tournament_size": 3}),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    strategy: str, wrong: dict[str, Value]
) -> None:
    with pytest.raises(UserError, match="expected at most"):
        find_strategy(strategy).create(wrong)


@pytest.mark.parametrize(
    ("strategy", "wrong"),
    [
        ("boundary", {"max_steps": 2**53}),
        ("climb", {"longest_mutation": 10**9}),
        ("boundary", {"longest_leap": 10**9}),
        ("boundary", {"direction_mutations": 10**9}),
        ("gradient", {"roundings": 10**9}),
        ("fgsm", {"radius": 1e308}),
        ("pgd", {"radius": 1e308}),
    ],
)
def test_parameters_that_no_record_or_machine_holds_are_refused(
    strategy: str, wrong: dict[str, Value]
) -> None:
    with pytest.raises(UserError, match=r"expected .* at most"):
        find_strategy(strategy).create(wrong)


def values_of(one: Parameter) -> st.SearchStrategy[Value]:
    least = one.at_least if one.above is None else one.above
    most = one.at_most if one.at_most is not None else float(one.default) * 4 + 4
    if one.type is int:
        return st.integers(int(least or 0), int(most))
    exclude = one.above is not None
    return st.floats(least, most, exclude_min=exclude, allow_subnormal=False)


@pytest.mark.slow
@given(st.data(), st.sampled_from(Find))
@settings(max_examples=30, deadline=None)
def test_no_parameter_within_its_bounds_breaks_boundary_bisection(
    data: st.DataObject, find: Find
) -> None:
    known = {one.name: one for one in find_strategy("boundary").parameters}
    names = data.draw(st.sets(st.sampled_from(sorted(known)), max_size=4))
    names -= {"first_leap", "longest_leap"}  # these two bound each other
    values = {name: data.draw(values_of(known[name])) for name in names}
    search = find_strategy("boundary").create(values).search
    drive = SMALL_BENCH.drive(search, Goal(find), steps=60)
    assert drive.finding is not None or drive.inputs > 20


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
