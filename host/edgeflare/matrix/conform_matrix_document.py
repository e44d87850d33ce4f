"""Conformance runs, and findings tried again, on the kernel sets of a device: a `matrix.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from edgeflare import __version__
from edgeflare.conform.finding_replay import RetryOutcome
from edgeflare.matrix.conform_matrix import CellResult, ConformFigures, ConformMatrix, RetryMatrix
from edgeflare.record.json_types import CountFromOne


class ConformMatrixDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.matrix/v1"
):
    """Conformance runs on the kernel sets of a device.

    Attributes:
        edgeflare: version that wrote it.
        command: the command that made the runs.
        kernel_sets: a row for each that opens models.
        refused: why a kernel set opens no model at all, by name.
        cells: the operators and types that a kernel set gets wrong.

    """

    edgeflare: str
    command: Literal["conform"] = "conform"
    kernel_sets: tuple[ConformFigures, ...]
    refused: Mapping[str, str]
    cells: tuple[WrongCell, ...]


class WrongCell(msgspec.Struct, frozen=True, kw_only=True):
    """An operator and a type that a kernel set gets wrong.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        kernel_sets: what each makes of it, by name.
        alone: the one that all others which take it get right; null for none.

    """

    operator: str
    type: str
    kernel_sets: Mapping[str, CellResult]
    alone: str | None


def conform_matrix_document(matrix: ConformMatrix) -> ConformMatrixDocument:
    """Return the result of conformance runs."""
    return ConformMatrixDocument(
        edgeflare=__version__,
        kernel_sets=matrix.rows,
        refused=dict(matrix.refused),
        cells=tuple(
            WrongCell(
                operator=operator,
                type=type_,
                kernel_sets=dict(by),
                alone=matrix.alone.get((operator, type_)),
            )
            for (operator, type_), by in matrix.cells.items()
        ),
    )


class RetryMatrixDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.matrix/v1"
):
    """Findings of a conformance run, tried again on the kernel sets of a device.

    Attributes:
        edgeflare: version that wrote it.
        command: the command that tried them.
        findings: a row for each finding, in the order of the run.

    """

    edgeflare: str
    command: Literal["replay"] = "replay"
    findings: tuple[RetriedRow, ...]


class RetriedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a conformance run.

    Attributes:
        number: the finding's number in that run.
        operator: name of the operator.
        type: the operator's type.
        kernel_sets: what became of it, by the name of the kernel set.
        alone: the one that alone fails; null for none.

    """

    number: CountFromOne
    operator: str
    type: str
    kernel_sets: Mapping[str, RetryOutcome]
    alone: str | None


def retry_matrix_document(matrix: RetryMatrix) -> RetryMatrixDocument:
    """Return what became of the findings of a conformance run."""
    rows = zip(matrix.findings, matrix.outcomes, matrix.alone, strict=True)
    return RetryMatrixDocument(
        edgeflare=__version__,
        findings=tuple(
            RetriedRow(
                number=finding.number,
                operator=finding.operator,
                type=finding.type,
                kernel_sets=dict(zip(matrix.kernels, outcomes, strict=True)),
                alone=alone,
            )
            for finding, outcomes, alone in rows
        ),
    )
