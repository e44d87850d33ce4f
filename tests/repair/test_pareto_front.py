"""Tests of edgeflare.repair.pareto_front."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.repair.pareto_front import pareto_front

VALUES = st.tuples(*[st.integers(0, 4).map(float)] * 3)
POINTS = st.lists(VALUES, max_size=12).map(
    lambda values: {str(at): v for at, v in enumerate(values)}
)


def betters(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


@given(points=POINTS)
def test_a_point_is_on_the_front_where_no_other_one_betters_it(
    points: dict[str, tuple[float, ...]],
) -> None:
    front = pareto_front(points)
    for name, one in points.items():
        bettered = any(betters(other, one) for other in points.values())
        assert (name in front) is not bettered
    assert [points[name] for name in front] == sorted(points[name] for name in front)


@given(points=POINTS)
def test_each_point_beside_the_front_is_bettered_by_one_on_it(
    points: dict[str, tuple[float, ...]],
) -> None:
    front = pareto_front(points)
    for name in points.keys() - set(front):
        assert any(betters(points[on], points[name]) for on in front)
