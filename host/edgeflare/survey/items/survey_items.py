"""The items of a survey: every input in every cell, each made when it is asked for.

A condition may be made otherwise by another version of a package or of a library, and a user's own
may not be deterministic. Then what host and device answer is not about the same input, so the
checksums that the host's rows keep are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from edgeflare.conditions.condition import Condition, changed_input
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.errors import UserError
from edgeflare.run.answer_rows import input_crc32
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell

FIRST_BATCH = 16
"""Items in a batch while the speed of the models, or of the device, is unknown."""


_LOOKED_AT = 2
"""Inputs of each cell, the first ones, that are made to see whether they are as they were: a
condition that has changed changes most inputs, and making all of them would take as long as the
host's part of the survey."""


@dataclass(frozen=True, slots=True)
class SurveyedItems:
    """The items of a survey; item `i` is input `i % inputs` in cell `i // inputs`.

    Attributes:
        cells: what is surveyed; the first is the inputs unchanged.
        conditions: those of the other cells, by name.
        inputs: (inputs, *shape).
        space: what values they may have.
        rng_seed: the run seed.

    """

    cells: tuple[Cell, ...]
    conditions: Mapping[str, Condition]
    inputs: NDArray[Any]
    space: InputSpace
    rng_seed: int

    @classmethod
    def of(
        cls,
        chosen: Sequence[ChosenCondition],
        inputs: NDArray[Any],
        space: InputSpace,
        rng_seed: int,
    ) -> SurveyedItems:
        """Return the items of inputs under chosen conditions, and unchanged."""
        changed = [
            Cell(chosen_condition.name, severity)
            for chosen_condition in chosen
            for severity in chosen_condition.severities
        ]
        conditions = {
            chosen_condition.name: chosen_condition.condition for chosen_condition in chosen
        }
        return cls((Cell(UNCHANGED, 0), *changed), conditions, inputs, space, rng_seed)

    def __len__(self) -> int:
        return len(self.cells) * len(self.inputs)

    def input_of(self, item: int) -> int:
        """Return the position of an item's input."""
        return item % len(self.inputs)

    def cell_of(self, item: int) -> Cell:
        """Return the cell of an item."""
        return self.cells[item // len(self.inputs)]

    def make(self, item: int) -> Input:
        """Return the input of an item, the same one each time."""
        cell, one = self.cell_of(item), self.inputs[self.input_of(item)]
        if cell.condition == UNCHANGED:
            unchanged: Input = one
            return unchanged
        condition = self.conditions[cell.condition]
        return changed_input(condition, one, cell.severity, self.rng_seed, self.space)


def require_same_inputs(items: SurveyedItems, known: Mapping[int, int], whose: str) -> None:
    """Refuse to go on with, or to compare with, a survey whose items are made otherwise here.

    Args:
        items: items of the survey now.
        known: checksums of the inputs of items, as `SurveyRows.checksums` returns them.
        whose: name of the survey that `known` is of, to begin a sentence with.

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
        items: items of the survey.
        item: number of the item.
        made: input of the item, made anew.
        known: the checksum of its input as the host's models answered it.

    """
    if input_crc32(made) != known:
        raise UserError(
            f"condition '{items.cell_of(item).condition}' returned another input than before for"
            " the same input and severity: draw all that is random from the generator that it is"
            " given, and survey anew"
        )
