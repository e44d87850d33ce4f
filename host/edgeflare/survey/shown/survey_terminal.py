"""A survey on the terminal: the rate first, then gates, and where it is worst."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.pages.answers.answer_form import class_name
from edgeflare.report.arm_lines import folded_line
from edgeflare.survey.gates.judged_gates import HELD
from edgeflare.survey.rates.slices import SliceTable, SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument
from edgeflare.survey.shown.gate_words import gate_sentence, gated_conditions, next_step
from edgeflare.survey.shown.survey_tables import (
    FigureTable,
    baseline_table,
    group_tables,
    slice_table,
    truth_columns,
    worst_first,
)
from edgeflare.survey.shown.survey_words import (
    accuracy_sentence,
    ending,
    field_sentence,
    headline,
    rare_sentences,
    release_sentence,
)
from edgeflare.untrusted_text import printable

WORST = 10
"""Conditions and pairs of groups that a table lists; conditions that gates name are listed, too."""

WORST_CLASSES = 5
"""Classes that a table lists."""

WIDE = (
    "without ties", "by compression", "original right", "twin right", "device right", "harmed",
    "helped", "items",
)  # fmt: skip
"""Columns that the terminal has no room for."""

LONGEST_NAME = 24
"""Characters of a name in the first column that is kept on one line."""

_BETWEEN = 3
"""Characters that each column takes beside its cells."""

_FEWEST = 2
"""Columns that are left in a table, however narrow the terminal: names and one figure."""

_MISSED_LEAST = ("asked", "by kernels", "only before", "only now", "asked in both", "p", "failed")
"""Columns that are left out first where there is no room."""


def print_survey(console: Console, document: SurveyDocument, where: str) -> None:
    """Print a survey; the gates are said again at its end, below the tables.

    Args:
        console: where to.
        document: as `read_survey` returns it.
        where: the run directory, as the user knows it.

    """
    name = document.pair.name
    parts: list[RenderableType] = [Text(printable(f"{name} {headline(document)}"), style="bold")]
    parts += [
        Text(printable(line))
        for line in (accuracy_sentence(document), field_sentence(document))
        if line
    ]
    if ending(document):
        parts.append(Text(printable(f"Ended: {ending(document)}."), style="dim"))
    if folded := folded_line(document.pair):
        parts.append(Text(folded, style="dim"))
    gates = [Text(printable(one)) for one in gate_lines(document, where)]
    parts += gates
    parts += [Text(f"warning: {printable(one)}", style="yellow") for one in document.warnings]
    tables = (one for one in short_tables(document, (*WIDE, *truth_columns(document))) if one.rows)
    parts += [_table(one, console.width) for one in tables]
    rare = " ".join(rare_sentences(document))
    parts += [Text(printable(f"Rare events: {rare}"))] if rare else []
    parts += [
        Text("For the release notes:", style="dim"),
        Text(printable(release_sentence(document))),
        *gates,
        Text(f"Everything is in {where}; see it: edgeflare report {where} --html", style="dim"),
    ]
    console.print(Group(*parts))


def gate_lines(document: SurveyDocument, where: str = "RUN") -> Iterator[str]:
    """Yield what became of each gate, in a sentence; `where` as `print_survey` takes it."""
    for gate in document.gates:
        mark = "✔" if gate.state == HELD else "✖"
        yield f"{mark} gate {gate_sentence(gate)}{next_step(document, gate, where)}"


def short_tables(document: SurveyDocument, left_out: Collection[str] = ()) -> list[FigureTable]:
    """Return the tables of a survey, of those with many rows the worst.

    Args:
        document: as `read_survey` returns it.
        left_out: names of columns for which there is no room.

    """

    def table(title: str, of: SliceTable, slices: Sequence[SurveySlice] = ()) -> FigureTable:
        return slice_table(document, title, slices or of.slices, left_out, each=of.confidence)

    conditions = worst_first(document.by_condition.slices)
    listed = _listed(conditions, gated_conditions(document))
    classes = worst_first(document.by_class.slices)
    worst = _listed(classes, frozenset(), WORST_CLASSES)
    of_classes = f"Classes{_rest(classes, worst, WORST_CLASSES)}"
    overall, unchanged = document.overall, document.unchanged
    named = [replace(one, name=class_name(document.classes, one.label)) for one in worst]
    return [
        slice_table(
            document, "Inputs", [overall, unchanged] if conditions else [unchanged], left_out
        ),
        table(f"Conditions{_rest(conditions, listed, WORST)}", document.by_condition, listed),
        table("Severities", document.by_severity),
        table("Devices", document.by_device),
        table("Groups", document.by_group),
        *group_tables(document, WORST),
        *baseline_table(document),
        table(of_classes, document.by_class, named),
    ]


def _listed(
    worst: Sequence[SurveySlice], gated: Collection[str], most: int = WORST
) -> Sequence[SurveySlice]:
    """Return the first slices, and of the others those that gates name; one row is not cut off."""
    if len(worst) <= most + 1:
        return worst
    return [*worst[:most], *(one for one in worst[most:] if one.condition in gated)]


def _rest(slices: Sequence[SurveySlice], listed: Sequence[SurveySlice], most: int) -> str:
    """Return which of slices are listed, where it is not all of them."""
    if len(listed) == len(slices):
        return ""
    gated = " and those of gates" if len(listed) > most else ""
    return f", the worst {most} of {len(slices)}{gated}"


def _table(one: FigureTable, width: int) -> Table:
    """Return a table; where it is too wide, each interval stands below its estimate.

    A column for which there is no room then is left out, before a word is broken.
    """
    columns = [
        [printable(cell) for cell in column] for column in zip(one.header, *one.rows, strict=True)
    ]
    if _width(columns) > width:
        columns = [columns[0], *(_stacked(column) for column in columns[1:])]
    while _width(columns) > width and len(columns) > _FEWEST:
        del columns[_least(columns)]
    (_, *names), *figures = columns
    table = Table(title=Text(printable(one.title), style="bold"), title_justify="left")
    table.box = SIMPLE_HEAD
    table.caption_justify = "left"
    if one.note:
        table.caption = Text(f"  {one.note}\n", style="dim")
    whole = max(map(len, names)) <= LONGEST_NAME
    table.add_column("", overflow="fold", no_wrap=whole)
    for header, *_ in figures:
        table.add_column(Text(header), justify="right", overflow="fold")
    for row in zip(names, *(cells for _, *cells in figures), strict=True):
        table.add_row(*map(Text, row))
    return table


def _stacked(column: Sequence[str]) -> list[str]:
    """Return a column of figures whose header is a word a line, and its intervals a line below."""
    header, *cells = column
    return [header.replace(" ", "\n"), *(cell.replace(" (", "\n(") for cell in cells)]


def _width(columns: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is in which no word is broken."""
    return sum(
        max(len(line) for cell in column for line in cell.split("\n")) + _BETWEEN
        for column in columns
    )


def _least(columns: Sequence[Sequence[str]]) -> int:
    """Return the place of the column that is missed least; the last one where none is known."""
    headers = [" ".join(column[0].split()) for column in columns]
    known = (headers.index(name) for name in _MISSED_LEAST if name in headers)
    return next(known, len(columns) - 1)
