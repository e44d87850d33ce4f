"""The items of a survey: every input in every cell, each made when it is asked for, and judged.

Of the answers to an item a survey keeps what they come to, in place of raw outputs. A condition may
be made otherwise by another version of a package or of a library, and a user's own may not be
deterministic. Then what host and device answer is not about the same input, so the checksums that
the host's rows keep are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from numpy.typing import NDArray

from edgeflare.conditions.condition import Condition, changed_input
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.task import Decoder
from edgeflare.core.truths import Truths, is_right, truth_distance
from edgeflare.errors import UserError
from edgeflare.run.answer_rows import input_crc32
from edgeflare.run.survey_rows import NO_DECISION, DeviceRow, HostRow
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


@dataclass(frozen=True, slots=True)
class ItemJudgement:
    """Judges the answers to items.

    Attributes:
        goal: what counts as a finding; without an original, that of kernels.
        decoder: decoder of the compressed model.
        truths: what is right for each input; None where nothing is known.

    """

    goal: Goal
    decoder: Decoder
    truths: Truths | None = None

    def of_host(self, item: int, input_crc32: int, evaluated: EvaluatedQuery) -> HostRow:
        """Return what the host's arms said about an item."""
        outcome = evaluated.outcome
        original, twin = outcome.answers.get(Arm.ORIGINAL), outcome[Arm.TWIN]
        truth = self._truth(item)
        compression = original is not None and original.differs(twin)
        return HostRow(
            item=item,
            input_crc32=input_crc32,
            compression=compression,
            compression_tied=compression and _tied(original, twin),
            doubtful=any(
                member.tied or member.differs(twin) for member in outcome.members.values()
            ),
            margin=_margin(original, twin),
            original_decision=self._decision(original),
            twin_decision=self._decision(twin),
            twin_distance=_distance(original, twin),
            seconds=evaluated.seconds,
            known=truth is not None,
            original_right=is_right(original, truth),
            twin_right=is_right(twin, truth),
            original_truth_distance=truth_distance(original, truth),
            twin_truth_distance=truth_distance(twin, truth),
        )

    def of_device(self, item: int, evaluated: EvaluatedQuery) -> DeviceRow:
        """Return what the device said about an item that all arms answered."""
        outcome = evaluated.outcome
        twin, device = outcome[Arm.TWIN], outcome[Arm.DEVICE]
        first = outcome[self.goal.compared[0]]
        deviates, truth = _parts(first, device), self._truth(item)
        # What the file itself does to both, such as a NaN, is no matter of kernels.
        shared = device.failure is not None and device.failure == twin.failure
        kernel = _parts(twin, device) and not shared
        strength = self.goal.strength(outcome) if deviates else None
        return DeviceRow(
            item=item,
            deviates=deviates,
            deviates_tied=deviates and _tied(first, device),
            kernel=kernel,
            kernel_tied=kernel and _tied(twin, device),
            failed=device.failure is not None,
            tied=device.tied,
            kind=self.goal.met(outcome),
            strength=None if strength is None else float(strength),
            device_decision=self._decision(device),
            device_distance=_distance(first, device),
            seconds=evaluated.seconds,
            device_right=is_right(device, truth),
            device_truth_distance=truth_distance(device, truth),
        )

    def _truth(self, item: int) -> Answer | None:
        """Return what is right for the input of an item."""
        return self.truths[item % len(self.truths)] if self.truths else None

    def _decision(self, answer: Answer | None) -> int:
        if answer is None or answer.decision is None:
            return NO_DECISION
        return int(answer.decision) if self.decoder.numbered and answer.counted else NO_DECISION


def _parts(answer: Answer, device: Answer) -> bool:
    """Whether the device decides differently from an arm, or failed."""
    return device.failure is not None or answer.differs(device)


def _tied(one: Answer | None, other: Answer) -> bool:
    """Whether a difference hangs on a tie; a failure never does."""
    if one is None or one.failure is not None or other.failure is not None:
        return False
    return one.differs_by_tie(other)


def _margin(original: Answer | None, twin: Answer) -> float:
    """Return how far the twin is from deciding otherwise.

    Values have no boundary of their own: what is near there is the tolerance, at which the twin
    begins to deviate from the original.
    """
    if twin.failure is not None:
        return 0.0
    if twin.chooses:
        return float(twin.margin(twin))
    strength = None if original is None else original.strength_against(twin)
    return inf if strength is None else abs(float(strength))


def _distance(one: Answer | None, other: Answer) -> float | None:
    """Return how far apart two answers are, where these are no classes."""
    if one is None or one.counted or one.failure is not None or other.failure is not None:
        return None
    return float(one.measured(other))
