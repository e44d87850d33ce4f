"""The figures of a run, a name and a line for each, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from edgeflare.pages.facts import count_of, in_words, number
from edgeflare.report.entry_words import (
    SORTS,
    input_words,
    last_part,
    last_parts,
    named_kind,
    sort,
    with_article,
)
from edgeflare.report.interface_lines import variables_in_words
from edgeflare.run.gate import counted, tie_harm, ties_count
from edgeflare.run.harm import NOBODY
from edgeflare.run.nearness import measure_name
from edgeflare.run.plan import SHOWN, Plan
from edgeflare.run.replay_outcome import deviating_now, tried
from edgeflare.run.run_document import DeviationRate, Finding, ReplayOutcome, RunDocument, Totals
from edgeflare.run.systematic.figures import (
    ClassFlow,
    ClippedOutput,
    ScoreShift,
    SystematicDifferences,
)
from edgeflare.statistics.binomial import exact_interval

Lines = list[tuple[str, str]]
"""What a figure is called, and what it is."""

_MOST_IDS: Final = 16

_MOST_LINES: Final = 3
"""Classes, scores or outputs that are written out."""


def run_figures(document: RunDocument, named: Callable[[str], str] = last_part) -> Lines:
    """Return the figures of a search or a replay.

    Args:
        document: the run.
        named: returns what a run is called, of its path.

    """
    replay = document.replay
    figures = (
        _search_figures(document) if replay is None else _replay_figures(document, replay, named)
    )
    strengths = [finding.strength for finding in document.findings if finding.strength is not None]
    if strengths:
        figures.append(("strongest", number(max(strengths), 3)))
    if document.unverified:
        figures.append(("not verified yet", f"{len(document.unverified):,}"))
    return figures


def _search_figures(document: RunDocument) -> Lines:
    totals = document.totals
    searched = totals.seeds - totals.deviating_seeds
    # With `--ties include` they count, so nothing of them was set aside.
    ties = "" if document.plan.goal.ties else f"{count_of(totals.ties, 'mutant')} by a tie, "
    return [
        *unmutated_lines(document),
        *nearness_lines(document),
        ("seeds", f"{totals.seeds:,}, of which {totals.deviating_seeds:,} already deviate"),
        ("findings", f"{totals.findings:,} of {searched:,} ({totals.success_rate:.1%})"),
        ("causes", _causes(document)),
        *kind_lines(document),
        *harm_lines(document),
        (
            "queries for a finding",
            "–"
            if totals.mean_queries is None
            else f"{number(totals.mean_queries)} mean, {number(totals.median_queries)} median; "
            f"{number(totals.mean_device_queries)} on the device",
        ),
        *spent_lines(totals),
        (
            "of the search",
            f"{totals.queries / max(totals.wall_seconds, 1e-9):,.0f} queries per second,"
            f" device busy {totals.device_busy_seconds:.1f} s",
        ),
        *white_box_lines(totals),
        *duplicate_lines(totals),
        *_refined(document.findings),
        ("set aside", f"{ties}{totals.flaky:,} flaky"),
    ]


def _causes(document: RunDocument) -> str:
    counts = Counter(map(sort, document.findings))
    return ", ".join(f"{counts[name]:,} {name}" for name in SORTS if counts[name]) or "–"


def _refined(findings: Sequence[Finding]) -> Lines:
    """Return what refining did to the findings; nothing where none was refined."""
    refined = [(entry, entry.refined) for entry in findings if entry.refined is not None]
    if not refined:
        return []
    line = (
        f"strength {median(before.strength_before or 0.0 for _, before in refined):.3f} → "
        f"{median(entry.strength or 0.0 for entry, _ in refined):.3f}, "
        f"L2 {median(before.distortion_before.l2 for _, before in refined):,.0f} → "
        f"{median(entry.distortion.l2 for entry, _ in refined):,.0f}"
    )
    return [("refined, medians", line)]


def _replay_figures(
    document: RunDocument, replay: ReplayOutcome, named: Callable[[str], str]
) -> Lines:
    """Return what became of the inputs that were tried again."""
    worse = replay.deviating_seeds
    mended = [entry.seed_id for entry in replay.mended]
    but = [seed_id for seed_id in mended if seed_id in worse]
    changes = [
        f"seed {changed_kind.seed_id}: {changed_kind.before} → {changed_kind.now}"
        for changed_kind in replay.changed_kind[:_MOST_IDS]
    ]
    if (more := len(replay.changed_kind) - len(changes)) > 0:
        changes.append(f"{more:,} more")
    new = []
    if replay.baseline is not None:
        new = [(f"new since {named(replay.baseline)}", _ids(replay.new))]
    return [
        ("deviating now", f"{deviating_now(document):,} of {tried(document):,} tried again"),
        *new,
        ("unstable", f"{len(document.flaky):,}"),
        ("mended", _ids([seed_id for seed_id in mended if seed_id not in worse])),
        *([("mended, but its seed deviates", _ids(but))] if but else []),
        ("seeds that deviate only now", _ids(worse)),
        ("causes", _causes(document)),
        *kind_lines(document),
        *harm_lines(document),
        *duplicate_lines(document.totals),
        *([("of another kind now", "; ".join(changes))] if changes else []),
    ]


def replayed_model(document: RunDocument) -> str:
    """Return the name of the compressed model of a replay, and what it was where it is another."""
    now = then = document.pair.compressed
    if document.replay is not None:
        then = document.replay.run.compressed
    if now == then:
        return last_part(now)
    shown = last_parts if last_part(now) == last_part(then) else last_part
    return f"{shown(now)} (then {shown(then)})"


def _ids(seed_ids: Sequence[int]) -> str:
    """Return how many, and which seeds they are of."""
    if not seed_ids:
        return "0"
    shown = ", ".join(map(str, seed_ids[:_MOST_IDS]))
    noun = "seed" if len(seed_ids) == 1 else "seeds"
    return f"{len(seed_ids):,} ({noun} {shown}{', …' if len(seed_ids) > _MOST_IDS else ''})"


def unmutated_lines(document: RunDocument) -> Lines:
    """Return how often inputs deviate as they are, and what variables have to do with that.

    Of replays that is only which variables the models have.
    """
    rates, variables = document.unmutated, _variable_lines(document)
    if rates is None:
        return variables
    figures = (
        ("unmutated seeds", rates.seeds),
        (f"unmutated test {input_words(document.pair).many}", rates.test),
    )
    lines = [(name, _rate(rate)) for name, rate in figures if rate is not None and rate.inputs]
    ties = _tie_line(document, rates.seeds) if rates.seeds.by_tie else ()
    return [*lines, *ties, *systematic_lines(rates.systematic), *variables]


def systematic_lines(found: SystematicDifferences | None) -> Lines:
    """Return what is one-sided over the seeds; nothing where nothing is significant.

    Classes and outputs in another order are warnings, and no lines.
    """
    if found is None:
        return []
    lines = {
        f"score on {found.second}": [_shift(shift) for shift in found.shifts],
        f"flow to {found.second}": [_flow(flow) for flow in found.flows],
        f"cut off on {found.second}": [
            _clipped(clipped_output, found.first) for clipped_output in found.clipped
        ],
    }
    return [(name, _first_few(each)) for name, each in lines.items() if each]


def spent_lines(totals: Totals) -> Lines:
    """Return what searching and refining took; nothing of refining where there was none."""
    searched = (
        "searching",
        f"{count_of(totals.queries, 'query', 'queries')}, {totals.device_queries:,} on the device,"
        f" {totals.wall_seconds:.1f} s",
    )
    if totals.refined is None:
        return [searched]
    steps = (
        ("strengthening", totals.strengthen_queries, totals.strengthen_seconds),
        ("shrinking", totals.shrink_queries, totals.shrink_seconds),
    )
    said = ", ".join(
        f"{name} {queries:,} in {seconds:.1f} s"
        for name, queries, seconds in steps
        if queries and seconds is not None  # of a step that was cut off nothing is known
    )
    inside = _white_box_spent(totals.refine_host_gradients, totals.refine_translated_evaluations)
    return [
        searched,
        (
            "refining",
            f"{count_of(totals.refine_queries or 0, 'query', 'queries')},"
            f" {totals.refine_device_queries:,} on the device,"
            f" {f'{inside}, ' if inside else ''}"
            f"{totals.refine_seconds:.1f} s{f': {said}' if said else ''}",
        ),
    ]


def refinement_bound(plan: Plan, seeds: int) -> str:
    """Return what refining the findings of a search may cost at most, as a line.

    Args:
        plan: plan of the search.
        seeds: how many are searched, each of which leads to one finding at most.

    """
    most = plan.most_refinement_queries
    if not most:
        return "findings are not refined (--strengthen 0, --shrink 0)"
    each, refined = "each finding is", seeds
    if plan.refine == "shown":
        each, refined = f"the {SHOWN} findings shown first are each", min(seeds, SHOWN)
    return (
        f"{each} refined by at most {count_of(most, 'query', 'queries')} more,"
        f" {refined * most:,} for {refined:,}:"
        f" --strengthen {plan.strengthen}, --shrink {plan.shrink}, of which 0 switches a step off"
    )


def nearness_lines(document: RunDocument) -> Lines:
    """Return what counts, and the share of seeds within distances."""
    plan, asked = document.plan, []
    if plan.within_db is not None:
        asked.append(f"within {plan.within_db:g} dB")
    if plan.min_strength:
        asked.append(f"strength from {plan.min_strength:g}")
    seeds = max(1, document.totals.seeds)
    counts = len(counted(document))
    low, high = exact_interval(counts, seeds)
    shares = ", ".join(
        f"{share.at_least_db:g} dB {share.share:.0%}" for share in document.nearness.db
    )
    return [
        (
            f"deviate {' and '.join(asked) or 'at any distance'}",
            f"{counts:,} of {count_of(seeds, 'seed')} ({counts / seeds:.1%}, 95 % interval"
            f" {low:.1%} to {high:.1%})",
        ),
        (
            f"seeds within {with_article(measure_name(document))} of",
            f"area {document.nearness.area:.3f}; {shares}",
        ),
    ]


def harm_lines(document: RunDocument) -> Lines:
    """Return who was right on the findings; nothing where no seed has a label that says it."""
    harm = document.totals.harm
    known = harm and harm.findings
    return [("who is right", harms_in_words(known))] if known and _labelled(known) else []


def count_kinds(entries: Iterable[Finding]) -> dict[str, int]:
    """Return how many deviations there are of each kind that the task tells apart, most first."""
    return dict(Counter(kind for kind in map(named_kind, entries) if kind).most_common())


def kind_lines(document: RunDocument) -> Lines:
    """Return how many findings there are of each kind; nothing where the task tells none apart."""
    kinds = count_kinds(document.findings)
    line = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return [("kinds", line)] if kinds else []


def duplicate_lines(totals: Totals) -> Lines:
    """Return how many findings are the same input; nothing where none is."""
    same = totals.duplicates
    if not same.triggers:
        return []
    line = (
        f"{same.exact:,} exact, {same.near:,} with near ones; "
        f"{same.distinct:,} distinct, of {count_of(same.distinct_seeds, 'seed')}"
    )
    return [("duplicates", line)]


def white_box_lines(totals: Totals) -> Lines:
    """Return how much was asked about the inside of the models; nothing where nothing was."""
    line = _white_box_spent(totals.host_gradients, totals.translated_evaluations)
    return [("white box", line)] if line else []


def _white_box_spent(gradients: int | None, evaluations: int | None) -> str:
    """Return how many white-box queries there were; empty where there was none."""
    if gradients is None or evaluations is None:
        return ""
    return (
        f"{count_of(gradients, 'host gradient')}, {count_of(evaluations, 'translated evaluation')}"
    )


def harms_in_words(harms: Mapping[str, int]) -> str:
    """Return counts by harm as a line: "2 original right, 1 both wrong"."""
    return ", ".join(f"{count:,} {in_words(name)}" for name, count in harms.items())


def who_was_right(entry: Finding) -> str | None:
    """Return who was right in a word for a table: "original", "neither", "both"; or None."""
    if not entry.harm:
        return None
    return {"both-wrong": "neither"}.get(entry.harm, entry.harm.partition("-")[0])


def right_in_words(figures: DeviationRate) -> str:
    """Return how often each arm is right: "original 97.3%, device 7.0%"; empty without labels."""
    right, labelled = figures.right or {}, figures.labelled or 1
    return ", ".join(f"{arm} {count / labelled:.1%}" for arm, count in right.items())


def _rate(figures: DeviationRate) -> str:
    line = (
        f"{figures.deviating:,} of {figures.inputs:,} deviate ({figures.rate:.2%}, "
        f"95 % interval {figures.low:.2%} to {figures.high:.2%})"
    )
    if figures.deviating:
        line = f"{line}, {figures.by_tie:,} of them by a tie"
    known, right = figures.harm, right_in_words(figures)
    line = f"{line}: {harms_in_words(known)}" if known and _labelled(known) else line
    return f"{line}; right: {right}" if right else line


def _tie_line(document: RunDocument, seeds: DeviationRate) -> Lines:
    """Return whether seeds that deviate by a tie count, and why."""
    helped, harmed, p = tie_harm(seeds)
    whether = "count" if ties_count(document) else "do not count"
    right = "nothing says who is right of those that deviate by a tie"
    if seeds.harm_by_tie and _labelled(seeds.harm_by_tie):
        right = (
            f"of those that deviate by a tie {harmed:,} are harmed and {helped:,} helped"
            f" (p = {p:.2g})"
        )
    return [
        (
            "seeds by a tie",
            f"{whether} for the exit code: {seeds.tied or 0:,} of"
            f" {count_of(seeds.inputs, 'seed')} tie, and {right}",
        )
    ]


def _variable_lines(document: RunDocument) -> Lines:
    """Return what the models keep from one inference to the next; nothing where nothing is kept."""
    words = variables_in_words(document.pair)
    lines = [("variables", words)] if words else []
    rates = document.unmutated
    if rates is not None and rates.without_reset is not None:
        lines.append(("without a reset", rates.without_reset.in_words()))
    return lines


def _shift(shift: ScoreShift) -> str:
    side, count = ("lower", shift.lower) if shift.median < 0.0 else ("higher", shift.higher)
    return (
        f"{_head(shift.head)}{shift.score} {side} on {count:,} of the"
        f" {shift.lower + shift.higher:,} seeds on which it changes,"
        f" median {shift.median:+.3g} (95 % interval {shift.low:+.3g} to "
        f"{shift.high:+.3g})"
    )


def _flow(flow: ClassFlow) -> str:
    return (
        f"{_head(flow.head)}{count_of(flow.left, 'seed')} left {flow.name}, {flow.came:,} came to"
        f" it (p {flow.p_corrected:.1g})"
    )


def _clipped(output: ClippedOutput, arm: str) -> str:
    side = "above" if output.side == "high" else "below"
    positions = count_of(output.positions, "position")
    most = f", those of {output.values:,} of its {positions} on most seeds"
    return (
        f"{output.share:.1%} of the {arm}'s values of {output.output} lie {side} {output.end:.4g},"
        f" where the range ends{most if output.values else ''}"
    )


def _first_few(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_LINES
    return "; ".join([*lines[:_MOST_LINES], *([f"{more} more"] if more > 0 else [])])


def _head(name: str) -> str:
    return f"{name}: " if name else ""


def _labelled(harms: Mapping[str, int]) -> bool:
    return not harms.keys() <= NOBODY
