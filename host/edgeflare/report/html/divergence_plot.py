"""Divergence along a network as a plot small enough for a card: a bar for each operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.report.entry_names import number
from edgeflare.report.html.explanation_view import ExplanationView, LayerView

HEIGHT = 40
"""Units of the drawing that the longest bar of either direction takes."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The plot: device and twin upwards, twin and original downwards, each to its own scale.

    Attributes:
        width: of the drawing, one for each operator.
        up: the bars of device and twin, as the data of an SVG path.
        down: those of twin and original.
        begins: the place of the operator where the deviation starts, or None.
        words: what it shows.

    """

    width: int
    up: str
    down: str
    begins: float | None
    words: str


def divergence_of(explanation: ExplanationView) -> Divergence | None:
    """Return the plot of an explanation; None where no layer is known."""
    layers = explanation.layers
    if not layers:
        return None
    names = [layer.name for layer in layers]
    kernel = [layer.kernel for layer in layers]
    compression = [layer.compression for layer in layers]
    said = [
        part
        for part in (
            _words("up, device and twin", kernel, names, explanation.unit),
            _apart(layers),
            _words("down, what is new of twin and original", compression, names, "units"),
        )
        if part
    ]
    begins = [place + 0.5 for place, layer in enumerate(layers) if layer.begins]
    along = f"Along {len(layers)} operator{'' if len(layers) == 1 else 's'}"
    return Divergence(
        width=len(layers),
        up=_bars(kernel, -1) + _marks(layers),
        down=_bars(compression, 1),
        begins=begins[0] if begins else None,
        words=f"{along}: {'; '.join(said) or 'no difference'}",
    )


def _bars(values: Sequence[float | None], direction: int) -> str:
    """Return bars from the middle line; any difference at all is at least one unit long."""
    most = max((value for value in values if value is not None), default=0.0)
    return "".join(
        f"M{place}.5 {HEIGHT}v{direction * max(1, round(HEIGHT * value / most))}"
        for place, value in enumerate(values)
        if value
    )


def _marks(layers: Sequence[LayerView]) -> str:
    """Return the shortest bars for layers whose difference has another scale."""
    return "".join(f"M{n}.5 {HEIGHT}v-1" for n, layer in enumerate(layers) if layer.real)


def _apart(layers: Sequence[LayerView]) -> str:
    """Say how far device and twin are apart where the network is not quantized."""
    known = [(layer.real, layer.name) for layer in layers if layer.real]
    if not known:
        return ""
    most, name = max(known, key=lambda one: one[0])
    return f"not quantized, at most {_figure(most)} at {name}"


def _figure(value: float) -> str:
    """Return a figure that is not nothing, so that it does not read as nothing."""
    return f"{value:.2g}" if value < 1e-3 else number(value, 1 if value >= 1 else 4)


def _words(what: str, values: Sequence[float | None], names: Sequence[str], unit: str) -> str:
    """Say how large the largest difference is, and where."""
    known = [(value, name) for value, name in zip(values, names, strict=True) if value]
    if not known:
        return ""
    most, name = max(known, key=lambda one: one[0])
    return f"{what}, at most {_figure(most)} {unit} at {name}"
