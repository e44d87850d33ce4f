"""The share of a run's seeds that have a deviating input within a distance, as a curve to draw."""

from __future__ import annotations

from collections.abc import Iterable

from edgeflare.run.nearness import nearness_db
from edgeflare.run.run_document import RunDocument

Steps = tuple[list[float], list[float]]
"""Distances in the order of nearness, and the share of all seeds that have an input as near."""


LEVELS = 255.0
"""Levels of the largest change that are drawn at least: those of an image."""


def db_steps(document: RunDocument) -> Steps:
    """Return the curve of a run against nearness in dB: from the nearest on, the share so far."""
    known = [value for entry in document.deviations if (value := nearness_db(entry)) is not None]
    return _steps(sorted(known, reverse=True), document)


def linf_steps(document: RunDocument) -> Steps:
    """Return the curve of a run against the largest change of a value, in levels."""
    return _steps(sorted(entry.distortion.linf for entry in document.deviations), document)


def most_levels(documents: Iterable[RunDocument]) -> float:
    """Return up to where the curves of runs against the largest change are drawn."""
    return max(LEVELS, *(max(linf_steps(one)[0], default=0.0) for one in documents))


def step_line(steps: Steps, begin: float, end: float) -> tuple[list[float], list[float]]:
    """Return the points of a curve to draw in steps, from one edge of a panel to the other."""
    distances, shares = steps
    least, most = sorted((begin, end))
    inside = [min(max(one, least), most) for one in distances]
    return [begin, *inside, end], [0.0, *shares, shares[-1] if shares else 0.0]


def _steps(distances: list[float], document: RunDocument) -> Steps:
    seeds = max(1, document.totals.seeds)
    return distances, [count / seeds for count in range(1, len(distances) + 1)]
