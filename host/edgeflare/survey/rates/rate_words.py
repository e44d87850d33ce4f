"""Rates and counts in words: percentages with intervals, differences in points, and how many."""

from __future__ import annotations

from math import floor, log10
from typing import Final

from edgeflare.statistics.mover import IntervalEstimate

_LEAST: Final = 1e-7
"""The least estimate of which a digit is shown beside limits that are far above it."""


def percent(share: float) -> str:
    """Return a share as a percentage, with more digits where it is small: `2.31 %`, `0.0412 %`."""
    return f"{_digits(100 * share, 100 * share)} %"


def exact(estimate: IntervalEstimate) -> bool:
    """Whether a figure has no interval: the device was asked about all, or cannot change it."""
    return estimate.low == estimate.high


def interval(estimate: IntervalEstimate | None) -> str:
    """Return a figure from 0 to 1 with its interval: `2.31 % (2.05–2.60)`; a dash for None.

    One that is exact has none: `2.31 %`.
    """
    if estimate is None:
        return "–"
    return estimated(estimate) if exact(estimate) else f"{estimated(estimate)} ({bounds(estimate)})"


def estimated(estimate: IntervalEstimate) -> str:
    """Return a figure from 0 to 1 as a percentage, with the digits of its limits: `0.07 %`."""
    if exact(estimate):
        return percent(estimate.value)
    scale = _scale(estimate.low, estimate.high, estimate.value)
    return f"{_digits(100 * estimate.value, 100 * scale)} %"


def bounds(estimate: IntervalEstimate) -> str:
    """Return the interval of a figure in percent, without the sign: `2.05–2.60`."""
    return between(estimate.low, estimate.high, estimate.value)


def between(low: float, high: float, estimate: float = 0.0) -> str:
    """Return limits in percent, without the sign: `2.05–2.60`, `-0.10 to 0.42`.

    Args:
        low: the lower one.
        high: the upper one.
        estimate: estimate between the limits, of which a digit is to be seen; 0 for none.

    """
    scale = 100 * _scale(low, high, estimate)
    least, most = (_digits(100 * end, scale) for end in (low, high))
    return f"{least} to {most}" if low < 0 else f"{least}–{most}"


def points(estimate: IntervalEstimate | None) -> str:
    """Return a difference of shares in points with its interval: `+0.42 (-0.10 to 0.93)`.

    One that is exact has none: `+0.42`.
    """
    if estimate is None:
        return "–"
    said = f"{100 * estimate.value:+.2f}"
    return (
        said
        if exact(estimate)
        else f"{said} ({100 * estimate.low:.2f} to {100 * estimate.high:.2f})"
    )


def together(confidence: float, each: float) -> str:
    """Return with what confidence intervals hold: `95 % for all together, 99.5 % for each`.

    Args:
        confidence: confidence with which all intervals hold together.
        each: confidence with which a single interval holds; the same where there is but one.

    """
    if round(100 * each, 6) == round(100 * confidence, 6):
        return f"{100 * confidence:g} %"
    return f"{100 * confidence:g} % for all together, {100 * each:.4g} % for each"


def _scale(low: float, high: float, estimate: float) -> float:
    """Return the share that says how many digits an interval and its estimate have.

    It is the limit farther from 0, or less, where that would show no digit of the estimate.
    """
    widest, middle = max(abs(low), abs(high)), abs(estimate)
    hidden = middle >= _LEAST and float(_digits(100 * middle, 100 * widest)) == 0.0
    return 10 * middle if hidden else widest


def _digits(value: float, scale: float) -> str:
    """Return a percentage with two digits after the point, or the two first ones of a small scale.

    Args:
        value: percentage.
        scale: largest of the percentages that belong together.

    """
    if abs(scale) >= 0.1 or scale == 0.0:
        return f"{value:.2f}"
    return f"{value:.{1 - floor(log10(abs(scale)))}f}" if abs(scale) >= 1e-4 else f"{value:.1e}"
