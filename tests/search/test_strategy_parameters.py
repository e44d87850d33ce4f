from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import SearchCase, linear_model
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.errors import UserError
from edgeflare.search.strategy import SearchGenerator, Start, Strategy
from edgeflare.search.strategy_parameters import (
    Parameter,
    Value,
    parameter,
    parameters_of,
    read_assignments,
)
from edgeflare.search.strategy_registry import find_strategy, strategies


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
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(assignment: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        read(assignment)
    assert "\n" not in str(caught.value)


def test_a_parameter_is_set_once() -> None:
    with pytest.raises(UserError, match="count is set twice"):
        read("count=2", "count=3")


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": True}, {"count": "8"}, {"share": 2}])
def test_what_python_sets_is_checked_too(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match="expected a"):
        Example(**wrong)  # type: ignore[arg-type]


def test_a_whole_number_is_a_number() -> None:
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


@pytest.mark.parametrize("name", strategies())
def test_each_parameter_of_a_built_in_strategy_is_documented(name: str) -> None:
    for one in find_strategy(name).parameters:
        assert len(one.description) > 20
        assert one.description.endswith(".")
        assert one.check(one.default) == one.default


_WEIGHTS = np.random.default_rng(7).normal(0.0, 1.0, (4, 36))
BENCH = SearchCase(
    np.random.default_rng(8).integers(256, size=(6, 6, 1), dtype=np.uint8),
    {
        Arm.ORIGINAL: linear_model(_WEIGHTS),
        Arm.TWIN: linear_model(_WEIGHTS, 0.05),
        Arm.DEVICE: linear_model(_WEIGHTS, 0.05),
    },
)


def values_of(one: Parameter) -> st.SearchStrategy[Value]:
    least = one.at_least if one.above is None else one.above
    most = one.at_most if one.at_most is not None else float(one.default) * 4 + 4
    if one.type is int:
        return st.integers(int(least or 0), int(most))
    exclude = one.above is not None
    return st.floats(least, most, exclude_min=exclude, allow_subnormal=False)


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
    drive = BENCH.drive(search, Goal(find), steps=60)
    assert drive.finding is not None or drive.inputs > 20
