"""How near to its seed an input deviates, and the share of seeds that have one within a distance.

The share against the distance is a curve like that of robustness benchmarks: it tells compressed
models apart where nearly every seed leads to some finding. The peak signal-to-noise ratio is that
of the difference, PSNR = 20 log10(255 sqrt(n) / L2) in dB for n values of 8 bits: 30 dB are a root
mean square of 8.1 gray levels, 40 dB one of 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, log10, sqrt
from typing import Any

from edgeflare.errors import EdgeFlareError
from edgeflare.run.exact_interval import exact_interval
from edgeflare.run.journal_rows import TriggerRow
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory

LEVELS_DB = (20.0, 25.0, 30.0, 35.0, 40.0, 50.0)
"""Distances that the document and the tables give, in dB of PSNR."""

LEVELS_LINF = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""The same for the largest change of a value, in gray levels."""

AREA_DB = (10.0, 60.0)
"""Range of the area under the curve: from 81 gray levels of root mean square, just within the
default bound of a search, to a quarter of one."""

Steps = tuple[list[float], list[float]]
"""Distances in the order of nearness, and the share of all seeds that have an input as near."""

Entry = Mapping[str, Any]
"""A finding, or a seed that deviates itself, as the document has it."""


def nearness_of(entries: Sequence[Entry], seeds: int) -> dict[str, Any]:
    """Return the part of a document about distances.

    Args:
        entries: verified findings and seeds that deviate themselves; the latter lie at distance 0.
        seeds: all seeds of the run, those without a finding included.

    """
    psnrs = [psnr_of(entry) for entry in entries]
    known = [value for value in psnrs if value is not None]
    return {
        "psnr": [_share("at_least", level, _at_least(known, level), seeds) for level in LEVELS_DB],
        "linf": [
            _share("at_most", level, _at_most(entries, level), seeds) for level in LEVELS_LINF
        ],
        "area": area(known, seeds),
    }


def psnr_steps(document: Mapping[str, Any]) -> Steps:
    """Return the curve of a run against PSNR: from the nearest input on, and the share so far."""
    known = [value for entry in _entries(document) if (value := psnr_of(entry)) is not None]
    return _steps(sorted(known, reverse=True), document)


def linf_steps(document: Mapping[str, Any]) -> Steps:
    """Return the curve of a run against the largest change of a value, in gray levels."""
    return _steps(sorted(entry["distortion"]["linf"] for entry in _entries(document)), document)


def psnr(l2: float, values: int) -> float:
    """Return the PSNR in dB of a change: infinite for none.

    Args:
        l2: Euclidean length of the change, in gray levels.
        values: number of values of the image.

    """
    return inf if l2 == 0.0 else 20.0 * log10(255.0 * sqrt(values) / l2)


def psnr_of(entry: Entry) -> float | None:
    """Return an entry's PSNR in dB: infinite for a seed that deviates itself, None if unknown."""
    if entry["distortion"]["l2"] == 0.0:
        return inf
    value: float | None = entry.get("psnr")
    return value


def area(psnrs: Iterable[float], seeds: int) -> float:
    """Return the area under the curve of shares against PSNR, from 0 to 1; less is better.

    It is the mean of `rise` over all seeds; 0 for those without a finding.
    """
    return sum(map(rise, psnrs)) / max(1, seeds)


def rise(value: float) -> float:
    """Return the share of the range of PSNR over which a seed counts, given its nearest input."""
    low, high = AREA_DB
    return min(max((value - low) / (high - low), 0.0), 1.0)


def in_lines(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return to read what counts, and the share of seeds within distances; none of older runs."""
    if "nearness" not in document:
        return []
    seeds = max(1, document["totals"]["seeds"])
    counted = sum(map(counts, _entries(document)))
    low, high = exact_interval(counted, seeds)
    shares = ", ".join(
        f"{one['at_least']:g} dB {one['share']:.0%}" for one in document["nearness"]["psnr"]
    )
    return [
        (
            _what_counts(document["plan"]),
            f"{counted:,} of {seeds:,} seeds ({counted / seeds:.1%}, 95 % interval {low:.1%} to "
            f"{high:.1%})",
        ),
        ("seeds within a PSNR of", f"{shares}; area {document['nearness']['area']:.3f}"),
    ]


def counts(entry: Entry) -> bool:
    """Whether a deviation is as near and as strong as was asked for.

    A failure always counts, and so does a seed that deviates itself: it was neither strengthened
    nor shrunk.
    """
    if entry.get("within") is not False and entry.get("strong") is not False:
        return True
    return bool(entry["kind"] != "deviation" or entry["distortion"]["l2"] == 0.0)


def judged(entry: Entry, plan: Plan) -> dict[str, bool | None]:
    """Return whether an entry is near and strong enough to count; None where nothing was asked."""
    distance, confidence = psnr_of(entry), entry["strength"]
    return {
        "within": None if plan.within is None or distance is None else distance >= plan.within,
        "strong": (
            None
            if not plan.min_strength or confidence is None
            else bool(confidence >= plan.min_strength)
        ),
    }


def image_size(directory: RunDirectory, triggers: Iterable[TriggerRow]) -> int | None:
    """Return the number of values of a run's images, or None where none can be read."""
    for trigger in triggers:
        try:
            return int(directory.load_image(trigger.image).size)
        except EdgeFlareError:
            continue
    return None


def _what_counts(plan: Mapping[str, Any]) -> str:
    asked = []
    if plan.get("within") is not None:
        asked.append(f"within {plan['within']:g} dB")
    if plan.get("min_strength"):
        asked.append(f"strength from {plan['min_strength']:g}")
    return f"deviate {' and '.join(asked)}" if asked else "deviate at any distance"


def _entries(document: Mapping[str, Any]) -> list[Entry]:
    return [*document["deviating_seeds"], *document["findings"]]


def step_line(steps: Steps, begin: float, end: float) -> tuple[list[float], list[float]]:
    """Return the points of a curve to draw in steps, from one edge of a panel to the other."""
    distances, shares = steps
    least, most = sorted((begin, end))
    inside = [min(max(one, least), most) for one in distances]
    return [begin, *inside, end], [0.0, *shares, shares[-1] if shares else 0.0]


def _steps(distances: list[float], document: Mapping[str, Any]) -> Steps:
    seeds = max(1, document["totals"]["seeds"])
    return distances, [count / seeds for count in range(1, len(distances) + 1)]


def _at_least(psnrs: Iterable[float], level: float) -> int:
    return sum(value >= level for value in psnrs)


def _at_most(entries: Iterable[Entry], level: float) -> int:
    return sum(entry["distortion"]["linf"] <= level for entry in entries)


def _share(bound: str, level: float, count: int, seeds: int) -> dict[str, float | int]:
    return {bound: level, "seeds": count, "share": count / max(1, seeds)}
