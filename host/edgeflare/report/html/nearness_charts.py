"""The share of the seeds that have a deviating input within a distance, drawn as curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from matplotlib.ticker import PercentFormatter

from edgeflare.report.entry_names import with_article
from edgeflare.report.html.chart import Chart, finish, lines_across, new_panel
from edgeflare.report.html.svg import COLOURS
from edgeflare.report.input_words import input_words
from edgeflare.report.nearness_curve import db_steps, linf_steps, most_levels, step_line
from edgeflare.run.nearness import curve_of, measure_name
from edgeflare.run.run_document import DbShare, LinfShare, RunDocument

T = TypeVar("T")


def by_nearness(document: RunDocument) -> Chart:
    """Draw the curve against nearness in dB, the nearest on the left.

    A seed that deviates itself stands at the left edge.
    """
    figure, panel = new_panel()
    low, high = curve_of(document)
    name = measure_name(document)
    _draw(panel, *step_line(db_steps(document), high, low))
    panel.set(xlabel=f"{name} to the seed, dB (nearer on the left)", xlim=(high, low))
    within = document.plan.get("within")
    if within is not None:
        panel.axvline(within, color=COLOURS["kernel"], linestyle="--", linewidth=1.5)
    rows = [_row(f"{one.at_least:g} dB", one) for one in document.nearness.db]
    middle = _middle(document.nearness.db)
    words = _words(middle.share, f"{with_article(name)} of at least {middle.at_least:g} dB")
    header = (f"{name} of at least", "seeds", "share")
    return finish("Nearness to the seeds", figure, words, header, rows)


def by_largest_change(document: RunDocument) -> Chart:
    """Draw the curve against the largest change of a value."""
    figure, panel = new_panel()
    most = most_levels([document])
    _draw(panel, *step_line(linf_steps(document), 0.0, most))
    panel.set(xlabel=f"L∞ to the seed, {input_words(document.pair).levels}", xlim=(0.0, most))
    rows = [_row(f"{one.at_most:g}", one) for one in document.nearness.linf]
    middle = _middle(document.nearness.linf)
    words = _words(middle.share, f"no value changed by more than {middle.at_most:g}")
    return finish("Largest change", figure, words, ("L∞ of at most", "seeds", "share"), rows)


def _draw(panel: Any, x: Sequence[float], y: Sequence[float]) -> None:
    panel.step(x, y, where="post", color=COLOURS["accent"], linewidth=2)
    panel.set(ylim=(0, 1.03), ylabel="seeds")
    panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    lines_across(panel)


def _row(level: str, one: DbShare | LinfShare) -> tuple[str, str, str]:
    return level, f"{one.seeds:,}", f"{one.share:.1%}"


def _middle(levels: Sequence[T]) -> T:
    return levels[len(levels) // 2 - 1]


def _words(share: float, what: str) -> str:
    return f"{share:.0%} of the seeds have a deviating input with {what}."
