"""Conformance runs on the kernel sets of a device, and their findings tried again, as shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from edgeflare.conform.presentation.conform_words import finding_sentence
from edgeflare.matrix.conform_matrix import (
    Cell,
    CellResult,
    ConformFigures,
    ConformMatrix,
    RetryMatrix,
)
from edgeflare.pages.page import Bullets, Section, Table

_LEGEND: Final = (
    "Taken: operators and types of which it runs a model. Wrong: those whose answers are not what"
    " exact arithmetic allows, also where the twin is as wrong. Alone: those that all other kernel"
    " sets which take them get right. Faults: findings that count for the exit code."
)

_RETRY_LEGEND: Final = (
    "Still: the model fails as it did; otherwise: in another way. Mended: it does not fail. Alone:"
    " the only kernel set on which it fails."
)


def conform_matrix_section(matrix: ConformMatrix) -> Section:
    """Return a row for each kernel set, and a row for each operator that one gets wrong.

    Of a model that the user named, how much of its arithmetic was tried comes first.
    """
    header = ("kernels", "runtime", "models", "taken", "refused", "wrong", "alone", "faults")
    figures = Table(
        title="",
        header=header,
        rows=list(map(_figures, matrix.rows)),
        note=_LEGEND,
        numbers_from=2,
        missed_least=("runtime",),
    )
    heads = ("operator", *(row.kernels for row in matrix.rows), "alone")
    cells = [_cell(matrix, cell, tuple(by.values())) for cell, by in matrix.cells.items()]
    return Section(
        id="matrix",
        title="Operators on the kernel sets of a device",
        blocks=[
            Bullets([f"{row.kernels}: {row.tried}" for row in matrix.rows if row.tried]),
            figures,
            Table.of_words(heads, cells, title="What one gets wrong"),
            Bullets([f"{kernels}: {why}" for kernels, why in matrix.refused.items()]),
        ],
    )


def retry_matrix_section(matrix: RetryMatrix) -> Section:
    """Return a row for each finding, with what became of it on each kernel set."""
    header = ("", "finding", *matrix.kernels, "alone")
    rows = [
        (f"{finding.number}", finding_sentence(finding), *outcomes, alone or "")
        for finding, outcomes, alone in zip(
            matrix.findings, matrix.outcomes, matrix.alone, strict=True
        )
    ]
    table = Table.of_words(header, rows, note=_RETRY_LEGEND)
    return Section(id="matrix", title="Findings on the kernel sets of a device", blocks=[table])


def _figures(one: ConformFigures) -> tuple[str, ...]:
    counts = (one.models, one.taken, one.refused, one.wrong, one.alone, one.new)
    return one.kernels, one.runtime, *(f"{count:,}" for count in counts)


def _cell(matrix: ConformMatrix, cell: Cell, results: Sequence[CellResult]) -> tuple[str, ...]:
    shown = (one.worst if one.state == "wrong" else _STATES[one.state] for one in results)
    return " ".join(cell), *shown, matrix.alone.get(cell, "")


_STATES: Final = {"right": "·", "refused": "refused", "not tried": "–"}
