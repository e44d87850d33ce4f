"""A chart of a report: the picture, what it shows in words, and its table."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from edgeflare.pages.html_page import page_environment
from edgeflare.untrusted_text import for_html, for_xml

SIZE = (4.5, 2.7)
"""Inches; at 72 points each, so that the text is read without a lens on a phone too."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart.

    Attributes:
        title: heading of the chart.
        svg: the picture, as an element of the page.
        words: what it shows, in a sentence.
        header: the columns of its table.
        rows: the table; none where the page has one of the same figures.

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
    header: tuple[str, ...] = (),
    rows: Sequence[tuple[str, ...]] = (),
) -> Chart:
    """Return the chart of a figure that was drawn."""
    svg = inline_svg(figure, title.split(maxsplit=1)[0].lower(), f"{title}. {words}")
    return Chart(title, svg, words, header, tuple(rows))


def lines_across(panel: Any) -> None:
    """Leave the horizontal lines of the grid only."""
    panel.grid(visible=False, axis="x", which="both")


def name_decades(panel: Any) -> None:
    """Name the decades of a logarithmic axis of counts, and where it spans less than one some more.

    In plain digits: how matplotlib writes a power is a formula, which our figures show as text.
    """
    axis = panel.xaxis
    low, high = axis.get_view_interval()
    marks = (1.0,) if high >= 200 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=marks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


COLOURS = {
    "ink": "#000001",
    "muted": "#000002",
    "line": "#000003",
    "panel": "#000004",
    "accent": "#000005",
    "compression": "#000006",
    "kernel": "#000007",
    "mixed": "#000008",
    "failure": "#000009",
}
"""What a figure draws in: each stands for the variable of that name in the page's style sheet."""

_STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and has the page's font
    "svg.hashsalt": "edgeflare",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": COLOURS["ink"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.edgecolor": COLOURS["line"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": COLOURS["line"],
    "grid.linewidth": 0.6,
    "xtick.color": COLOURS["line"],
    "ytick.color": COLOURS["line"],
    "xtick.labelcolor": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["muted"],
    "hatch.color": COLOURS["panel"],
    "hatch.linewidth": 1.4,
    "legend.frameon": False,
    "figure.facecolor": "none",
}


@contextmanager
def page_style() -> Iterator[None]:
    """Draw and save figures in the page's style."""
    with mpl.rc_context(_STYLE):
        yield


def drawn_svg(figure: Figure, metadata: Mapping[str, None]) -> str:
    """Return a figure as the text of an SVG file, in which names are text and nothing else.

    Args:
        figure: drawn and styled.
        metadata: what matplotlib is to leave out.

    """
    drawn = io.StringIO()
    with warnings.catch_warnings():
        # Of letters that its own font lacks; whoever shows the file has others.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(drawn, format="svg", metadata=dict(metadata))
    return for_xml(drawn.getvalue())


def inline_svg(figure: Figure, name: str, alternative: str) -> str:
    """Return a figure as an `svg` element.

    Args:
        figure: drawn within `page_style`.
        name: begins every id in it, so that several figures can lie in one page.
        alternative: what it shows, in words.

    """
    svg = drawn_svg(figure, dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<g id=\"[^\"]*\"", "<g", svg)
    svg = re.sub(r"( id=\"|url\(#|href=\"#)", rf"\g<1>{name}-", svg)
    svg = re.sub(r" (width|height)=\"[\d.]+pt\"", "", svg, count=2)
    svg = svg.replace("'DejaVu Sans'", "system-ui")
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    for variable, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r"\n\s*", "\n", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(for_html(alternative))}"', 1)
