"""Whether the items of a survey are made as they were: by the checksums that the host's rows keep.

A condition may be made otherwise by another version of a package or of a library, and a user's own
may not be deterministic. Then what host and device answer is not about the same input.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgeflare.core.input_space import Input
from edgeflare.errors import UserError
from edgeflare.run.stored_answers import input_crc32
from edgeflare.survey.items.surveyed_items import SurveyedItems

_LOOKED_AT = 2
"""Inputs of each cell, the first ones, that are made to see whether they are as they were: a
condition that has changed changes most inputs, and making all of them would take as long as the
host's part of the survey."""


def require_same_inputs(items: SurveyedItems, known: Mapping[int, int], whose: str) -> None:
    """Refuse to go on with, or to compare with, a survey whose items are made otherwise here.

    Args:
        items: of the survey now.
        known: checksums of the inputs of items, as `SurveyRows.checksums` returns them.
        whose: they are, to begin a sentence with.

    Raises:
        UserError: that is so; names the condition.

    """
    inputs = len(items.inputs)
    for item in range(len(items)):
        looked_at = items.input_of(item) < min(_LOOKED_AT, inputs) and item in known
        if looked_at and input_crc32(items.make(item)) != known[item]:
            cell = items.cell_of(item)
            raise UserError(
                f"{whose} has other inputs under '{cell.condition}' at severity {cell.severity}"
                " than are made here: the condition, or a library that it uses, is another one or"
                " does not return the same each time: survey it anew"
            )


def require_same_input(items: SurveyedItems, item: int, made: Input, known: int) -> None:
    """Refuse an item that was made otherwise for the host's models.

    Args:
        items: of the survey.
        item: its number.
        made: its input, made anew.
        known: the checksum of its input as the host's models answered it.

    Raises:
        UserError: that is so; names the condition.

    """
    if input_crc32(made) != known:
        raise UserError(
            f"condition '{items.cell_of(item).condition}' returned another input than before for"
            " the same input and severity: draw all that is random from the generator that it is"
            " given, and survey anew"
        )
