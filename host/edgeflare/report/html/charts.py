"""The charts of a report, each with what it shows in words and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Final, TypeVar

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from edgeflare.pages.chart import (
    COLOURS,
    Chart,
    finish,
    lines_across,
    name_decades,
    new_panel,
    page_style,
)
from edgeflare.pages.facts import count_of, number
from edgeflare.report.entry_words import SORTS, input_words, sort, with_article
from edgeflare.report.nearness_figure import db_steps, linf_steps, most_levels, step_line
from edgeflare.run.nearness import curve_of, measure_name
from edgeflare.run.run_document import DbShare, LinfShare, RunDocument
from edgeflare.untrusted_text import for_html

_T = TypeVar("_T")

HATCHES = {"compression": "", "kernel": "////", "mixed": "....", "failure": "xxxx"}
"""What tells the sorts apart where colours don't."""

MARKERS = {"compression": "D", "kernel": "^", "mixed": "o", "failure": "X"}

MOST_OPERATORS = 12

LONGEST_NAME = 24
"""Letters of an operator's name beside its bar."""


def charts_of(document: RunDocument) -> tuple[Chart, ...]:
    """Draw the charts of a run; none if it found nothing, of a replay none about searching."""
    drawers: list[Callable[[RunDocument], Chart | None]] = [_causes, _strength, _distance]
    if document.replay is None:
        drawers = [by_nearness, by_largest_change, _success, _queries, *drawers, _operators]
    if not document.findings:
        return ()
    with page_style():
        return tuple(chart for draw in drawers if (chart := draw(document)) is not None)


def _success(document: RunDocument) -> Chart:
    """Draw which share of the seeds had led to a finding after how many queries."""
    seeds = max(1, document.totals.seeds - document.totals.deviating_seeds)
    queries = np.sort([entry.queries for entry in document.findings])
    asked = np.sort([entry.device_queries for entry in document.findings])
    figure, panel = new_panel()
    most = max(10.0, float(queries[-1]))
    for spent, name, line in ((queries, "all queries", "-"), (asked, "on the device", "--")):
        shares = np.arange(1, len(spent) + 1) / seeds
        x, y = [0.8, *np.maximum(spent, 1), most], [0.0, *shares, shares[-1]]
        colour = COLOURS["accent" if line == "-" else "kernel"]
        panel.step(x, y, where="post", color=colour, linestyle=line, linewidth=2, label=name)
    panel.set(xscale="log", xlim=(0.8, most), ylim=(0, 1.03), xlabel="queries of a chain")
    panel.set_ylabel("seeds with a finding")
    panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    name_decades(panel)
    _legend(panel)
    share = len(queries) / seeds
    levels = [*(level for level in (0.25, 0.5, 0.75, 0.9) if level < share), share]
    rows = [
        (
            f"{level:.0%}",
            number(_at(queries, level * seeds), 0),
            number(_at(asked, level * seeds), 0),
        )
        for level in levels
    ]
    words = (
        f"{share:.0%} of the seeds led to a finding; half of the findings took at most "
        f"{count_of(round(median(queries.tolist())), 'query', 'queries')}, and at most "
        f"{median(asked.tolist()):,.0f} on the device."
    )
    header = ("seeds with a finding", "queries", "device queries")
    return finish("Success against queries", figure, words, header, rows)


_ROUNDING: Final = 1e-6
"""What a share of the seeds, times the seeds, may be above the whole number that it is."""


def _at(spent: Any, rank: float) -> float:
    """Return what the seed of a rank had spent; a rank is a whole number but for rounding."""
    return float(spent[max(1, int(np.ceil(rank - _ROUNDING))) - 1])


def _queries(document: RunDocument) -> Chart:
    """Draw how many queries the findings took."""
    queries = np.array([entry.queries for entry in document.findings])
    edges = np.unique(np.rint(np.geomspace(1, max(10, queries.max() + 1), 15)))
    counts, _ = np.histogram(queries, edges)
    figure, panel = new_panel()
    panel.bar(
        edges[:-1], counts, np.diff(edges), align="edge",
        color=COLOURS["accent"], edgecolor=COLOURS["panel"], linewidth=1,
    )  # fmt: skip
    panel.set(xscale="log", xlim=(edges[0], edges[-1]), xlabel="queries", ylabel="findings")
    name_decades(panel)
    _whole(panel.yaxis)
    lines_across(panel)
    words = (
        f"From {queries.min():,} to {count_of(queries.max(), 'query', 'queries')} for a finding, "
        f"{np.median(queries):,.0f} in the middle."
    )
    rows = [
        (f"{low:,.0f}–{high - 1:,.0f}" if high - 1 > low else f"{low:,.0f}", f"{count:,}")
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
        if count
    ]
    return finish("Queries for a finding", figure, words, ("queries", "findings"), rows)


def _causes(document: RunDocument) -> Chart:
    """Draw how many findings have which cause."""
    counted = Counter(map(sort, document.findings))
    names = [name for name in SORTS if counted[name]]
    figure, panel = new_panel()
    bars = panel.barh(
        names, [counted[name] for name in names], height=0.6,
        color=[COLOURS[_tone(name)] for name in names], edgecolor=COLOURS["panel"], linewidth=0,
    )  # fmt: skip
    for bar, name in zip(bars, names, strict=True):
        bar.set_hatch(HATCHES[_tone(name)])
    total = sum(counted.values())
    panel.bar_label(
        bars, [f"{counted[name]:,} ({counted[name] / total:.0%})" for name in names],
        padding=4, color=COLOURS["ink"],
    )  # fmt: skip
    panel.set(xlabel="findings", xlim=(0, max(counted.values()) * 1.25))
    panel.set_ylim(max(2.0, len(names)) - 0.4, -0.6 - 0.4 * (len(names) == 1))
    _whole(panel.xaxis)
    _names_down(panel)
    rows = [(name, f"{counted[name]:,}", f"{counted[name] / total:.1%}") for name in names]
    words = ", ".join(f"{counted[name]:,} of {total:,} {name}" for name in names) + "."
    return finish("Causes", figure, words, ("cause", "findings", "share"), rows)


def _strength(document: RunDocument) -> Chart | None:
    """Draw how strong the findings are, by cause; None where none has a strength."""
    strengths: dict[str, list[float]] = {}
    for entry in document.findings:
        if entry.strength is not None:
            strengths.setdefault(_tone(sort(entry)), []).append(entry.strength)
    if not strengths:
        return None
    tones = [tone for tone in HATCHES if tone in strengths]
    values = np.concatenate([strengths[tone] for tone in tones])
    edges = np.linspace(min(0.0, values.min()), max(values.max(), 1e-3), 16)
    figure, panel = new_panel()
    below = np.zeros(len(edges) - 1)
    for tone in tones:
        counts, _ = np.histogram(strengths[tone], edges)
        panel.bar(
            edges[:-1], counts, np.diff(edges), bottom=below, align="edge", label=tone,
            color=COLOURS[tone], hatch=HATCHES[tone], edgecolor=COLOURS["panel"], linewidth=1,
        )  # fmt: skip
        below += counts
    panel.set(xlim=(edges[0], edges[-1]), xlabel="strength", ylabel="findings")
    panel.xaxis.set_major_locator(MaxNLocator(6))
    _whole(panel.yaxis)
    lines_across(panel)
    if len(tones) > 1:
        _legend(panel)
    rows = [
        (tone, *(f"{level:.4f}" for level in np.quantile(strengths[tone], (0, 0.5, 1))))
        for tone in tones
    ]
    words = (
        f"Half of the findings are at least {np.median(values):.4f} strong, "
        f"the strongest is {values.max():.4f}."
    )
    return finish("Strength", figure, words, ("cause", "least", "median", "most"), rows)


def _distance(document: RunDocument) -> Chart | None:
    """Draw strength against the distance to the seed: the best findings are strong and near."""
    spots: dict[str, list[tuple[float, float]]] = {}
    for entry in document.findings:
        if entry.strength is not None:
            spot = (entry.distortion.l2, entry.strength)
            spots.setdefault(_tone(sort(entry)), []).append(spot)
    if not spots:
        return None
    figure, panel = new_panel()
    for tone in (tone for tone in HATCHES if tone in spots):
        x, y = zip(*spots[tone], strict=True)
        panel.scatter(
            x, y, s=26 if len(x) < 200 else 12, marker=MARKERS[tone], label=tone, linewidths=0.4,
            color=COLOURS[tone], edgecolors=COLOURS["panel"],
        )  # fmt: skip
    panel.set(xlabel=f"L2 to the seed, {input_words(document.pair).levels}", ylabel="strength")
    panel.set_xlim(0, 1.05 * max(x for some in spots.values() for x, _ in some) or 1.0)
    if len(spots) > 1:
        _legend(panel)
    found = [spot for tone in HATCHES for spot in spots.get(tone, ())]
    l2, strengths = np.array(found).T
    words = (
        f"The findings are {l2.min():,.0f} to {l2.max():,.0f} away from their seeds, "
        f"{np.median(l2):,.0f} in the middle; the strongest is {l2[strengths.argmax()]:,.0f} away."
    )
    rows = [
        (
            tone,
            *(f"{level:,.0f}" for level in np.quantile(np.array(spots[tone])[:, 0], (0, 0.5, 1))),
        )
        for tone in HATCHES
        if tone in spots
    ]
    return finish(
        "Distance and strength", figure, words, ("cause", "nearest", "median", "farthest"), rows
    )


def _operators(document: RunDocument) -> Chart | None:
    """Draw each operator's share of all mutations on the way to a finding; None without any."""
    named = [[for_html(name) for name in entry.operators] for entry in document.findings]
    counted = Counter(name for names in named for name in names)
    if not counted:
        return None
    total = sum(counted.values())
    top = counted.most_common(MOST_OPERATORS)
    figure, panel = new_panel()
    # Of a long name the beginning is shown, so that room is left for the bars.
    names = [
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name, _ in top
    ]
    shares = [count / total for _, count in top]
    bars = panel.barh(names, shares, height=0.65, color=COLOURS["accent"])
    panel.bar_label(bars, [f"{share:.0%}" for share in shares], padding=4, color=COLOURS["ink"])
    panel.set(xlabel="share of the mutations", xlim=(0, max(shares) * 1.15))
    panel.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    panel.invert_yaxis()
    _names_down(panel)
    within = Counter(name for names in named for name in set(names))
    rows = [
        (name, f"{count:,}", f"{count / total:.1%}", f"{within[name]:,}")
        for name, count in counted.most_common()
    ]
    words = f"{names[0]} made {shares[0]:.0%} of the {total:,} mutations on the way to a finding."
    header = ("operator", "mutations", "share", "findings that it is in")
    return finish("Operators", figure, words, header, rows)


def _tone(name: str) -> str:
    """Return the colour of a sort of finding."""
    return name if name in HATCHES else "failure"


def _legend(panel: Any) -> None:
    """Put the legend above, where it hides nothing."""
    panel.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2)


def _whole(axis: Any) -> None:
    axis.set_major_locator(MaxNLocator(5, integer=True))


def _names_down(panel: Any) -> None:
    """Give the vertical axis to names."""
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"])
    panel.spines["left"].set_visible(False)
    panel.xaxis.set_minor_locator(NullLocator())


def by_nearness(document: RunDocument) -> Chart:
    """Draw the curve against nearness in dB, the nearest on the left.

    A seed that deviates itself stands at the left edge.
    """
    figure, panel = new_panel()
    low, high = curve_of(document)
    name = measure_name(document)
    _draw(panel, *step_line(db_steps(document), high, low))
    panel.set(xlabel=f"{name} to the seed, dB (nearer on the left)", xlim=(high, low))
    within = document.plan.within_db
    if within is not None:
        panel.axvline(within, color=COLOURS["kernel"], linestyle="--", linewidth=1.5)
    rows = [_row(f"{share.at_least_db:g} dB", share) for share in document.nearness.db]
    middle = _middle(document.nearness.db)
    words = _words(middle.share, f"{with_article(name)} of at least {middle.at_least_db:g} dB")
    header = (f"{name} of at least", "seeds", "share")
    return finish("Nearness to the seeds", figure, words, header, rows)


def by_largest_change(document: RunDocument) -> Chart:
    """Draw the curve against the largest change of a value."""
    figure, panel = new_panel()
    most = most_levels([document])
    _draw(panel, *step_line(linf_steps(document), 0.0, most))
    panel.set(xlabel=f"L∞ to the seed, {input_words(document.pair).levels}", xlim=(0.0, most))
    rows = [_row(f"{share.at_most_levels:g}", share) for share in document.nearness.linf]
    middle = _middle(document.nearness.linf)
    words = _words(middle.share, f"no value changed by more than {middle.at_most_levels:g}")
    return finish("Largest change", figure, words, ("L∞ of at most", "seeds", "share"), rows)


def _draw(panel: Any, x: Sequence[float], y: Sequence[float]) -> None:
    panel.step(x, y, where="post", color=COLOURS["accent"], linewidth=2)
    panel.set(ylim=(0, 1.03), ylabel="seeds")
    panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    lines_across(panel)


def _row(level: str, share: DbShare | LinfShare) -> tuple[str, str, str]:
    return level, f"{share.seeds:,}", f"{share.share:.1%}"


def _middle(levels: Sequence[_T]) -> _T:
    return levels[len(levels) // 2 - 1]


def _words(share: float, what: str) -> str:
    return f"{share:.0%} of the seeds have a deviating input with {what}."
