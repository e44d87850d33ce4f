"""The figure of several runs: the share of seeds with a deviating input against its distance."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.report.entry_words import input_words
from edgeflare.report.figure_lines import add_legend, line_style
from edgeflare.run.nearness import curve_of, measure_name, nearness_db
from edgeflare.run.run_document import RunDocument

_Steps = tuple[list[float], list[float]]
"""Distances in the order of nearness, and the share of all seeds that have an input as near."""

_LEVELS = 255.0
"""Levels of the largest change that are drawn at least: those of an image."""


def draw_nearness(documents: Mapping[str, RunDocument], path: Path) -> None:
    """Draw a curve for each run as an SVG: by nearness in dB on the left, by L∞ on the right.

    Args:
        documents: the runs, by the names that they have in the figure.
        path: path of the SVG; the same runs give the same file.

    Raises:
        UserError: matplotlib is not installed, or a run is a replay, whose seeds are only those
            that led to something, or the runs do not measure nearness alike.

    """
    first, *others = documents.items()
    for name, document in documents.items():
        if document.replay is not None:
            raise UserError(f"{name} is a replay, which has no curve: leave it or --figure away")
    for name, document in others:
        if measure_name(document) != measure_name(first[1]):
            raise UserError(
                f"{name} measures nearness by {measure_name(document)}, {first[0]} by "
                f"{measure_name(first[1])}: draw runs of one kind of input with --figure"
            )
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise UserError(f"{path.name} needs matplotlib: pip install 'edgeflare[plots]'") from None
    low, high = curve_of(first[1])
    most = most_levels(documents.values())
    style = {"svg.hashsalt": "edgeflare", "svg.fonttype": "none", "text.parse_math": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(10.0, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for number, document in enumerate(documents.values()):
            line = line_style(number)
            left.step(*step_line(db_steps(document), high, low), where="post", **line)
            steps = step_line(linf_steps(document), 0.0, most)
            right.step(*steps, where="post", **line)
        name = measure_name(first[1])
        left.set(
            xlim=(high, low), ylim=(0, 1.02), xlabel=f"{name} to the seed, dB (nearer on the left)"
        )
        left.set_ylabel("share of the seeds with a deviating input")
        right.set(xlim=(0.0, most), xlabel=f"L∞ to the seed, {input_words(first[1].pair).levels}")
        for panel in (left, right):
            panel.grid(alpha=0.3)
        add_legend(right, list(documents), "lower right")
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_atomically(path, drawn.getvalue())


def db_steps(document: RunDocument) -> _Steps:
    """Return the curve of a run against nearness in dB: from the nearest on, the share so far."""
    known = [value for entry in document.deviations if (value := nearness_db(entry)) is not None]
    return _steps(sorted(known, reverse=True), document)


def linf_steps(document: RunDocument) -> _Steps:
    """Return the curve of a run against the largest change of a value, in levels."""
    return _steps(sorted(entry.distortion.linf for entry in document.deviations), document)


def most_levels(documents: Iterable[RunDocument]) -> float:
    """Return up to where the curves of runs against the largest change are drawn."""
    return max(_LEVELS, *(max(linf_steps(document)[0], default=0.0) for document in documents))


def step_line(steps: _Steps, begin: float, end: float) -> tuple[list[float], list[float]]:
    """Return the points of a curve to draw in steps, from one edge of a panel to the other."""
    distances, shares = steps
    least, most = sorted((begin, end))
    inside = [min(max(distance, least), most) for distance in distances]
    return [begin, *inside, end], [0.0, *shares, shares[-1] if shares else 0.0]


def _steps(distances: list[float], document: RunDocument) -> _Steps:
    seeds = max(1, document.totals.seeds)
    return distances, [count / seeds for count in range(1, len(distances) + 1)]
