"""Two inputs or outputs of numbers in one plot: curves or bars side by side, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.views import CurvesView, ValuesView
from edgeflare.pages.facts import count_of

_HEIGHT = 80
"""Units of a drawing from the lowest value to the highest."""

_MIDDLE = 97
"""Where changes are drawn from, up and down; `_DEPTH` below it the drawing ends."""

_DEPTH = 13

_Values = NDArray[np.float64]

MOST_CURVES = 6
"""Series that have a panel of their own; those that changed most come first."""

MOST_BARS = 128
"""Values that have a bar of their own; more are drawn as a curve."""

ROWS = 8
"""Values that stand in the table; those that changed most come first."""

POINTS = (24, 240)
"""Points of a curve, at least and at most."""

POINT_BYTES = 38
"""Characters of one point in both curves and of the change there, about."""


class PlotPanel(msgspec.Struct, frozen=True):
    """One drawing, `width` × 110 units: the first and the second in the upper 80, changes below.

    Attributes:
        name: name of the series; empty where there is only one.
        width: units of the drawing, one for each value or time step.
        first: the data of the path of the first.
        second: the data of the path of the second; empty where there is only one input.
        change: the data of the path of what changed.
        bounds: the heights at which bounds lie, as far as they are in the drawing.
        bars: whether they are bars, and not curves.
        words: what it shows.

    """

    name: str
    width: int
    first: str
    second: str
    change: str
    bounds: tuple[int, ...]
    bars: bool
    words: str


class PlotRow(msgspec.Struct, frozen=True):
    """A value of both, and its change, as texts."""

    name: str
    first: str
    second: str
    change: str


class ComparisonPlot(msgspec.Struct, frozen=True):
    """Two inputs or outputs of numbers, or one alone.

    Attributes:
        names: what the two are called, "seed" and "trigger"; or what the one is.
        panels: the drawings.
        rows: the values that changed most; none of curves.
        more: what was left out, in words; empty where nothing was.

    """

    kind: ClassVar[str] = "plot"
    names: tuple[str, ...]
    panels: tuple[PlotPanel, ...]
    rows: tuple[PlotRow, ...] = ()
    more: str = ""


def comparison_plot(
    names: tuple[str, ...], views: Sequence[CurvesView | ValuesView], most: int
) -> ComparisonPlot:
    """Return the plot of two views of one form and shape, or of one.

    Args:
        names: what they are called; as many as views.
        views: one or two.
        most: the characters that all paths may have together, about.

    """
    first, *others = views
    if first.values.size == 0:
        return ComparisonPlot(names, (), more="no values")
    one, *rest = (_finite(view.values) for view in views)
    other = rest[0] if others else None
    if isinstance(first, CurvesView):
        return _curves(names, first, one, other, most)
    if len(one) > MOST_BARS:
        along = CurvesView(first.values[:, np.newaxis], lowest=first.lowest, highest=first.highest)
        column = None if other is None else other[:, np.newaxis]
        plot = _curves(names, along, one[:, np.newaxis], column, most, place="value")
        rows, more = _rows(first.names, one, other)
        return ComparisonPlot(names, plot.panels, rows, more)
    scale = _scale_of([one] if other is None else [one, other], zero=True)
    width = 0.9 if other is None else 0.42
    panel = PlotPanel(
        "",
        len(one),
        _bars_path(one, scale, 0.05, width),
        "" if other is None else _bars_path(other, scale, 0.53, width),
        "" if other is None else _change_path(other - one, len(one)),
        _bounds(first, scale),
        bars=True,
        words=_words(names, one, other, first),
    )
    rows, more = _rows(first.names, one, other)
    return ComparisonPlot(names, (panel,), rows, more)


def _curves(
    names: tuple[str, ...],
    view: CurvesView,
    one: _Values,
    other: _Values | None,
    most: int,
    place: str = "step",
) -> ComparisonPlot:
    """Return a panel for each of the series that changed most, in their own order."""
    series = one.shape[1]
    changed = np.ptp(one, axis=0) if other is None else np.abs(other - one).max(axis=0)
    kept = np.sort(np.argsort(-changed, kind="stable")[:MOST_CURVES])
    points = int(np.clip(most // (len(kept) * POINT_BYTES), *POINTS))
    panels = []
    for number in kept.tolist():
        before = one[:, number]
        after = None if other is None else other[:, number]
        scale = _scale_of([before] if after is None else [before, after], zero=False)
        panels.append(
            PlotPanel(
                "" if series == 1 and not view.names else _name(view.names, number, "series"),
                len(before),
                _curve_path(before, scale, points),
                "" if after is None else _curve_path(after, scale, points),
                "" if after is None else _change_path(after - before, points),
                _bounds(view, scale),
                bars=False,
                words=_words(names, before, after, view, f"{place} {{}}"),
            )
        )
    return ComparisonPlot(
        names, tuple(panels), more=_left_out(changed, kept.tolist(), compared=other is not None)
    )


def _left_out(changed: _Values, kept: Sequence[int], *, compared: bool) -> str:
    rest = np.delete(changed, np.asarray(kept))
    if not len(rest):
        return ""
    said = f", changed by at most {figure(float(rest.max()))}" if compared else ""
    return f"{len(rest)} more series{said}"


def _rows(
    names: Sequence[str], one: _Values, other: _Values | None
) -> tuple[tuple[PlotRow, ...], str]:
    """Return the rows of the values that changed most, and what is left out in words."""
    change = np.zeros_like(one) if other is None else other - one
    size = np.abs(one if other is None else change)
    kept = np.sort(np.argsort(-size, kind="stable")[:ROWS]).tolist()
    if other is not None:
        kept = [place for place in kept if change[place]]
    rows = tuple(
        PlotRow(
            _name(names, place, "value"),
            figure(one[place]),
            "" if other is None else figure(other[place]),
            "" if other is None else figure(change[place], sign=True),
        )
        for place in kept
    )
    left = len(one) - len(kept)
    if not left:
        return rows, ""
    more = count_of(left, "more value")
    if other is None:
        return rows, more
    unchanged = int(np.count_nonzero(np.delete(change, kept) == 0))
    return rows, f"{more}, {unchanged} of them unchanged" if kept else "all unchanged"


def _words(
    names: tuple[str, ...],
    one: _Values,
    other: _Values | None,
    view: CurvesView | ValuesView,
    place: str = "",
) -> str:
    """Say what a panel shows: ranges, the largest change, and bounds.

    Args:
        names: what the two are called, or the one.
        one: the values of the first.
        other: those of the second, or None.
        view: the form of the first.
        place: what a position is called, such as "step {}"; by default by the names of values.

    """
    said = [
        f"{name} {figure(float(values.min()))} to {figure(float(values.max()))}"
        for name, values in zip(names, (one, other), strict=False)
        if values is not None
    ]
    if other is not None:
        change = np.abs(other - one)
        at = int(change.argmax())
        where = place.format(at) if place else _name(view.names, at, "value")
        largest = f"largest change {figure(float(change[at]))} at {where}"
        said.append(largest if change[at] else "no change")
    known = [
        f"{word} {figure(bound)}"
        for word, bound in (("from", view.lowest), ("to", view.highest))
        if isfinite(bound)
    ]
    if known:
        said.append(f"bounds {' '.join(known)}")
    return "; ".join(said)


def _bounds(view: CurvesView | ValuesView, scale: _Scale) -> tuple[int, ...]:
    """Return where bounds are drawn: those that a value of the drawing reaches or comes near."""
    near = 0.02 * (scale.high - scale.low)
    inside = [
        bound
        for bound in (view.lowest, view.highest)
        if isfinite(bound) and scale.low - near <= bound <= scale.high + near
    ]
    return tuple(int(y) for y in scale.heights(np.array(inside, np.float64)).clip(0, _HEIGHT))


def _name(names: Sequence[str], place: int, what: str) -> str:
    return names[place] if place < len(names) else f"{what} {place}"


def figure(value: float, *, sign: bool = False) -> str:
    """Return a figure to read, of four digits."""
    return f"{value:+.4g}" if sign else f"{value:.4g}"


class _Scale(msgspec.Struct, frozen=True):
    """From values to the height of a drawing."""

    low: float
    high: float

    def heights(self, values: _Values) -> NDArray[np.int64]:
        """Return where values lie, from `_HEIGHT` at the lowest to 0 at the highest."""
        spread = self.high - self.low
        shares = (values - self.low) / spread if spread else np.full(values.shape, 0.5)
        return np.rint(_HEIGHT * (1.0 - np.clip(shares, 0.0, 1.0))).astype(np.int64)


def _finite(values: NDArray[np.generic]) -> _Values:
    """Return values as float64, of any file: what is not finite is 0."""
    real: _Values = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(real, -1e300, 1e300)  # so that the spread of any two is finite


def _scale_of(series: Sequence[_Values], *, zero: bool) -> _Scale:
    """Return the scale that all of these values lie on; with 0 where bars begin there."""
    every = np.concatenate([line.ravel() for line in series] + ([np.zeros(1)] if zero else []))
    return _Scale(float(every.min()), float(every.max()))


def _curve_path(values: _Values, scale: _Scale, points: int) -> str:
    """Return a line through values, of at most so many points.

    Of a longer one each part is drawn from its least value to its greatest.

    Args:
        values: (time,), at least one.
        scale: function of values to heights.
        points: points of the curve; 2 or more.

    """
    if len(values) == 1:
        return f"M0 {scale.heights(values)[0]}h1"
    if len(values) <= points:
        places, kept = np.arange(len(values)), values
    else:
        parts = points // 2
        begins = np.arange(parts) * len(values) // parts
        low, high = np.minimum.reduceat(values, begins), np.maximum.reduceat(values, begins)
        places, kept = np.repeat(begins, 2), np.stack([low, high], axis=1).ravel()
    heights = scale.heights(kept).tolist()
    return "M" + " ".join(f"{x} {y}" for x, y in zip(places.tolist(), heights, strict=True))


def _change_path(change: _Values, points: int) -> str:
    """Return bars of a change, up or down from the middle, on the scale of its largest.

    Of more changes than `points`, each part has its largest. Any change at all is a unit long.
    """
    most = float(np.abs(change).max(initial=0.0))
    if not most:
        return ""
    parts = min(points, len(change))
    begins = np.arange(parts) * len(change) // parts
    width = len(change) / parts
    low, high = np.minimum.reduceat(change, begins), np.maximum.reduceat(change, begins)
    largest = np.where(-low > high, low, high)
    bars = []
    for n, value in enumerate(largest.tolist()):
        if value:
            length = max(1, round(_DEPTH * abs(value) / most))
            bars.append(_bar_path(n * width, width, _MIDDLE, -length if value > 0 else length))
    return "".join(bars)


def _bars_path(values: _Values, scale: _Scale, begin: float, width: float) -> str:
    """Return a bar for each value, from 0, which lies on the scale.

    Args:
        values: (values,).
        scale: function of values to heights.
        begin: where the bar of a value begins in the unit that is its own.
        width: width of a bar, in such units.

    """
    zero = int(scale.heights(np.zeros(1))[0])
    return "".join(
        _bar_path(place + begin, width, zero, height - zero)
        for place, height in enumerate(scale.heights(values).tolist())
    )


def _bar_path(left: float, width: float, base: int, length: int) -> str:
    """Return one bar; upwards where the length is negative."""
    return f"M{round(left, 2):g} {base}v{length or -1}h{round(width, 2):g}v{-length or 1}z"
