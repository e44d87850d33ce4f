"""Tests of edgeflare.repair.candidate_plans."""

from __future__ import annotations

from typing import get_args

import pytest

from edgeflare.errors import UserError
from edgeflare.repair.candidate_plans import allows_shifts, candidate_plans
from edgeflare.repair.repair_candidate import Method, Target


def test_auto_tries_all_that_a_target_allows() -> None:
    every = candidate_plans("auto", "float", in_place=False)
    assert len({one.name for one in every}) == len(every)
    integers = candidate_plans("auto", "int8-only", in_place=False)
    assert {one.name for one in integers} < {one.name for one in every}
    assert all(one.integers for one in integers)
    in_place = candidate_plans("auto", "float", in_place=True)
    assert all(one.in_place for one in in_place)
    assert {one.method for one in in_place} == {"bias", "ranges", "rounding"}


def test_auto_searches_precision_only_in_the_place_of_weights_only() -> None:
    def searches(method: Method) -> list[Method | None]:
        plans = candidate_plans(method, "float", in_place=False)
        return [one.instead_of for one in plans if one.name == "precision-search"]

    assert searches("auto") == ["weights-only"]
    assert searches("precision") == [None]
    assert "precision-search" not in {
        one.name for one in candidate_plans("auto", "int8-only", in_place=False)
    }


@pytest.mark.parametrize("method", sorted(set(get_args(Method)) - {"auto", "shifts"}))
def test_each_method_has_candidates(method: str) -> None:
    (known,) = {one for one in get_args(Method) if one == method}
    plans = candidate_plans(known, "float", in_place=False)
    assert plans
    assert {one.method for one in plans} == {method}


@pytest.mark.parametrize(
    ("target", "in_place", "says"),
    [
        ("float", True, "rewrites the model: leave --in-place away"),
        ("int8-only", False, "computes in float, which --target int8-only cannot"),
    ],
)
@pytest.mark.parametrize("method", ["precision", "shifts"])
def test_limits_that_exclude_everything_say_the_nearest(
    method: Method, target: Target, in_place: bool, says: str
) -> None:
    with pytest.raises(UserError, match=f"^--method {method} {says}"):
        candidate_plans(method, target, in_place=in_place)
    assert not allows_shifts(method, target, in_place=in_place)


def test_shifts_are_allowed_where_operators_in_float_may_be_appended() -> None:
    assert candidate_plans("shifts", "float", in_place=False) == []
    for method in ("auto", "shifts"):
        assert allows_shifts(method, "float", in_place=False)
    assert not allows_shifts("ranges", "float", in_place=False)
    assert not allows_shifts("auto", "int8-only", in_place=False)
    assert not allows_shifts("auto", "float", in_place=True)
