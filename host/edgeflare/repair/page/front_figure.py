"""The figure of a repair's candidates: time against score, and the Pareto front through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from edgeflare.pages.chart import COLOURS, inline_svg, page_style
from edgeflare.repair.repair_document import RepairDocument, TriedCandidate
from edgeflare.untrusted_text import for_html

BEFORE = "before"
"""The label of the compressed model before the repair, whose score and time ratio are 1."""

HIGHEST = 2.0
"""The largest score that the axis has; candidates above it stand at its end."""

LOGARITHMIC = 4.0
"""Where the slowest takes so many times as long as the fastest, times are on a logarithmic axis."""

LEAST_RATIO = 1e-3
"""What is faster than that was not measured, and has no place on a logarithmic axis."""

LONGEST_NAME = 30

WIDTH, LEAST_HEIGHT, LINE = 6.4, 3.2, 0.21
"""Inches of the figure; a label needs a line."""


_KEY = (
    "The further left a mark, the faster its file; the further down, the fewer inputs deviate."
    " Diamond: the chosen candidate; circles: others on the front, which the line joins; crosses:"
    " the rest; square: the model before. The larger a mark, the larger the file."
)

_LEADER = {"arrowstyle": "-", "color": COLOURS["line"], "linewidth": 0.7, "relpos": (0.0, 0.5)}
"""The line from a mark to the left edge of its label."""


@dataclass(frozen=True, slots=True)
class _Point:
    """A mark of the figure."""

    name: str
    ratio: float
    score: float
    size: int | None
    colour: str
    marker: str


def front_figure(document: RepairDocument) -> str:
    """Return the figure as HTML, with its key; nothing where the time of no candidate was measured.

    What it shows is said in words too.
    """
    points = [
        _point(document, candidate, candidate.latency_ratio, candidate.score)
        for candidate in document.candidates
        if candidate.score is not None and candidate.latency_ratio is not None
    ]
    if not points:
        return ""
    front = [point for name in document.front for point in points if point.name == name]
    everything = [*points, _Point(BEFORE, 1.0, 1.0, None, "ink", "s")]
    with page_style():
        figure = Figure(figsize=(WIDTH, max(LEAST_HEIGHT, LINE * len(everything) + 1)))
        panel = figure.subplots()
        figure.subplots_adjust(left=0.1, right=0.6, top=0.96, bottom=0.15)
        _axes(panel, everything)
        x, y = [point.ratio for point in front], [min(HIGHEST, point.score) for point in front]
        panel.plot(x, y, color=COLOURS["accent"], linewidth=1.2, zorder=1)
        _marks(panel, everything)
        svg = inline_svg(figure, "front", _words(points, front))
    region = 'role="region" aria-label="Figure of the candidates" tabindex="0"'
    return f'<figure class="chart large" {region}>{svg}<figcaption>{_KEY}</figcaption></figure>'


def _point(document: RepairDocument, one: TriedCandidate, ratio: float, score: float) -> _Point:
    chosen, best = one.name == document.chosen, one.name in document.front
    return _Point(
        one.name,
        ratio,
        score,
        one.size_bytes,
        "accent" if best or chosen else "muted",
        "D" if chosen else "o" if best else "X",
    )


def _axes(panel: Any, points: Sequence[_Point]) -> None:
    ratios = [point.ratio for point in points]
    panel.set(
        xlabel="time of an inference, × before",
        ylabel="score",
        ylim=(0.0, 1.08 * min(HIGHEST, max(point.score for point in points))),
    )
    if min(ratios) > LEAST_RATIO and max(ratios) > LOGARITHMIC * min(ratios):
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        panel.xaxis.set_minor_formatter(NullFormatter())
    panel.margins(x=0.08)


def _marks(panel: Any, points: Sequence[_Point]) -> None:
    """Draw marks, their areas as large as the files, and their labels in a column beside them."""
    largest = max((point.size for point in points if point.size is not None), default=1) or 1
    for number, point in enumerate(sorted(points, key=lambda known: (-known.score, known.ratio))):
        place = point.ratio, min(HIGHEST, point.score)
        area = 55.0 * (1.0 if point.size is None else point.size / largest)
        colour = COLOURS[point.colour]
        panel.scatter(*place, s=area, marker=point.marker, color=colour, clip_on=False, zorder=2)
        panel.annotate(
            _label(point),
            place,
            (1.08, 1.0 - (number + 0.5) / len(points)),
            textcoords="axes fraction",
            verticalalignment="center",
            arrowprops=_LEADER,
            annotation_clip=False,
        )


def _label(one: _Point) -> str:
    name = for_html(one.name)
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return f"{name} ({one.score:.2f})" if one.score > HIGHEST else name


def _words(points: Sequence[_Point], front: Sequence[_Point]) -> str:
    told = ", ".join(
        f"{point.name} (time × {point.ratio:.2f}, score {point.score:.2f})" for point in front
    )
    return for_html(
        f"Time and score of {len(points)} candidates; the model before has 1 and 1. On the front,"
        f" the fastest first: {told or 'none'}."
    )
