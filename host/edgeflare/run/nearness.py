"""How near to its seed an input deviates, and the share of seeds that have one within a distance.

The share against the distance is a curve like that of robustness benchmarks: it tells compressed
models apart where nearly every seed leads to some finding. The peak signal-to-noise ratio is that
of the difference, PSNR = 20 log10(255 sqrt(n) / L2) in dB for n values of 8 bits: 30 dB are a root
mean square of 8.1 gray levels, 40 dB one of 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, log10, sqrt

from msgspec import UNSET

from edgeflare.errors import EdgeFlareError
from edgeflare.run.journal_rows import TriggerRow
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, LinfShare, Nearness, PsnrShare

LEVELS_DB = (20.0, 25.0, 30.0, 35.0, 40.0, 50.0)
"""Distances that the document and the tables give, in dB of PSNR."""

LEVELS_LINF = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""The same for the largest change of a value, in gray levels."""

AREA_DB = (10.0, 60.0)
"""Range of the area under the curve: from 81 gray levels of root mean square, just within the
default bound of a search, to a quarter of one."""


def nearness_of(entries: Sequence[Finding], seeds: int) -> Nearness:
    """Return the part of a document about distances.

    Args:
        entries: verified findings and seeds that deviate themselves; the latter lie at distance 0.
        seeds: all seeds of the run, those without a finding included.

    """
    known = [value for entry in entries if (value := psnr_of(entry)) is not None]
    most = max(1, seeds)
    near = [sum(value >= level for value in known) for level in LEVELS_DB]
    small = [sum(one.distortion.linf <= level for one in entries) for level in LEVELS_LINF]
    return Nearness(
        psnr=tuple(PsnrShare(level, n, n / most) for level, n in zip(LEVELS_DB, near, strict=True)),
        linf=tuple(
            LinfShare(level, n, n / most) for level, n in zip(LEVELS_LINF, small, strict=True)
        ),
        area=area(known, seeds),
    )


def psnr(l2: float, values: int) -> float:
    """Return the PSNR in dB of a change: infinite for none.

    Args:
        l2: Euclidean length of the change, in gray levels.
        values: number of values of the image.

    """
    return inf if l2 == 0.0 else 20.0 * log10(255.0 * sqrt(values) / l2)


def psnr_of(entry: Finding) -> float | None:
    """Return an entry's PSNR in dB: infinite for a seed that deviates itself, None if unknown."""
    if entry.distortion.l2 == 0.0:
        return inf
    return None if entry.psnr is UNSET else entry.psnr


def area(psnrs: Iterable[float], seeds: int) -> float:
    """Return the area under the curve of shares against PSNR, from 0 to 1; less is better.

    It is the mean of `rise` over all seeds; 0 for those without a finding.
    """
    return sum(map(rise, psnrs)) / max(1, seeds)


def rise(value: float) -> float:
    """Return the share of the range of PSNR over which a seed counts, given its nearest input."""
    low, high = AREA_DB
    return min(max((value - low) / (high - low), 0.0), 1.0)


def counts(entry: Finding) -> bool:
    """Whether a deviation is as near and as strong as was asked for.

    A failure always counts, and so does a seed that deviates itself: it was neither strengthened
    nor shrunk.
    """
    if entry.within is not False and entry.strong is not False:
        return True
    return entry.kind != "deviation" or entry.distortion.l2 == 0.0


def is_near(plan: Plan, distance: float | None) -> bool | None:
    """Whether a PSNR in dB is as near as a plan asks; None where it asks or is known nothing."""
    return None if plan.within is None or distance is None else distance >= plan.within


def is_strong(plan: Plan, strength: float | None) -> bool | None:
    """Whether a strength is what a plan asks at least; None where it asks or is known nothing."""
    return None if not plan.min_strength or strength is None else strength >= plan.min_strength


def image_size(directory: RunDirectory, triggers: Iterable[TriggerRow]) -> int | None:
    """Return the number of values of a run's images, or None where none can be read."""
    for trigger in triggers:
        try:
            return int(directory.load_input(trigger.image).size)
        except EdgeFlareError:
            continue
    return None
