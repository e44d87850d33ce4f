"""Rates and counts in words: percentages with intervals, differences in points, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, log10
from typing import Any, Final

_LEAST: Final = 1e-7
"""The least estimate of which a digit is shown beside limits that are far above it."""


def percent(share: float) -> str:
    """Return a share as a percentage, with more digits where it is small: `2.31 %`, `0.0412 %`."""
    return f"{_digits(100 * share, 100 * share)} %"


def exact(one: Mapping[str, Any]) -> bool:
    """Whether a figure has no interval, since the device was asked about all that it is about."""
    return bool(one["low"] == one["high"])


def interval(one: Mapping[str, Any] | None) -> str:
    """Return a figure from 0 to 1 with its interval: `2.31 % (2.05–2.60)`; a dash for None.

    One that is exact has none: `2.31 %`.
    """
    if one is None:
        return "–"
    return estimated(one) if exact(one) else f"{estimated(one)} ({bounds(one)})"


def estimated(one: Mapping[str, Any]) -> str:
    """Return a figure from 0 to 1 as a percentage, with the digits of its limits: `0.07 %`."""
    if exact(one):
        return percent(one["estimate"])
    return f"{_digits(100 * one['estimate'], 100 * _scale(one))} %"


def bounds(one: Mapping[str, Any]) -> str:
    """Return an interval of percentages without their sign: `2.05–2.60`, `-0.10 to 0.42`."""
    low, high = (_digits(100 * one[key], 100 * _scale(one)) for key in ("low", "high"))
    return f"{low} to {high}" if one["low"] < 0 else f"{low}–{high}"


def points(one: Mapping[str, Any] | None) -> str:
    """Return a difference of shares in points with its interval: `+0.42 (-0.10 to 0.93)`.

    One that is exact has none: `+0.42`.
    """
    if one is None:
        return "–"
    if exact(one):
        return f"{100 * one['estimate']:+.2f}"
    low, high = (f"{100 * one[key]:.2f}" for key in ("low", "high"))
    return f"{100 * one['estimate']:+.2f} ({low} to {high})"


def together(confidence: float, each: float) -> str:
    """Return with what confidence intervals hold: `95 % for all together, 99.5 % for each`.

    Args:
        confidence: that of all of them.
        each: that of one; the same where there is but one.

    """
    if round(100 * each, 6) == round(100 * confidence, 6):
        return f"{100 * confidence:g} %"
    return f"{100 * confidence:g} % for all together, {100 * each:.4g} % for each"


def counted(count: int, one: str, many: str) -> str:
    """Return how many there are of something: `1 item`, `1,200 items`."""
    return f"{count:,} {one if count == 1 else many}"


def _scale(one: Mapping[str, Any]) -> float:
    """Return the share that says how many digits an interval and its estimate have.

    It is the limit farther from 0, or less, where that would show no digit of the estimate.
    """
    widest = max(abs(one["low"]), abs(one["high"]))
    middle = abs(one.get("estimate", 0.0))
    hidden = middle >= _LEAST and float(_digits(100 * middle, 100 * widest)) == 0.0
    return float(10 * middle if hidden else widest)


def _digits(value: float, scale: float) -> str:
    """Return a percentage with two digits after the point, or the two first ones of a small scale.

    Args:
        value: in percent.
        scale: likewise; the largest of the figures that belong together.

    """
    if abs(scale) >= 0.1 or scale == 0.0:
        return f"{value:.2f}"
    return f"{value:.{1 - floor(log10(abs(scale)))}f}" if abs(scale) >= 1e-4 else f"{value:.1e}"
