"""A ranking as it is shown: what was asked, a row for each model, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from edgeflare.bench.bench_document import show_estimate, show_number
from edgeflare.core.domain import PSNR
from edgeflare.pages.facts import count_of
from edgeflare.pages.page import Bullets, Section, Sentences, Table
from edgeflare.rank.ranking import ModelComparison, Ranked, Ranking, seeds_needed

_LEGEND: Final = {
    "mean queries": "Mean queries: what a search made until it found something or its budget was "
    "spent.",
    "found": "Found: searches that did.",
    "area": "Area: under the curve of the share of all seeds that have a deviating input within a "
    f"nearness in dB, of images a PSNR from {PSNR.curve[0]:g} to {PSNR.curve[1]:g} dB; 0 to 1, "
    "less is better.",
    "dev.": "Dev.: other decisions than the original's, unmutated.",
    "right": "Right: accuracy.",
    "set": "Set: the labelled one.",
    "KB": "KB: the file.",
    "ms": "ms: median of single inputs on the device, without the link.",
}
"""What columns mean in whose names a word is."""

_INTERVALS: Final = (
    "In brackets: 95 % intervals, of mean queries and area by a bootstrap over the seeds."
)

_COLUMNS: Mapping[str, Callable[[Ranked], str]] = {
    "#": lambda model: str(model.rank),
    "model": lambda model: model.name,
    "mean queries": lambda model: show_estimate(model.mean_queries),
    "area": lambda model: show_estimate(model.area),
    "found %": lambda model: show_estimate(model.success_rate, 100.0),
    "seeds dev. %": lambda model: show_estimate(model.deviation_rate, 100.0),
    "seeds right %": lambda model: show_estimate(model.seed_accuracy, 100.0),
    "set dev. %": lambda model: show_estimate(model.labelled_deviation_rate, 100.0),
    "set right %": lambda model: show_estimate(model.labelled_accuracy, 100.0),
    "strength": lambda model: show_number(model.median_strength),
    "KB": lambda model: show_number(model.size_bytes / 1000),
    "ms": lambda model: show_number(model.latency_seconds * 1000.0),
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
    header, *rows = zip(*(column for column in columns if set(column[1:]) != {"–"}), strict=True)
    words = {word for name in header for word in (name, *name.split())}
    meant = [meaning for word, meaning in _LEGEND.items() if word in words]
    table = Table(
        title="",
        header=header,
        rows=rows,
        note=" ".join([*meant, _INTERVALS]),
        numbers_from=2,
        missed_least=_MISSED_LEAST,
    )
    return Section(
        id="ranking",
        title="Models, the hardest to make deviate first",
        blocks=[Sentences([heading]), table, Bullets(sentences)],
    )


def sentences(ranking: Ranking, strategy: str, budget: int) -> list[str]:
    """Return sentences on what is significant, what is not, and what limits the figures."""
    return [
        _first(ranking, strategy),
        *_told_apart(ranking),
        *_not_told_apart(ranking),
        *_too_few(ranking),
        *_area(ranking),
        *_accuracy(ranking),
        *_labelled_set(ranking),
        *_deviating(ranking),
        *_capped(ranking, budget),
        *_unfound(ranking),
        *_cut_by_time(ranking),
    ]


def _first(ranking: Ranking, strategy: str) -> str:
    best = [model for model in ranking.models if model.rank == 1]
    names = _list([model.name for model in best])
    seeds = count_of(len(ranking.shared_seeds), "seed")
    basis = f"by {strategy}, on the {seeds} on which all of them agree"
    if len(best) == len(ranking.models):
        return (
            f"Nothing is significant: no model takes more queries than another beyond chance, "
            f"{basis}."
        )
    if len(best) > 1:
        return f"{names} share the first place: of them none is beaten, {basis}."
    need = show_number(best[0].mean_queries.value)
    return f"{names} is hardest to make deviate: {need} queries on the mean, {basis}."


def _told_apart(ranking: Ranking) -> Iterator[str]:
    significant = [comparison for comparison in ranking.comparisons if comparison.significant]
    if not significant:
        return
    worst = max(comparison.p_corrected for comparison in significant)
    count = len(ranking.comparisons)
    yield (
        f"Significant (p at most {_p(worst)}, corrected for {count_of(count, 'comparison')}): "
        f"{_over(ranking, [(comparison.first, comparison.second) for comparison in significant])}."
    )


def _over(ranking: Ranking, pairs: Sequence[tuple[int, int]]) -> str:
    """Say which models are better than which, given the positions of the better and the worse."""
    beaten: dict[str, list[str]] = {}
    for better, worse in sorted(pairs):
        beaten.setdefault(_name(ranking, better), []).append(_name(ranking, worse))
    winners: dict[tuple[str, ...], list[str]] = {}
    for winner, losers in beaten.items():
        winners.setdefault(tuple(losers), []).append(winner)
    return "; ".join(f"{_list(names)} over {_list(over)}" for over, names in winners.items())


def _too_few(ranking: Ranking) -> Iterator[str]:
    """Say where not even the clearest difference could be told from chance."""
    seeds, comparisons = len(ranking.shared_seeds), len(ranking.comparisons)
    needed = seeds_needed(comparisons)
    if seeds < needed:
        area_may = ranking.area_comparisons and ranking.seeds >= needed
        what = "no difference in queries" if area_may else "nothing"
        yield (
            f"With {count_of(seeds, 'seed')} {what} can be significant: "
            f"{count_of(comparisons, 'comparison')} "
            f"take{'s' * (comparisons == 1)} at least {needed}; raise --limit, or give more seeds."
        )


def _area(ranking: Ranking) -> Iterator[str]:
    areas = [(model.area.value, model.name) for model in ranking.models if model.area is not None]
    if not ranking.area_comparisons:
        yield "The area is left out: with --shrink 0 no finding is brought near to its seed."
        return
    (low, best), (high, worst) = min(areas), max(areas)
    found = sum(area_comparison.significant for area_comparison in ranking.area_comparisons)
    yield (
        f"Area, on all {count_of(ranking.seeds, 'seed')}: from {best} with {show_number(low)} to "
        f"{worst} with {show_number(high)}. Significant by area: {found} of "
        f"{count_of(len(ranking.area_comparisons), 'comparison')}; by queries: "
        f"{sum(comparison.significant for comparison in ranking.comparisons)}."
    )
    yield from _area_and_queries(ranking)


def _area_and_queries(ranking: Ranking) -> Iterator[str]:
    """Say where one of the two measures tells models apart that the other does not."""
    area_alone, queries_alone, contrary = [], [], []
    for queries, area in zip(ranking.comparisons, ranking.area_comparisons, strict=True):
        by_queries = (area.first, area.second)  # The better one, then the worse one.
        by_area = by_queries if area.difference.value < 0.0 else by_queries[::-1]
        if area.significant and not queries.significant:
            area_alone.append(by_area)
        elif queries.significant and not area.significant:
            queries_alone.append(by_queries)
        elif area.significant and by_area != by_queries:
            contrary.append(by_area)
    for what, pairs in (
        ("Significant by area, not by queries", area_alone),
        ("Significant by queries, not by area", queries_alone),
        ("Significant by area, the contrary of queries", contrary),
    ):
        if pairs:
            yield f"{what}: {_over(ranking, pairs)}."


def _not_told_apart(ranking: Ranking) -> Iterator[str]:
    others = {
        (comparison.first, comparison.second): comparison
        for comparison in ranking.comparisons
        if not comparison.significant
    }
    groups: list[str] = []
    said: set[tuple[int, int]] = set()
    for first, last in _neighbours(others, len(ranking.models)):
        names = [_name(ranking, position) for position in range(first, last + 1)]
        inside = list(combinations(range(first, last + 1), 2))
        groups.append(f"{_list(names)} ({_chance([others[pair] for pair in inside])})")
        said.update(inside)
    for (first, second), other in others.items():
        if (first, second) not in said:
            names = [_name(ranking, first), _name(ranking, second)]
            groups.append(f"{_list(names)} ({_chance([other])})")
    if groups:
        yield f"Not significant, so their order means nothing: {'; '.join(groups)}."


def _neighbours(pairs: Collection[tuple[int, int]], models: int) -> Iterator[tuple[int, int]]:
    """Yield the longest stretches of the order in which no two models are told apart."""
    reached = 0
    for first in range(models):
        last = first
        while last + 1 < models and all((i, last + 1) in pairs for i in range(first, last + 1)):
            last += 1
        if last > max(first, reached):
            yield first, last
        reached = max(reached, last)


def _accuracy(ranking: Ranking) -> Iterator[str]:
    models = ranking.models
    for what, rights in (
        ("labelled seed{}", [model.right for model in models]),
        ("image{} of the labelled set", [model.labelled_right for model in models]),
    ):
        known = [right for right in rights if right is not None]
        if len(known) == len(models):
            shares = [right.compressed / right.inputs for right in known]
            originals = [right.original / right.inputs for right in known]
            # What a model has no answer to is none of its own.
            fewest, most = (end(right.inputs for right in known) for end in (min, max))
            on = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
            yield (
                f"Accuracy on the {on} {what.format('s' * (most != 1))}: "
                f"{_span(shares)}, the original {_span(originals, '')}."
            )


def _labelled_set(ranking: Ranking) -> Iterator[str]:
    """Say where the deviations on the labelled set tell what the queries do not, or the contrary.

    Two models differ on the set where their intervals do not overlap.
    """
    silent, contrary = [], []
    for comparison in ranking.comparisons:
        first, second = ranking.models[comparison.first], ranking.models[comparison.second]
        a, b = first.labelled_deviation_rate, second.labelled_deviation_rate
        if a is None or b is None or (a.low <= b.high and b.low <= a.high):
            continue
        rates = f"{first.name} {a.value:.2%} and {second.name} {b.value:.2%}"
        if not comparison.significant:
            silent.append(rates)
        elif a.value > b.value:
            contrary.append(rates)
    if silent:
        yield f"Told apart by deviations on the labelled set, not by queries: {'; '.join(silent)}."
    if contrary:
        yield f"Deviations on the labelled set say the contrary of queries: {'; '.join(contrary)}."


def _deviating(ranking: Ranking) -> Iterator[str]:
    parts = [
        f"{model.name} on {model.deviating_seeds}"
        for model in ranking.models
        if model.deviating_seeds
    ]
    if parts:
        yield (
            f"Of {count_of(ranking.seeds, 'seed')} some deviate unmutated and are outside the rank,"
            f" look at them first: {_list(parts)}."
        )


def _capped(ranking: Ranking, budget: int) -> Iterator[str]:
    parts = [
        f"{model.searches - model.findings} of {model.searches} of {model.name}"
        for model in ranking.models
        if model.findings < model.searches
    ]
    if parts:
        yield (
            f"Searches that found nothing count as {count_of(budget, 'query', 'queries')}, though "
            f"they would have needed more: {_list(parts)}."
        )


def _unfound(ranking: Ranking) -> Iterator[str]:
    for model in ranking.models:
        if not model.findings:
            yield (
                f"Nothing was found on {model.name}: with 95 % confidence at most "
                f"{model.success_rate.high:.1%} of such seeds lead to a deviation within the"
                " budget."
            )


def _cut_by_time(ranking: Ranking) -> Iterator[str]:
    cut = [model for model in ranking.models if model.cut_by_time]
    if cut:
        yield (
            f"The time limit ended searches of {_list([model.name for model in cut])} before their "
            "budget: the rank depends on this machine's speed; raise --max-time."
        )


def _name(ranking: Ranking, position: int) -> str:
    return ranking.models[position].name


def _chance(compared: Sequence[ModelComparison]) -> str:
    if all(
        comparison.difference.low == comparison.difference.high == 0.0 for comparison in compared
    ):
        return "the same queries from every seed"
    least = min(comparison.p_corrected for comparison in compared)
    alone = len(compared) == 1 or _p(least) == "1"
    return f"p = {_p(least)}" if alone else f"p at least {_p(least)}"


def _span(shares: Sequence[float], every: str = "all ") -> str:
    low, high = f"{min(shares):.2%}", f"{max(shares):.2%}"
    return f"{low} to {high}" if low != high else f"{every}{low}"


def _p(p: float) -> str:
    return "1" if p >= 0.995 else f"{p:.2g}"


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
