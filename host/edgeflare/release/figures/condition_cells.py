"""What the conditions of the field do to the inputs of a check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from edgeflare.record.json_types import Count, CountFromOne, Share
from edgeflare.release.figures.decisions import DecisionChanges
from edgeflare.statistics.proportion import ShareEstimate, paired_difference


class FieldFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the conditions of the field do.

    Attributes:
        inputs: largest number of inputs in a cell.
        cells: how many cells, conditions at a severity, were tried.
        unchanged: the inputs as they are.
        ranked: the cells in which the original still works, those first that lose most.
        further: what those that lose most of all do to other inputs; null where there are too few.

    """

    inputs: CountFromOne
    cells: CountFromOne
    unchanged: FieldCell
    ranked: tuple[FieldCell, ...]
    further: FieldFigures | None = None

    @property
    def working(self) -> int:
        """In how many cells the original still works."""
        return len(self.ranked)

    def lost(self, limit: float) -> Iterator[tuple[FieldFigures, FieldCell]]:
        """Yield the cells that lose significantly, and for certain more than a limit.

        The interval of what is lost lies beyond the limit, and so does what is lost less what the
        unchanged inputs lose. Each cell comes with the figures that it is of: of many cells few are
        significant, which may be so on further inputs, where only those are tried that lost most.
        """
        for cell in self.ranked:
            beyond = cell.net - max(0.0, self.unchanged.net)
            if cell.p_corrected < FIELD_CHANCE and beyond > limit and cell.loss.low > limit:
                yield self, cell
        if self.further is not None:
            yield from self.further.lost(limit)


class FieldCell(msgspec.Struct, frozen=True, kw_only=True):
    """What a condition at a severity does.

    Attributes:
        condition: name of the condition; "unchanged" for none.
        severity: severity of the condition, 1 to 5; 0 without one.
        right: how many inputs the original gets right under it.
        changes: changed decisions, from the original to the device.
        p_corrected: p-value of a sign test of harmed against helped, Holm-corrected for all cells.

    """

    condition: str
    severity: Count
    right: Count
    changes: DecisionChanges
    p_corrected: Share

    @property
    def net(self) -> float:
        """The share of the inputs that is harmed less that helped."""
        return self.changes.net / max(1, self.changes.inputs)

    @property
    def loss(self) -> ShareEstimate:
        """That share with its interval."""
        its = self.changes
        return paired_difference(its.harmed, its.helped, max(1, its.inputs))


FIELD_CHANCE: Final = 0.01
"""Greatest p of a cell's loss, corrected for the number of cells."""
