"""Divergence along a network as bars of text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.diagnose.layer_difference import LARGEST, in_digits
from edgeflare.pages.page import Table
from edgeflare.report.html.explanation_view import ExplanationView

_LONGEST = 16
"""Characters of the longest bar: two of them, with their figures and a name, fit 80 columns."""

_BEGINS = " ←"
"""What stands behind the layer where the deviation begins."""


def divergence_bars(explanation: ExplanationView) -> Table:
    """Return a table with a bar for each layer, for the two differences each to its own scale."""
    layers = explanation.layers
    units = explanation.unit == "quantization units"
    other = "" if units else ", new in twin – original in units of the layer"
    kernel = _most([layer.kernel for layer in layers])
    compression = _most([layer.compression for layer in layers])
    rows = []
    for layer in layers:
        # A layer that is not quantized has no bar of this, since it has another scale.
        parting = (
            _bar(layer.kernel, kernel)
            if layer.real is None
            else f"▏ {in_digits(layer.real, '.2g')} in real values"
        )
        name = f"{layer.name}{_BEGINS * layer.begins}"
        rows.append((name, parting, _bar(layer.compression, compression)))
    return Table.of_words(
        ("layer", "device – twin", "new in twin – original"),
        rows,
        title=f"Divergence along the network, largest differences in {explanation.unit}{other}",
    )


def _most(values: Sequence[float | None]) -> float:
    """Return the largest difference that is finite; 0 where there is none."""
    return max((value for value in values if value is not None and value < LARGEST), default=0.0)


def _bar(value: float | None, most: float) -> str:
    """Return a bar and its figure; any difference at all is at least a line."""
    if value is None:
        return "not known"
    length = round(_LONGEST * min(1.0, value / most)) if value and most else _LONGEST * bool(value)
    bar = "█" * length or ("▏" if value else "")
    return f"{bar} {in_digits(value, '.2g')}".lstrip()
