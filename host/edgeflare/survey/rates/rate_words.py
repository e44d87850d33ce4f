"""Rates and counts in words: percentages with intervals, differences in points, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def percent(share: float) -> str:
    """Return a share as a percentage, with more digits where it is small: `2.31 %`, `0.0412 %`."""
    return f"{_digits(100 * share, 100 * share)} %"


def interval(one: Mapping[str, Any] | None) -> str:
    """Return a figure from 0 to 1 with its interval: `2.31 % (2.05–2.60)`; a dash for None."""
    if one is None:
        return "–"
    return f"{percent(one['estimate'])} ({bounds(one)})"


def bounds(one: Mapping[str, Any]) -> str:
    """Return an interval of percentages without their sign: `2.05–2.60`, `-0.10 to 0.42`."""
    scale = max(abs(one["low"]), abs(one["high"]))
    low, high = (_digits(100 * one[key], 100 * scale) for key in ("low", "high"))
    return f"{low} to {high}" if one["low"] < 0 else f"{low}–{high}"


def points(one: Mapping[str, Any] | None) -> str:
    """Return a difference of shares in points with its interval: `+0.42 (-0.10 to 0.93)`."""
    if one is None:
        return "–"
    low, high = (f"{100 * one[key]:.2f}" for key in ("low", "high"))
    return f"{100 * one['estimate']:+.2f} ({low} to {high})"


def counted(count: int, one: str, many: str) -> str:
    """Return how many there are of something: `1 item`, `1,200 items`."""
    return f"{count:,} {one if count == 1 else many}"


def _digits(value: float, scale: float) -> str:
    """Return a percentage with two digits after the point, or two in all where that says less."""
    if abs(scale) >= 0.1 or value == 0.0:
        return f"{value:.2f}"
    return f"{value:.2g}" if abs(scale) >= 1e-4 else f"{value:.1e}"
