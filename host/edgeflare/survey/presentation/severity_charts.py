"""Charts of a survey: rates, accuracy and distance of each arm against severity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.ticker import MaxNLocator, PercentFormatter

from edgeflare.pages.chart import COLOURS, Chart, finish, new_panel, page_style
from edgeflare.statistics.mover import IntervalEstimate
from edgeflare.survey.rates.rate_words import percent
from edgeflare.survey.rates.slices import ExactShare, SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument
from edgeflare.untrusted_text import for_html

_Given = TypeVar("_Given")

APART = 0.08
"""How far lines stand apart along the axis, so that their intervals do not lie on one another."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a chart.

    Attributes:
        name: the line's name in the legend.
        colour: a key of `COLOURS`.
        marker, dashes: what tells it apart where colours don't.
        values: an estimate for each severity, or a figure that is exact; None where there is none.

    """

    name: str
    colour: str
    marker: str
    dashes: str
    values: Sequence[IntervalEstimate | float | None]


def severity_charts(document: SurveyDocument) -> tuple[Chart, ...]:
    """Draw the charts of a survey; none where only one severity or none was surveyed.

    Args:
        document: as `read_survey` returns it.

    """
    severities = document.by_severity.slices
    if not severities:
        return ()
    slices = [document.unchanged, *severities]
    with page_style():
        charts = (_rates(slices), _accuracy(slices), _far(document, slices))
        return tuple(chart for chart in charts if chart is not None)


def _rates(slices: Sequence[SurveySlice]) -> Chart:
    compression = [_share(slice_.compression) for slice_ in slices]
    lines = [
        _Line("device", "ink", "o", "-", [slice_.deviation for slice_ in slices]),
        _Line("by compression", "compression", "D", "--", compression),
        _Line("by kernels", "kernel", "^", ":", [slice_.kernel for slice_ in slices]),
    ]
    first, last = slices[0].rate.value, slices[-1].rate.value
    words = (
        f"From {percent(first)} of the unchanged inputs to {percent(last)} under {slices[-1].name}."
    )
    return _chart("Deviations against severity", words, slices, lines, "deviating")


def _accuracy(slices: Sequence[SurveySlice]) -> Chart | None:
    given = [slice_.accuracy for slice_ in slices]
    known = [accuracy for accuracy in given if accuracy is not None]
    if not known:
        return None
    lines = [
        _Line(
            "original",
            "muted",
            "s",
            "-",
            _values(given, lambda accuracy: _share(accuracy.original)),
        ),
        _Line(
            "twin", "compression", "D", "--", _values(given, lambda accuracy: _share(accuracy.twin))
        ),
        _Line("device", "ink", "o", "-", _values(given, lambda accuracy: accuracy.device)),
    ]
    device = [accuracy.device.value for accuracy in known]
    words = f"The device is right on {percent(device[0])} to {percent(device[-1])}."
    return _chart("Accuracy against severity", words, slices, lines, "right")


def _far(document: SurveyDocument, slices: Sequence[SurveySlice]) -> Chart | None:
    given = [slice_.distance for slice_ in slices]
    if document.distance is None or not any(given):
        return None
    lines = [
        _Line("twin", "compression", "D", "--", _values(given, lambda distance: distance.twin)),
        _Line("device", "ink", "o", "-", _values(given, lambda accuracy: accuracy.device)),
    ]
    noun = for_html(document.distance)
    words = f"The mean {noun} of the arms."
    title = "Distance against severity"
    return _chart(title, words, slices, lines, noun, shares=False)


def _values(
    given: Iterable[_Given | None], value: Callable[[_Given], IntervalEstimate | float | None]
) -> list[IntervalEstimate | float | None]:
    return [None if accuracy is None else value(accuracy) for accuracy in given]


def _share(share: ExactShare | None) -> float | None:
    return None if share is None else share.share


def _chart(
    title: str,
    words: str,
    slices: Sequence[SurveySlice],
    lines: Sequence[_Line],
    label: str,
    *,
    shares: bool = True,
) -> Chart:
    figure, panel = new_panel()
    severities = [slice_.severity or 0 for slice_ in slices]
    drawn = [
        drawn_line for drawn_line in lines if any(value is not None for value in drawn_line.values)
    ]
    marks = []
    for at, line in enumerate(drawn):
        aside = APART * (at - (len(drawn) - 1) / 2)
        marks.append(_draw(panel, line, [severity + aside for severity in severities]))
    panel.set(xlabel="severity; 0: unchanged", ylabel=label, xticks=severities)
    if shares:
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
        low, high = panel.get_ylim()
        panel.set_ylim(0.0 if label == "deviating" else max(low, 0.0), min(high, 1.0))
    panel.yaxis.set_major_locator(MaxNLocator(6))
    panel.legend(
        handles=marks,  # in the order of the lines
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),  # above the panel, where it hides no line
        ncols=len(drawn),
        borderaxespad=0.7,
        fontsize=8,
        labelcolor=COLOURS["ink"],
        handlelength=2.4,
    )
    return finish(title, figure, words)


def _draw(panel: Any, line: _Line, places: Sequence[float]) -> Any:
    """Draw a line, and return what stands for it in the legend."""
    points = [(at, v) for at, v in zip(places, line.values, strict=True) if v is not None]
    x, y = [at for at, _ in points], [v if isinstance(v, float) else v.value for _, v in points]
    look = {
        "color": COLOURS[line.colour],
        "marker": line.marker,
        "linestyle": line.dashes,
        "label": line.name,
        "linewidth": 1.6,
        "markersize": 5,
        "clip_on": False,  # a mark on the edge, such as of 0 or 100 %, is drawn whole
    }
    estimates = [v for _, v in points if not isinstance(v, float)]
    if len(estimates) < len(points):
        return panel.plot(x, y, **look)[0]
    spans = [
        [max(0.0, v.value - v.low) for v in estimates],
        [max(0.0, v.high - v.value) for v in estimates],
    ]
    return panel.errorbar(x, y, yerr=spans, capsize=3, elinewidth=1.0, **look)
