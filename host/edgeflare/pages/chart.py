"""A chart of a report: the picture, what it shows in words, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from edgeflare.pages.html_template import page_environment
from edgeflare.pages.svg import inline_svg

SIZE = (4.5, 2.7)
"""Inches; at 72 points each, so that the text is read without a lens on a phone too."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart.

    Attributes:
        title: its heading.
        svg: the picture, as an element of the page.
        words: what it shows, in a sentence.
        header: the columns of its table.
        rows: the table.

    """

    title: str
    svg: str
    words: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def charts_html(charts: Sequence[Chart]) -> str:
    """Return charts side by side, each with its table, as HTML; nothing where there is none."""
    template = page_environment().get_template("charts.html.j2")
    return template.render(charts=charts) if charts else ""


def new_panel() -> tuple[Figure, Any]:
    """Return an empty figure of one panel."""
    figure = Figure(figsize=SIZE, layout="constrained")
    return figure, figure.subplots()


def finish(
    title: str,
    figure: Figure,
    words: str,
    header: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
) -> Chart:
    """Return the chart of a figure that was drawn."""
    svg = inline_svg(figure, title.split(maxsplit=1)[0].lower(), f"{title}. {words}")
    return Chart(title, svg, words, header, tuple(rows))


def lines_across(panel: Any) -> None:
    """Leave the horizontal lines of the grid only."""
    panel.grid(visible=False, axis="x", which="both")
