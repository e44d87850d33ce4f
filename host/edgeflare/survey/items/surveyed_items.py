"""The items of a survey: every input in every cell, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_draw import changed_input
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell

FIRST_BATCH = 16
"""Items in a batch while the speed of the models, or of the device, is unknown."""


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
        changed = [Cell(one.name, severity) for one in chosen for severity in one.severities]
        conditions = {one.name: one.condition for one in chosen}
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
        """Return the input of an item, the same one each time.

        Raises:
            UserError: a condition returned something of another shape or dtype.

        """
        cell, one = self.cell_of(item), self.inputs[self.input_of(item)]
        if cell.condition == UNCHANGED:
            unchanged: Input = one
            return unchanged
        condition = self.conditions[cell.condition]
        return changed_input(condition, one, cell.severity, self.rng_seed, self.space)
