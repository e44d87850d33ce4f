"""A matplotlib figure as SVG that lies in a page and takes the page's colours, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from edgeflare.untrusted_text import for_xml

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
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alternative)}"', 1)
