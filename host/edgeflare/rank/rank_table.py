"""A ranking as it is shown: what was asked, a row for each model, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from edgeflare.bench.bench_table import show_estimate, show_number
from edgeflare.core.domain import PSNR
from edgeflare.pages.page import Bullets, Section, Sentences, Table
from edgeflare.rank.ranking import Ranked, Ranking

_LEGEND = (
    "Mean queries: what a search made until it found something or its budget was spent. Found: "
    "searches that did. Area: under the curve of the share of all seeds that have a deviating "
    f"input within a nearness in dB, of images a PSNR from {PSNR.curve[0]:g} to "
    f"{PSNR.curve[1]:g} dB; 0 to 1, less is better. Dev.: other decisions than the original's, "
    "unmutated. Right: accuracy. Set: the labelled one. KB: the file. ms: median of single inputs "
    "on the device, without the link. In brackets: 95 % intervals, of mean queries and area by a "
    "bootstrap over the seeds."
)

_COLUMNS: Mapping[str, Callable[[Ranked], str]] = {
    "#": lambda one: str(one.place),
    "model": lambda one: one.name,
    "mean queries": lambda one: show_estimate(one.mean_queries),
    "area": lambda one: show_estimate(one.area),
    "found %": lambda one: show_estimate(one.success, 100.0),
    "seeds dev. %": lambda one: show_estimate(one.deviation_rate, 100.0),
    "seeds right %": lambda one: show_estimate(one.seed_accuracy, 100.0),
    "set dev. %": lambda one: show_estimate(one.labelled_deviation_rate, 100.0),
    "set right %": lambda one: show_estimate(one.labelled_accuracy, 100.0),
    "strength": lambda one: show_number(one.median_strength),
    "KB": lambda one: show_number(one.size_bytes / 1000),
    "ms": lambda one: show_number(one.latency_ms),
}
_MISSED_LEAST = (
    *("strength", "seeds right %", "seeds dev. %", "set right %", "set dev. %", "found %"),
    *("ms", "KB", "area"),
)


def ranking_section(ranking: Ranking, heading: str, sentences: Sequence[str]) -> Section:
    """Return a ranking as it is shown; columns that say nothing are left out.

    Args:
        ranking: what is shown.
        heading: what was asked.
        sentences: what the ranking says.

    """
    columns = [(name, *map(tell, ranking.models)) for name, tell in _COLUMNS.items()]
    header, *rows = zip(*(one for one in columns if set(one[1:]) != {"–"}), strict=True)
    table = Table(
        title="",
        header=header,
        rows=rows,
        note=_LEGEND,
        numbers_from=2,
        missed_least=_MISSED_LEAST,
    )
    return Section(
        id="ranking",
        title="Models, the hardest to make deviate first",
        blocks=[Sentences([heading]), table, Bullets(sentences)],
    )
