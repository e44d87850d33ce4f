"""What the conditions of the field cost, as tables of the page of a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from edgeflare.pages.page import Table
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.figures.condition_cells import FieldCell


def condition_table(document: CheckDocument) -> Table:
    """Return the conditions at a severity that lose most, and the inputs as they are."""
    known = document.figures.field
    ranked = () if known is None else known.ranked
    return Table(
        title=f"The {min(_CELLS, len(ranked))} of {len(ranked)} that lose most",
        header=CELL_HEADER,
        rows=[*cell_rows(ranked[:_CELLS]), *cell_rows(() if known is None else (known.unchanged,))],
        note="Right: by the original. Net: harmed less helped. p: of a sign test, corrected for all"
        " that were tried.",
        numbers_from=2,
    )


_CELLS: Final = 10
"""Conditions at a severity that are listed."""

CELL_HEADER: Final[tuple[str, ...]] = (
    *("condition", "severity", "inputs", "right", "harmed"),
    *("helped", "lost net", "interval", "p"),
)
"""Columns of a condition at a severity."""


def repeated_table(document: CheckDocument) -> Table:
    """Return those that lose most of all, on further inputs."""
    known = document.figures.field
    again = None if known is None else known.further
    rows = [] if again is None else [*cell_rows(again.ranked), *cell_rows((again.unchanged,))]
    title = "Tried again on other inputs"
    return Table(title=title, header=CELL_HEADER, rows=rows, numbers_from=2)


def cell_rows(cells: Sequence[FieldCell]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of conditions at a severity; the columns are those of `CELL_HEADER`."""
    for cell in cells:
        loss, its = cell.loss, cell.changes
        yield (
            cell.condition,
            f"{cell.severity}" if cell.severity else "–",
            f"{its.inputs:,}",
            f"{cell.right:,}",
            f"{its.harmed:,}",
            f"{its.helped:,}",
            f"{loss.value:.2%}",
            f"{loss.low:.2%} to {loss.high:.2%}",
            f"{cell.p_corrected:.2g}" if cell.severity else "–",
        )
