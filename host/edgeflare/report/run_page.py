"""A run as a page: what was found, its figures, its entries, and what ran where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from shlex import quote
from types import MappingProxyType
from typing import Final

from rich.console import Console

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.facts import count_of, details, number
from edgeflare.pages.page import (
    Block,
    Facts,
    Illustration,
    KeyFigures,
    Page,
    Section,
    Sentences,
    Table,
    row_groups,
)
from edgeflare.pages.terminal import print_page
from edgeflare.report.arm_lines import arm_lines, device_numbers, folded_line
from edgeflare.report.entry_words import (
    answer_cell,
    answer_columns,
    answer_gist,
    answer_words,
    cause_of,
    input_words,
    last_part,
    last_parts,
    named_kind,
    order_words,
    seed_of,
    show_nearness,
    worst_first,
)
from edgeflare.report.run_figures import (
    replayed_model,
    run_figures,
    who_was_right,
)
from edgeflare.run.gate import counted, may_count_yet
from edgeflare.run.nearness import counts, nearness_db
from edgeflare.run.plan import SHOWN
from edgeflare.run.replay_outcome import deviating_now, regressed, tried
from edgeflare.run.run_document import Finding, ReplayOutcome, RunDocument, to_json

Draw = Callable[[], str]

_SEVERAL: Final = ("causes", "kinds", "who is right", "duplicates", "white box", "set aside")
"""Figures that are several counts, of which none is the first."""

ROWS: Final = SHOWN
"""Entries that are listed where there is little room."""

LISTS: Final = {
    "deviating_seeds": (
        "deviating",
        "Seeds that already deviate",
        "Nothing was changed: on these inputs, as they are, {arms} {differ}.",
    ),
    "findings": ("findings", "Findings", "Each was evaluated three times from its stored file."),
    "flaky": (
        "flaky",
        "Flaky",
        "Found once, but not every time again when evaluated from the stored file. They are not"
        " findings.",
    ),
    "unverified": (
        "unverified",
        "Not verified yet",
        "The run was stopped before these could be evaluated again. It goes on with --resume.",
    ),
}
"""The lists of a run by their key in the document: place in the page, title and words."""

ALIKE: Final = "alike"
"""The column that says how many entries share a row."""

_SHARED: Final = (
    "{entries:,} in {rows}: those that are alike in all words share one, with seed, scores"
    " and figures of the first"
)

REPLAY_LISTS: Final = {
    "deviating_seeds": ("deviating", "Seeds that deviate now", LISTS["deviating_seeds"][2]),
    "findings": ("findings", "Findings that deviate now", LISTS["findings"][2]),
    "flaky": ("flaky", "Unstable", "They deviate in some repetitions, or not always alike."),
    "mended": ("mended", "Mended", "They do not deviate any more."),
    "unverified": (
        "unverified",
        "Not tried yet",
        "The replay was stopped before these could be tried again. It goes on with --resume.",
    ),
}

_STOPPED: Final = {
    **{by: f"stopped by {word} before its end" for by, word in INTERRUPTED_BY.items()},
    "time-limit": "stopped by --time-limit before its end",
    "infrastructure": "stopped by a failure before its end",
    "error": "ended by an error before its end",
    "killed": "killed before its end",
    "screening": "ended after its seeds were evaluated, and nothing was searched",
    "merge": "merged from parts that leave something to do",
}


def run_page(
    document: RunDocument,
    drawn: Mapping[str, Draw] = MappingProxyType({}),
    where: str | None = None,
) -> Page:
    """Return what a run says.

    Args:
        document: the run.
        drawn: what draws the parts that only a browser shows, by the section's place in the page:
            "charts", "units", and the lists of entries.
        where: the run directory as the user knows it; None for what is passed on, which tells no
            folders of the machine.

    """
    named = last_part if where is None else last_parts
    replay = document.replay
    strength = answer_words(document.pair).strength
    query = "" if replay else " A query is one distinct mutated input."
    bad = bool(counted(document)) if document.replay is None else regressed(document)
    return Page(
        kind="EdgeFlare report" if replay is None else "EdgeFlare replay",
        name=document.pair.name,
        on=", ".join(device.name for device in document.devices),
        mark="fail" if bad else "attention" if document.stopped_by else "pass",
        lead=_search_lead(document) if replay is None else _replay_lead(document, replay, named),
        warnings=[*_stopped(document, where or "RUN"), *document.warnings],
        sections=[
            Section(
                id="figures",
                title="Figures",
                words=f"Strength is {strength}.{query}",
                blocks=[KeyFigures(run_figures(document, named), _SEVERAL)],
            ),
            Section(id="coverage", title="Neuron coverage", blocks=coverage_blocks(document)),
            Section(id="charts", title="Charts", blocks=_illustration(drawn, "charts")),
            Section(id="units", title="Hidden units", blocks=_illustration(drawn, "units")),
            *_lists(document, drawn),
            Section(id="ran", title="What ran where", blocks=list(_ran(document, where))),
            Section(
                id="known",
                title="All that is known of pair, plan, figures and devices",
                blocks=list(_known(document)),
                brief=False,
            ),
        ],
        source="run.json",
        version=document.edgeflare,
    )


def print_run(console: Console, document: RunDocument, where: str) -> None:
    """Print a run; `where` is the run directory, as the user knows it."""
    print_page(console, run_page(document, where=where), where)


def _search_lead(document: RunDocument) -> str:
    """Return the result of a search in a sentence."""
    totals, arms = document.totals, _arms(document)
    differ = answer_words(document.pair).differ
    if not totals.findings and not totals.deviating_seeds:
        waiting = len(document.unverified)
        if not waiting:
            return f"No input was found on which {arms} {differ}"
        inputs = "1 input was" if waiting == 1 else f"{waiting:,} inputs were"
        return f"{inputs} found on which {arms} {differ}, and none is verified yet"
    searched = totals.seeds - totals.deviating_seeds
    yet = " yet" if may_count_yet(document) else ""
    otherwise = "" if counted(document) else f"; none of it counts{yet}"
    themselves = totals.deviating_seeds
    as_it_is = "1 deviates as it is" if themselves == 1 else f"{themselves:,} deviate as they are"
    return (
        f"{totals.findings:,} of {count_of(searched, 'seed')} led to an input on which {arms}"
        f" {differ}; {as_it_is}{otherwise}"
    )


def _replay_lead(document: RunDocument, replay: ReplayOutcome, named: Callable[[str], str]) -> str:
    """Return in a sentence what became of the inputs that were tried again."""
    now, count = deviating_now(document), tried(document)
    again = f"{count_of(count, 'input')} that were tried again"
    if count == 1:
        again = "1 input that was tried again"
    differ = f"{_arms(document)} {answer_words(document.pair).differ}"
    lead = (
        f"{now:,} of {again} deviate{'s' * (now == 1)}: {differ}"
        if now
        else f"None of {again} deviates each time"
    )
    if replay.baseline is None:
        return lead
    worse = set(replay.deviating_seeds)
    seeds = ", seeds counted too" if not worse.isdisjoint(replay.new) else ""
    new = "1 is new" if len(replay.new) == 1 else f"{len(replay.new):,} are new"
    return f"{lead}; {new} since {named(replay.baseline)}{seeds}"


def _arms(document: RunDocument) -> str:
    return "twin and device" if document.find == "kernel" else "original and device"


def _stopped(document: RunDocument, where: str) -> list[str]:
    """Return how a run that was stopped goes on; nothing of a whole one."""
    if not document.stopped_by:
        return []
    once = " once that is corrected" if document.stopped_by == "error" else ""
    return [
        f"This is not the whole run: it was {_STOPPED[document.stopped_by]}; the same command with"
        f" --out {quote(where)} --resume goes on{once}"
    ]


def _illustration(drawn: Mapping[str, Draw], name: str) -> list[Block]:
    return [Illustration(drawn[name])] if name in drawn else []


def _lists(document: RunDocument, drawn: Mapping[str, Draw]) -> Iterator[Section]:
    """Yield a section for each list of entries that has any."""
    arms, differ = _arms(document), answer_words(document.pair).differ
    lists = LISTS if document.replay is None else REPLAY_LISTS
    for key, (place, title, words) in lists.items():
        if not document.lists[key]:
            continue
        unchanged = input_words(document.pair).unchanged if key == "findings" else ""
        said = f"{words.format(arms=arms, differ=differ)} {unchanged}".strip()
        table = None if key == "mended" else _table(document, key)
        blocks: list[Block | None] = [table]
        if place in drawn:
            grouped = table is not None and ALIKE in table.header
            blocks = [
                table if grouped else None,
                Illustration(drawn[place], None if grouped else table),
            ]
        yield Section(
            id=place,
            title=title,
            words=said,
            blocks=[block for block in blocks if block is not None],
            count=len(document.lists[key]),
        )


def _table(document: RunDocument, key: str) -> Table:
    """Return a table of entries, those that matter first; a row for those that are alike.

    Such a row has the seed and the figures of the first of them.
    """
    entries = worst_first(document.lists[key])
    columns = list(entry_columns(document, entries))
    numbers_from = next(place for place, column in enumerate(columns) if column.number)
    groups = alike_entries(document, entries)
    header = [column.name for column in columns]
    rows = [[column.cell(first) for column in columns] for first, *_ in groups]
    shared = len(groups) < len(entries)
    if shared:
        header.insert(numbers_from, ALIKE)
        for row, group in zip(rows, groups, strict=True):
            row.insert(numbers_from, f"{len(group):,}")
    return Table(
        title=order_words(document, key),
        header=header,
        rows=rows,
        note=_SHARED.format(entries=len(entries), rows=count_of(len(groups), "row"))
        if shared
        else "",
        numbers_from=numbers_from,
        most=ROWS,
        missed_least=("counts", "queries", "dB"),
    )


def _ran(document: RunDocument, where: str | None) -> Iterator[Block]:
    """Yield what ran where, by what strategy, and for who ran it what stays on the devices."""
    named = last_part if where is None else last_parts
    yield Facts("", arm_lines(document))
    find, replay = document.find, document.replay
    looking = f"looking for {'any deviation' if find == 'any' else f'{find} deviations'}"
    said = f"Strategy {document.strategy}, {looking}, run seed {document.rng_seed}."
    if replay is not None:
        against = replay.baseline
        held = "" if against is None else f"held against {named(against)}; "
        of = f"{named(replay.run.run)} (on {', '.join(replay.run.devices)})"
        said = f"Replay of {of}; compressed model {replayed_model(document)}; {held}{looking}."
    stays = (
        f"Agent and models stay on {device.name} in {device.provenance.cache}."
        for device in document.devices
        if device.provenance.cache and where is not None
    )
    yield Sentences([said, *stays, *filter(None, [folded_line(document.pair)])])


def _known(document: RunDocument) -> Iterator[Block]:
    yield Facts("Pair", details(document.pair))
    yield Facts("Plan", details(document.plan))
    yield Facts("Totals", details(to_json(document.totals)))
    for device in document.devices:
        yield Facts(f"Device {device.name}", details(device.provenance))


def alike_entries(document: RunDocument, entries: Sequence[Finding]) -> list[list[Finding]]:
    """Group entries of which a table says the same in words, in the order of their first ones."""
    _seed, *columns = entry_columns(document, entries)
    words = [column for column in columns if not column.number]
    return row_groups(entries, lambda entry: tuple(column.gist(entry) for column in words))


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A column.

    Attributes:
        name: heading of the column.
        cell: returns what it says of an entry.
        number: whether that is a figure, which stands to the right.
        core: returns what of it entries have in common that share a row; None where it is all.

    """

    name: str
    cell: Callable[[Finding], str]
    number: bool = False
    core: Callable[[Finding], str] | None = None

    def gist(self, entry: Finding) -> str:
        """Return what of the cell entries have in common that share a row."""
        return (self.core or self.cell)(entry)


def entry_columns(document: RunDocument, entries: Sequence[Finding]) -> Iterator[EntryColumn]:
    """Yield the columns of a table of entries, those that say something of any."""
    yield EntryColumn("seed", seed_of)
    for name in answer_columns(entries):
        cell, core = (partial(shown, document, column=name) for shown in (answer_cell, answer_gist))
        yield EntryColumn(name, cell, core=core)
    if any(map(named_kind, entries)):
        yield EntryColumn("kind", lambda entry: named_kind(entry) or "–")
    if numbers := device_numbers(document.devices):
        yield EntryColumn("on", lambda entry: numbers[entry.device])
    yield EntryColumn("cause", cause_of)
    if any(entry.harm for entry in entries):
        yield EntryColumn("right", lambda entry: who_was_right(entry) or "–")
    if {counts(entry) for entry in entries} == {False, True}:
        yield EntryColumn("counts", lambda entry: "yes" if counts(entry) else "no")
    yield EntryColumn("strength", lambda entry: number(entry.strength, 3), number=True)
    if any(nearness_db(entry) != inf for entry in entries):  # not the seeds as they are
        if document.replay is None:
            yield EntryColumn("queries", lambda entry: f"{entry.queries:,}", number=True)
        yield EntryColumn("dB", show_nearness, number=True)


NOT_MEANT: Final = (
    "More coverage is not more deviations (Harel-Canada et al., FSE 2020): on two LeNets 60"
    " findings added to the coverage of their seeds what 60 other seeds did, and the coverage of"
    " one image told triggers from seeds with an AUC of .55 to .77 (.5 is chance), without the"
    " scores, which tell how near a boundary is, of .41 to .64."
)
"""What `benchmarks/coverage_of_triggers.py` measured."""


def coverage_blocks(document: RunDocument) -> list[Block]:
    """Return the neuron coverage of a run and what is to be said of it; nothing if not measured."""
    found = document.coverage
    if found is None:
        return []
    seeds = count_of(found.seeds, "seed")
    sets = (
        (seeds, "seeds"),
        (f"{seeds} + {count_of(found.findings, 'finding')}", "with_findings"),
        (f"{seeds} + {count_of(found.others, 'other seed')}", "with_others"),
    )
    rows = [
        (f"{arm.arm}, {arm.neurons:,} neurons", name, *(f"{share:.1%}" for share in shares))
        for arm in found.arms
        for name, key in sets
        if (shares := getattr(arm, key)) is not None
    ]
    header = ("neuron coverage", "inputs", *(f"> {threshold:g}" for threshold in found.thresholds))
    nothing = (
        "No search ended in a finding: this is the coverage of all seeds, with nothing to hold it"
        " against."
    )
    notes = (f"{note[0].upper()}{note[1:]}." for note in found.notes)
    return [
        Table(title="", header=header, rows=rows, numbers_from=2),
        Sentences([*(() if found.findings else (nothing,)), *notes, NOT_MEANT]),
    ]
