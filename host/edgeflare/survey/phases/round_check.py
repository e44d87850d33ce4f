"""Whether the devices of a survey still answer as they did: an input asked again in every round.

A search asks its canaries in between its queries, and knows which chains to drop. A survey has
rounds in their place: a good answer vouches for the round before it, and where one has changed for
good, what was said in the round is dropped, so that a resumed survey asks it again. That is done to
the answers of all devices: what is left of a round that was cut short has to be its first draws,
which do not depend on the inputs, and each device has some of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.errors import InfrastructureError
from edgeflare.run.device_assignment import device_of
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.stored_answers import from_rows, to_row
from edgeflare.survey.items.surveyed_items import SurveyedItems


class RoundCheck:
    """Asks each device again about the first of its inputs, as it is.

    Devices whose profile says `canary_every = 0` are not asked.
    """

    def __init__(self, context: CampaignContext, items: SurveyedItems) -> None:
        """Watch over the devices of a campaign, each of which has some of the items."""
        self._context = context
        self._items = items

    def before_round(self, items: Sequence[int]) -> None:
        """Ask the devices that a round concerns for the answer that is to stay, unless they were.

        Raises:
            InfrastructureError: a device is lost for good.

        """
        for index in self._concerned(items):
            if not self._rows(index):
                self._write(index, 1, self._context.ask_device(index))

    def after_round(self, items: Sequence[int]) -> None:
        """Ask the devices that a round concerned again.

        Args:
            items: that were asked.

        Raises:
            InfrastructureError: the answer of one has changed, and stays so; or it is lost for
                good.

        """
        record = self._context.health.record
        for index in self._concerned(items):
            first, *_ = rows = self._rows(index)
            (reference,) = from_rows(self._context.panel.reading, [first])
            one = self._context.ask_device(index)
            self._write(index, len(rows) + 1, one)
            readings, name = record.readings[index], record.devices[index].profile.name
            if one.raw[Arm.DEVICE] == reference.raw[Arm.DEVICE]:
                readings.canaries["same"] += 1
            elif not _differs(one, reference):
                readings.canaries["varied"] += 1
                record.warn(
                    f"{name} does not repeat its answers to the bit: what it decides about input"
                    f" {index} held, and its outputs varied"
                )
            else:
                readings.canaries["changed"] += 1
                self._ask_again(index, reference, items)
            record.keep()

    def _ask_again(self, index: int, reference: EvaluatedQuery, items: Sequence[int]) -> None:
        """Ask a device whose answer has changed once more, and drop the round if it stays so."""
        context = self._context
        name = context.health.record.devices[index].profile.name
        if not _differs(context.ask_device(index), reference):
            context.health.record.warn(
                f"{name} decided differently about input {index} once, and as before when asked"
                " again"
            )
            return
        dropped = context.journal.survey.device_items().intersection(items)
        with context.journal.transaction():
            context.journal.survey.drop_device(dropped)
        line = (
            f"{name}: what it decides about input {index} has changed; the {len(dropped)} answers"
            " of this round were dropped, and are asked again on --resume: look after the device"
        )
        context.health.record.warn(line)
        raise InfrastructureError(line)

    def _concerned(self, items: Sequence[int]) -> list[int]:
        """Return the devices that have some of the items, and are to be checked."""
        devices = self._context.health.record.devices
        mine = {self._index(item) for item in items}
        return [index for index in sorted(mine) if devices[index].profile.canary_every]

    def _index(self, item: int) -> int:
        return device_of(self._items.input_of(item), self._context.panel.devices)

    def _rows(self, index: int) -> list[AnswerRow]:
        return self._context.journal.steps("canary", index)

    def _write(self, index: int, n: int, one: EvaluatedQuery) -> None:
        reading, asked = self._context.panel.reading, self._items.inputs[index]
        row = to_row(reading, "canary", index, n, asked, one)
        self._context.journal.write_answers([row])


def _differs(one: EvaluatedQuery, other: EvaluatedQuery) -> bool:
    answer, before = one.outcome[Arm.DEVICE], other.outcome[Arm.DEVICE]
    return answer.differs(before) or answer.failure != before.failure
