"""How near to its seed an input deviates, and the share of seeds that have one within a distance.

The share against the distance is a curve like that of robustness benchmarks: it tells compressed
models apart where nearly every seed leads to some finding. Distances are in dB of the measure of
the pair's domain; that of images is the peak signal-to-noise ratio of the difference, PSNR =
20 log10(255 sqrt(n) / L2) for n values of 8 bits: 30 dB are a root mean square of 8.1 gray levels,
40 dB one of 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import msgspec

from edgeflare.core.answer import FAILURES
from edgeflare.core.domain import PSNR, NearnessMeasure
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import DbShare, Finding, LinfShare, Nearness, RunDocument

NEARNESS_KEY = "nearness"
"""The key of `about` under which the journal says by which measure distances are."""

STEPS_DB = (10.0, 15.0, 20.0, 25.0, 30.0, 40.0)
"""Distances that the document and the tables give, in dB from where the curve begins."""

LEVELS_LINF = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Largest changes of a value that the document and the tables give, in levels."""


def nearness_of(
    entries: Sequence[Finding], seeds: int, measure: NearnessMeasure = PSNR
) -> Nearness:
    """Return the part of a document about distances.

    Args:
        entries: verified findings and seeds that deviate themselves; the latter lie at distance 0.
        seeds: all seeds of the run, those without a finding included.
        measure: measure of the entries' distances.

    """
    known = [value for entry in entries if (value := nearness_db(entry)) is not None]
    most = max(1, seeds)
    shares = tuple(
        DbShare(level, near := sum(value >= level for value in known), near / most)
        for level in levels_db(measure)
    )
    small = [sum(entry.distortion.linf <= level for entry in entries) for level in LEVELS_LINF]
    is_psnr = measure == PSNR
    return Nearness(
        measure=None if is_psnr else measure.name,
        range_db=None if is_psnr else measure.curve,
        db=shares,
        linf=tuple(
            LinfShare(level, n, n / most) for level, n in zip(LEVELS_LINF, small, strict=True)
        ),
        area=area(known, seeds, measure.curve),
    )


def noted_measure(about: Mapping[str, object]) -> NearnessMeasure:
    """Return the measure that a journal notes; PSNR where it notes none."""
    if NEARNESS_KEY not in about:
        return PSNR
    try:
        return msgspec.convert(about[NEARNESS_KEY], NearnessMeasure)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the run's journal run.db is damaged (what it says of nearness: {error}): start anew"
            " with --overwrite"
        ) from None


def levels_db(measure: NearnessMeasure) -> tuple[float, ...]:
    """Return the distances that the document and the tables give, in dB."""
    return tuple(measure.curve[0] + step for step in STEPS_DB)


def curve_of(document: RunDocument) -> tuple[float, float]:
    """Return from where to where the curve of a run goes, in dB."""
    said = document.nearness.range_db
    return PSNR.curve if said is None else (said[0], said[1])


def measure_name(document: RunDocument) -> str:
    """Return the name of the measure of a run's distances."""
    return document.nearness.measure or PSNR.name


def nearness_db(entry: Finding) -> float | None:
    """Return an entry's nearness in dB: infinite if a seed deviates itself, None if unknown."""
    if entry.distortion.l2 == 0.0:
        return inf
    return entry.nearness_db


def area(values: Iterable[float], seeds: int, curve: tuple[float, float] = PSNR.curve) -> float:
    """Return the area under the curve of shares against nearness, from 0 to 1; less is better.

    It is the mean of `rise` over all seeds; 0 for those without a finding.
    """
    return sum(rise(value, curve) for value in values) / max(1, seeds)


def rise(value: float, curve: tuple[float, float] = PSNR.curve) -> float:
    """Return the share of the curve's range over which a seed counts, given its nearest input."""
    low, high = curve
    return min(max((value - low) / (high - low), 0.0), 1.0)


def counts(entry: Finding) -> bool:
    """Whether a deviation is as near and as strong as was asked for.

    A failure always counts, and so does a seed that deviates itself: it was neither strengthened
    nor shrunk.
    """
    if entry.within is not False and entry.strong is not False:
        return True
    return entry.kind in FAILURES or entry.distortion.l2 == 0.0


def is_near(plan: Plan, distance: float | None) -> bool | None:
    """Whether a nearness in dB is what a plan asks; None where it asks or is known nothing."""
    asked = plan.within_db
    return None if not isinstance(asked, (int, float)) or distance is None else distance >= asked


def is_strong(plan: Plan, strength: float | None) -> bool | None:
    """Whether a strength is what a plan asks at least; None where it asks or is known nothing."""
    return None if not plan.min_strength or strength is None else strength >= plan.min_strength
