"""The result of conformance runs on the kernel sets of a device: one kind of `matrix.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from edgeflare import __version__
from edgeflare.matrix.conform_matrix import CellResult, ConformFigures, ConformMatrix


class ConformMatrixDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.matrix/v1"
):
    """Conformance runs on the kernel sets of a device.

    Attributes:
        edgeflare: version that wrote it.
        command: that made the runs.
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
        type: of its values.
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
