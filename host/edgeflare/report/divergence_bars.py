"""Divergence along a network as bars of text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from edgeflare.diagnose.tensor_difference import LARGEST, in_digits
from edgeflare.report.html.explanation_view import ExplanationView

_LONGEST = 16
"""Characters of the longest bar: two of them, with their figures and a name, fit 80 columns."""


def divergence_bars(explanation: ExplanationView) -> Table:
    """Return a table with a bar for each layer, for the two differences each to its own scale."""
    units = explanation.unit == "quantization units"
    other = "" if units else ", new in twin – original in units of the layer"
    table = Table(
        title=f"Divergence along the network, largest differences in {explanation.unit}{other}",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("layer", overflow="fold")
    table.add_column("device – twin", no_wrap=True)
    table.add_column("new in twin – original", no_wrap=True)
    kernel = _most([layer.kernel for layer in explanation.layers])
    compression = _most([layer.compression for layer in explanation.layers])
    for layer in explanation.layers:
        table.add_row(
            Text(layer.name),
            _bar(layer.kernel, kernel) if layer.real is None else _real(layer.real),
            _bar(layer.compression, compression),
            style="bold" if layer.begins else None,
        )
    return table


def _most(values: Sequence[float | None]) -> float:
    """Return the largest difference that is finite; 0 where there is none."""
    return max((value for value in values if value is not None and value < LARGEST), default=0.0)


def _real(value: float) -> Text:
    """Return the figure of a layer that is not quantized: no bar, since it has another scale."""
    return Text(f"▏ {in_digits(value, '.2g')} in real values")


def _bar(value: float | None, most: float) -> Text:
    """Return a bar and its figure; any difference at all is at least a line."""
    if value is None:
        return Text("not known", style="dim")
    length = round(_LONGEST * min(1.0, value / most)) if value and most else _LONGEST * bool(value)
    bar = "█" * length or ("▏" if value else "")
    return Text(f"{bar} {in_digits(value, '.2g')}".lstrip())
