"""The Pareto front of candidates: those that no other one betters in every respect."""

from __future__ import annotations

from collections.abc import Mapping


def pareto_front(points: Mapping[str, tuple[float, ...]]) -> list[str]:
    """Return the names of the points that no other point dominates, in order of their values.

    One point dominates another if none of its values is greater, and one is less.

    Args:
        points: by name, values of which smaller is better, as many for each point.

    """
    kept = (
        name
        for name, one in points.items()
        if not any(_dominates(other, one) for other in points.values())
    )
    return sorted(kept, key=lambda name: points[name])


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
