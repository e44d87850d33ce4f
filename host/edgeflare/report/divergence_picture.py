"""Divergence along a network as a picture of its own: an SVG on white, to look at and pass on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from edgeflare.diagnose.layer_difference import LARGEST, in_digits
from edgeflare.pages.chart import drawn_svg
from edgeflare.report.html.explanation_view import ExplanationView

_WIDTH = 8.0
"""Inches, as all that follows."""
_ABOVE, _BELOW, _BESIDE = 0.65, 0.6, 0.15
_A_LAYER = 0.2
_A_LETTER = 0.075
"""Inches for a letter of a layer's name, capitals mostly."""

_KERNEL, _COMPRESSION, _ELSEWHERE = "#b4531a", "#2563a8", "0.35"
_STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be searched
    "svg.hashsalt": "edgeflare",  # the same picture is the same file
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


def divergence_picture(explanation: ExplanationView, title: str) -> bytes:
    """Draw how far the arms are apart after each operator, in the network's order from the top.

    The operator in which the deviation begins has its name in bold and a band across.

    Args:
        explanation: explanation with layers.
        title: name of the finding.

    Returns:
        The contents of an `.svg` file.

    """
    layers = explanation.layers
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, _ABOVE + _BELOW + _A_LAYER * len(layers)))
        left, right = figure.subplots(1, 2)
        names = _A_LETTER * max(len(layer.name) for layer in layers)
        height = float(figure.get_figheight())
        figure.subplots_adjust(
            left=(min(names, _WIDTH / 2) + _BESIDE) / _WIDTH,
            right=1 - _BESIDE / _WIDTH,
            top=1 - _ABOVE / height,
            bottom=_BELOW / height,
            wspace=0.05,
        )
        kernel = [layer.kernel for layer in layers]
        compression = [layer.compression for layer in layers]
        _bars(left, kernel, _KERNEL, "device – twin", f"largest difference, {explanation.unit}")
        for place, layer in enumerate(layers):
            # Texts are drawn sooner than the labels of as many ticks.
            weight = "bold" if layer.begins else "normal"
            left.annotate(
                layer.name, (0, place), (-4, 0), textcoords="offset points", ha="right",
                va="center", fontweight=weight, annotation_clip=False,
            )  # fmt: skip
            if layer.real is not None:
                words = f" {in_digits(layer.real, '.2g')} in real values"
                left.text(0, place, words, va="center", fontsize=7, color=_ELSEWHERE)
            if layer.begins:
                for panel in (left, right):
                    panel.axhspan(place - 0.5, place + 0.5, color="0.88", zorder=0)
        _bars(
            right, compression, _COMPRESSION,
            "twin – original, what is new", "largest difference, units of the layer",
        )  # fmt: skip
        figure.suptitle(f"{title}: {explanation.verdict}", fontsize=10)
        figure.set_facecolor("white")
        return drawn_svg(figure, {"Date": None}).encode()


def _bars(
    panel: Any, values: Sequence[float | None], colour: str, title: str, measure: str
) -> None:
    """Draw a bar for each layer of which the difference is known."""
    known = {place: value for place, value in enumerate(values) if value is not None}
    longest = max((value for value in known.values() if value < LARGEST), default=0.0) * 1.05 or 1.0
    bars = [
        [(0, place - 0.35), (end, place - 0.35), (end, place + 0.35), (0, place + 0.35)]
        for place, value in known.items()
        for end in [min(value, longest)]  # what is not finite goes to the edge
    ]
    panel.add_collection(PolyCollection(bars, facecolors=colour), autolim=False)
    panel.set_title(title, fontsize=9)
    panel.set_xlabel(measure if known else f"{measure}: not known", color=_ELSEWHERE)
    panel.set_xlim(0, longest)
    panel.set_ylim(len(values) - 0.4, -0.6)
    panel.set_yticks([])
    panel.grid(visible=True, axis="x", color="0.9")
