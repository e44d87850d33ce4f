"""Charts of a layer table: sensitivity and signal to noise along the network."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan
from typing import Any

from matplotlib.ticker import MaxNLocator

from edgeflare.diagnose.layer_difference import LARGEST_DB
from edgeflare.diagnose.layers.layer_figures import LayerError, LayerFigures
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.pages.chart import COLOURS, Chart, finish, new_panel, page_style


def layer_charts(document: LayersDocument) -> tuple[Chart, ...]:
    """Draw the charts of a layer table; none of what was not measured."""
    with page_style():
        errors = (
            ("entire", lambda layer: layer.entire, "compression", "D", "--"),
            ("single", lambda layer: layer.single, "ink", "o", "-"),
        )
        differences = (
            ("entire", lambda layer: layer.device_entire, "kernel", "^", ":"),
            ("single", lambda layer: layer.device_single, "ink", "o", "-"),
        )
        charts = (
            _sensitivity(document),
            _lines(document, "Signal to noise behind each layer", errors),
            _lines(document, "Device against twin behind each layer", differences),
        )
        return tuple(chart for chart in charts if chart is not None)


def _sensitivity(document: LayersDocument) -> Chart | None:
    points = [
        (layer.layer.operator_index, layer.sensitivity.margin)
        for layer in document.layers
        if layer.sensitivity is not None
    ]
    if not points:
        return None
    figure, panel = new_panel()
    panel.bar(*zip(*points, strict=True), color=COLOURS["compression"])
    panel.set(xlabel="layer, in execution order", ylabel="change of the margin")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    worst = max(points, key=lambda point: point[1])
    words = f"Most behind operator {worst[0]}: {worst[1]:.3g} on average."
    return finish("Sensitivity of each layer", figure, words)


def _decibels(error: LayerError) -> float:
    return nan if error.snr_db is None or error.snr_db <= -LARGEST_DB else error.snr_db


_Line = tuple[str, Callable[[LayerFigures], LayerError | None], str, str, str]


def _lines(document: LayersDocument, title: str, lines: tuple[_Line, ...]) -> Chart | None:
    figure, panel = new_panel()
    drawn = []
    for name, of, colour, marker, dashes in lines:
        found = [(layer.layer.operator_index, of(layer)) for layer in document.layers]
        # A layer that is equal has no decibels: the line has a gap there.
        points = [(at, _decibels(error)) for at, error in found if error is not None]
        if any(isfinite(value) for _, value in points):
            drawn.append(name)
            look: dict[str, Any] = {"marker": marker, "linestyle": dashes, "markersize": 3}
            panel.plot(
                *zip(*points, strict=True), label=name, color=COLOURS[colour], linewidth=1.2, **look
            )
    if not drawn:
        return None
    panel.set(xlabel="layer, in execution order", ylabel="SQNR, dB")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.legend(loc="best", fontsize=8, labelcolor=COLOURS["ink"])
    return finish(
        title, figure, f"{' and '.join(drawn)}; the higher, the less is off.".capitalize()
    )
