"""Divergence along a network as a picture of its own: an SVG on white, to look at and pass on."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from edgeflare.report.html.explanation import Explanation

_WIDTH = 8.0
"""Inches, as all that follows."""
_FRAME = 1.5
_A_LAYER = 0.2

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


def divergence_picture(explanation: Explanation, title: str) -> bytes:
    """Draw how far the arms are apart after each operator, in the network's order from the top.

    The operator in which the deviation begins has its name in bold and a band across.

    Args:
        explanation: with layers.
        title: which finding it is.

    Returns:
        The contents of an `.svg` file.

    """
    layers = explanation.layers
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, _FRAME + _A_LAYER * len(layers)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        kernel = [layer.kernel for layer in layers]
        compression = [layer.compression for layer in layers]
        _bars(left, kernel, _KERNEL, "device – twin", f"largest difference, {explanation.unit}")
        for place, layer in enumerate(layers):
            if layer.real is not None:
                words = f" {layer.real:.2g} in real values"
                left.text(0, place, words, va="center", fontsize=7, color=_ELSEWHERE)
        _bars(
            right, compression, _COMPRESSION,
            "twin – original, what is new", "largest difference, units of the layer",
        )  # fmt: skip
        left.set_yticks(range(len(layers)), [layer.name for layer in layers])
        left.set_ylim(len(layers) - 0.4, -0.6)
        for place, layer in enumerate(layers):
            if layer.begins:
                left.get_yticklabels()[place].set_fontweight("bold")
                for panel in (left, right):
                    panel.axhspan(place - 0.5, place + 0.5, color="0.88", zorder=0)
        figure.suptitle(f"{title}: {explanation.verdict}", fontsize=10)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None}, facecolor="white")
    return drawn.getvalue()


def _bars(
    panel: Any, values: Sequence[float | None], colour: str, title: str, measure: str
) -> None:
    """Draw a bar for each layer of which the difference is known."""
    known = {place: value for place, value in enumerate(values) if value is not None}
    panel.barh(list(known), list(known.values()), height=0.7, color=colour)
    panel.set_title(title, fontsize=9)
    panel.set_xlabel(measure if known else f"{measure}: not known", color=_ELSEWHERE)
    panel.set_xlim(0, max(known.values(), default=0.0) * 1.05 or 1.0)
    panel.grid(visible=True, axis="x", color="0.9")
    panel.tick_params(axis="y", length=0)
