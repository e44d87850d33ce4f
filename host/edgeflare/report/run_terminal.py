"""A run as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.campaign.dry_run import DryRun
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.models.run_pair import RunPair
from edgeflare.pages.answers.answer_form import shortened
from edgeflare.report.answer_words import EDITS, table_title
from edgeflare.report.arm_lines import taken_nodes
from edgeflare.report.coverage_table import CoverageTable, coverage_table
from edgeflare.report.entry_columns import device_numbers, entry_columns
from edgeflare.report.entry_names import last_parts, sort, worst_first
from edgeflare.report.figure_lines import (
    duplicate_lines,
    harm_lines,
    harms_in_words,
    kind_lines,
    nearness_lines,
    refinement_bound,
    spent_lines,
    systematic_lines,
    unmutated_lines,
    white_box_lines,
)
from edgeflare.report.folded_line import folded_line
from edgeflare.report.interface_lines import interface_lines
from edgeflare.run.nearness import counts
from edgeflare.run.plan import Plan
from edgeflare.run.replay_outcome import deviating_now, tried
from edgeflare.run.run_document import ChangedKind, Finding, ReplayOutcome, RunDevice, RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.undelegated_devices import undelegated
from edgeflare.untrusted_text import printable

_REPLAY_TITLES = {
    "deviating_seeds": "Seeds that deviate now",
    "findings": "Findings that deviate now",
    "flaky": "Unstable: deviating in some repetitions, or not always alike",
    "unverified": "Not tried yet: go on with --resume",
}
"""Of the tables of entries, by the key of the document."""

_MOST_IDS = 16

ROWS = 12
"""Findings that a table lists; the rest is a line that says where to find them."""

_SEED = 16
"""Characters of a seed's name in a line of its cell."""

CELL = 80
"""Characters of an answer that a table shows; a text may have thousands."""


def print_run(console: Console, document: RunDocument, where: str) -> None:
    """Print a run; `where` is the run directory, as the user knows it."""
    parts: list[RenderableType] = [_heading(document.pair, document.plan, document.devices)]
    if document.stopped_by:
        why = _STOPPED[document.stopped_by]
        once = " once that is corrected" if document.stopped_by == "error" else ""
        hint = f"{why}; the same command with --out {where} --resume goes on{once}"
        parts.append(Text(hint, style="yellow"))
    replay = document.replay
    totals = replay_totals(document, replay) if replay else _totals(document)
    parts += [*_warnings(document), totals]
    for key, title in (_REPLAY_TITLES if replay else _TITLES).items():
        if entries := document.lists[key]:
            parts.append(_findings(document, entries, table_title(document, key, title)))
    if covered := coverage_table(document):
        parts += _coverage(covered)
    parts.append(Text(f"Everything is in {where}.", style="dim"))
    console.print(Group(*parts))


_TITLES = {
    "deviating_seeds": "Seeds that already deviate",
    "findings": "Findings",
    "flaky": "Flaky: found once, not reproduced from the stored file",
    "unverified": "Not verified yet: go on with --resume",
}

_STOPPED = {
    **{by: f"stopped by {word} before its end" for by, word in INTERRUPTED_BY.items()},
    "total-time": "stopped by --total-time before its end",
    "infrastructure": "stopped by a failure before its end",
    "error": "ended by an error before its end",
    "killed": "killed before its end",
    "screening": "only the seeds were evaluated",
    "merge": "merged from parts that leave something to do",
}


def print_dry_run(
    console: Console, header: RunHeader, look: DryRun, seeds: int, where: str, notes: Sequence[str]
) -> None:
    """Print what a search would do, how inputs are read, and what the first seeds show of that."""
    plan = header.plan
    total = "no bound" if plan.total_queries is None else f"{plan.total_queries:,}"
    lines = [
        f"{seeds} seeds, at most {plan.max_queries:,} queries and {plan.time_limit:g} s for each; "
        f"queries for all together: {total}",
        refinement_bound(plan, seeds),
        f"ties of mutants {'count' if plan.goal.ties else 'do not count'}, "
        f"within {'any distance' if plan.within is None else f'{plan.within:g} dB'}, "
        f"least strength {plan.min_strength:g}",
        *interface_lines(header),
        *looked_lines(look),
        f"would write {where}; nothing was written",
        *(f"warning: {note}" for note in (*notes, *look.warnings, *undelegated(header.devices))),
    ]
    console.print(Group(heading(header), *map(Text, lines)))


def heading(header: RunHeader) -> Text:
    """Return what would run where."""
    return _heading(header.pair, header.plan, header.devices)


def looked_lines(look: DryRun, noun: str = "seeds") -> list[str]:
    """Return how often the arms are right, where labels are known, and how often they differ.

    Args:
        look: what the first inputs show.
        noun: what these are called.

    """
    lines = list(map(printable, look.given))
    if look.labelled:
        shares = ", ".join(f"{arm} {n / look.labelled:.1%}" for arm, n in look.right.items())
        truths = "have targets" if look.truth_measure else "are labelled"
        lines.append(
            f"of the first {look.seeds} {noun} {look.labelled} {truths}; right on them: {shares}"
        )
    if look.distance:
        means = ", ".join(f"{arm} {mean:.4g}" for arm, mean in look.distance.items())
        lines.append(f"{look.truth_measure} on them, on average: {means}")
    ties = f", {look.by_tie} of them by a tie" if look.deviating else ""
    harm = f": {harms_in_words(look.harm)}" if look.harm else ""
    lines.append(f"{look.deviating} of the first {look.seeds} {noun} already deviate{ties}{harm}")
    lines += [look.apart] if look.apart else []
    lines += [printable(f"{name}: {line}") for name, line in systematic_lines(look.systematic)]
    lines += map(printable, look.answers)
    if look.without_reset is not None:
        lines.append(f"without a reset of the variables {look.without_reset.in_words(noun)}")
    return [*lines, *(() if look.stages is None else look.stages.lines())]


def _heading(pair: RunPair, plan: Plan, devices: Sequence[RunDevice]) -> Text:
    """Return what runs where."""
    text = Text()
    text.append(printable(pair.name), style="bold")
    text.append(f" · {plan.strategy} · find {plan.goal.find} · run seed {plan.rng_seed}")
    numbers = device_numbers(devices)
    for device in devices:
        name, what = device.name, device.provenance
        text.append(
            f"\n{numbers[name] + ' ' if numbers else ''}{name}: {what.machine}, "
            f"{what.runtime} {what.runtime_version}, {what.kernels} kernels "
            f"({taken_nodes(what)}), "
            f"{what.threads} thread{'s' if what.threads != 1 else ''}"
        )
        if what.cache:
            text.append(f"\nagent and models stay on {name} in {what.cache}")
    if folded := folded_line(pair):
        text.append(f"\n{folded}")
    return text


def _warnings(document: RunDocument) -> list[Text]:
    return [Text(f"warning: {line}", style="yellow") for line in document.warnings]


def _totals(document: RunDocument) -> Table:
    totals = document.totals
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    searched = totals.seeds - totals.deviating_seeds
    # With `--ties include` they count, so nothing of them was set aside.
    ties = "" if document.plan.goal.ties else f"{totals.ties:,} mutants by a tie, "
    rows = [
        *unmutated_lines(document),
        *nearness_lines(document),
        ("seeds", f"{totals.seeds}, of which {totals.deviating_seeds} already deviate"),
        ("findings", f"{totals.findings} of {searched} ({totals.success_rate:.1%})"),
        ("causes", _counted(map(sort, document.findings)) or "–"),
        *kind_lines(document),
        *harm_lines(document),
        (
            "queries for a finding",
            f"{_number(totals.mean_queries)} mean, {_number(totals.median_queries)} median; "
            f"{_number(totals.mean_device_queries)} on the device",
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
        ("set aside", f"{ties}{totals.flaky} flaky"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _coverage(covered: CoverageTable) -> list[RenderableType]:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(covered.header):
        table.add_column(name, justify="left" if place < 2 else "right")
    for row in covered.rows:
        table.add_row(*row)
    lines = [Text(printable(line), style="dim") for line in covered.lines]
    return [table, *lines] if covered.rows else [*lines]


def _refined(findings: Sequence[Finding]) -> list[tuple[str, str]]:
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


def _findings(document: RunDocument, entries: Sequence[Finding], title: str) -> Table:
    columns = tuple(entry_columns(document, entries))
    # The column more that texts have would not fit a terminal of 80 columns otherwise.
    gap = 0 if EDITS in {column.name for column in columns} else 1
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False,
        show_edge=False, padding=(0, gap, 0, 0),
    )  # fmt: skip
    for column in columns:
        table.add_column(
            column.name,
            justify="right" if column.number else "left",
            overflow="fold" if column.long else "ellipsis",
            no_wrap=not column.long,
            min_width=len(column.name) if column.long else None,
            max_width=_SEED if column.name == "seed" else None,
        )
    shown = worst_first(entries)[:ROWS]
    for entry in shown:
        # As text, since names may read as markup.
        cells = (Text(shortened(printable(column.cell(entry)), CELL)) for column in columns)
        table.add_row(*cells, style="" if counts(entry) else "dim")
    if len(entries) > len(shown):
        table.caption = f"and {len(entries) - len(shown)} more"
        table.caption_justify = "left"
    return table


def _counted(values: Iterable[str]) -> str:
    counts = Counter(values)
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def replay_totals(document: RunDocument, replay: ReplayOutcome) -> Table:
    """Return what became of the inputs that were tried again."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    of = replay.of
    table.add_row("replay of", f"{last_parts(of.run)} (on {', '.join(of.devices)})")
    table.add_row("compressed model", _compressed(document, replay))
    table.add_row("deviating now", f"{deviating_now(document)} of {tried(document)} tried again")
    table.add_row("unstable", str(len(document.flaky)))
    mended = [entry.seed_id for entry in replay.mended]
    worse = replay.deviating_seeds
    table.add_row("mended", _ids([seed_id for seed_id in mended if seed_id not in worse]))
    but = [seed_id for seed_id in mended if seed_id in worse]
    if but:
        table.add_row("mended, but its seed deviates", _ids(but))
    for name, line in (*kind_lines(document), *duplicate_lines(document.totals)):
        table.add_row(name, line)
    changes = replay.changed_kind
    if changes:
        table.add_row("of another kind now", "; ".join(map(_change, changes[:_MOST_IDS])))
    table.add_row("seeds that deviate only now", _ids(worse))
    if replay.baseline is not None:
        table.add_row(f"new since {last_parts(replay.baseline)}", _ids(replay.new))
    return table


def _change(change: ChangedKind) -> str:
    return f"seed {change.seed_id}: {change.before} → {change.now}"


def _compressed(document: RunDocument, replay: ReplayOutcome) -> str:
    now, then = document.pair.compressed, replay.of.compressed
    if now == then:
        return last_parts(now)
    if last_parts(now) == last_parts(then):
        return f"{now} (then {then})"
    return f"{last_parts(now)} (then {last_parts(then)})"


def _ids(seed_ids: Sequence[int]) -> str:
    """Return how many, and which seeds they are of."""
    if not seed_ids:
        return "0"
    shown = ", ".join(map(str, seed_ids[:_MOST_IDS]))
    return f"{len(seed_ids)} (seed {shown}{', …' if len(seed_ids) > _MOST_IDS else ''})"
