"""The tables of conformance runs on the kernel sets of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.conform.shown.conform_words import finding_sentence
from edgeflare.matrix.conform_matrix import (
    Cell,
    CellResult,
    ConformFigures,
    ConformMatrix,
    RetryMatrix,
)
from edgeflare.pages.markdown import markdown_table
from edgeflare.untrusted_text import for_markdown, printable

_FIGURES: Final = ("runtime", "kernels", "models", "taken", "refused", "wrong", "alone", "faults")

_LEGEND: Final = (
    "Taken: operators and types of which it runs a model. Wrong: those whose answers are not what"
    " exact arithmetic allows, also where the twin is as wrong. Alone: those that all other kernel"
    " sets which take them get right. Faults: findings that count for the exit code."
)


_RETRY_LEGEND: Final = (
    "Still: the model fails as it did; otherwise: in another way. Mended: it does not fail. Alone:"
    " the only kernel set on which it fails."
)


def print_conform_matrix(console: Console, matrix: ConformMatrix) -> None:
    """Print a row for each kernel set, and a row for each operator that one gets wrong.

    Of a model that the user named, how much of its arithmetic was tried comes first.
    """
    for line in _tried(matrix):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    console.print(_table(_FIGURES, [_figures(one) for one in matrix.rows], 2))
    if matrix.cells:
        console.print(_table(_heads(matrix), _cells(matrix), len(_heads(matrix))))
    for line in _refusals(matrix):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    console.print(_LEGEND, style="dim", highlight=False)


def conform_matrix_markdown(matrix: ConformMatrix) -> str:
    """Return the same tables as Markdown."""
    parts = [
        "# Operators on the kernel sets of a device",
        *map(for_markdown, _tried(matrix)),
        markdown_table(_FIGURES, [_figures(one) for one in matrix.rows]),
    ]
    if matrix.cells:
        parts.append(markdown_table(_heads(matrix), _cells(matrix)))
    refusals = map(for_markdown, _refusals(matrix))
    return "\n\n".join([*parts, *refusals, _LEGEND]) + "\n"


def _tried(matrix: ConformMatrix) -> list[str]:
    return [f"{row.kernels}: {row.tried}" for row in matrix.rows if row.tried]


def _refusals(matrix: ConformMatrix) -> list[str]:
    return [f"{kernels}: {why}" for kernels, why in matrix.refused.items()]


def print_retry_matrix(console: Console, matrix: RetryMatrix) -> None:
    """Print a row for each finding, with what became of it on each kernel set."""
    heads = _retry_heads(matrix)
    console.print(_table(heads, _retries(matrix), len(heads)))
    console.print(_RETRY_LEGEND, style="dim", highlight=False)


def retry_matrix_markdown(matrix: RetryMatrix) -> str:
    """Return the same table as Markdown."""
    table = markdown_table(_retry_heads(matrix), _retries(matrix))
    title = "# Findings on the kernel sets of a device"
    return "\n\n".join([title, table, _RETRY_LEGEND]) + "\n"


def _retry_heads(matrix: RetryMatrix) -> tuple[str, ...]:
    return "", "finding", *matrix.kernels, "alone"


def _retries(matrix: RetryMatrix) -> list[tuple[str, ...]]:
    rows = zip(matrix.findings, matrix.outcomes, matrix.alone, strict=True)
    return [
        (f"{finding.number}", finding_sentence(finding), *outcomes, alone or "")
        for finding, outcomes, alone in rows
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for at, name in enumerate(heads):
        table.add_column(name, justify="left" if at < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(value)) for value in row))
    return table


def _figures(one: ConformFigures) -> tuple[str, ...]:
    counts = (one.models, one.taken, one.refused, one.wrong, one.alone, one.new)
    return one.runtime, one.kernels, *(f"{count:,}" for count in counts)


def _heads(matrix: ConformMatrix) -> tuple[str, ...]:
    return "operator", *(row.kernels for row in matrix.rows), "alone"


def _cells(matrix: ConformMatrix) -> list[tuple[str, ...]]:
    return [_cell(matrix, cell, tuple(by.values())) for cell, by in matrix.cells.items()]


def _cell(matrix: ConformMatrix, cell: Cell, results: Sequence[CellResult]) -> tuple[str, ...]:
    shown = (one.worst if one.state == "wrong" else _STATES[one.state] for one in results)
    return " ".join(cell), *shown, matrix.alone.get(cell, "")


_STATES: Final = {"right": "·", "refused": "refused", "not tried": "–"}
