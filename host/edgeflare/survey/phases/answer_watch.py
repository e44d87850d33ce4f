"""Whether a device still decides about an input as it did when it was first asked."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.core.query import EvaluatedQuery
from edgeflare.run.answer_rows import from_rows, to_row
from edgeflare.run.journal_rows import AnswerRow


@dataclass(frozen=True, slots=True)
class AnswerWatch:
    """Compares what each device answers to the first of its inputs with its first answer to it.

    A device is meant by its place among the devices, which is that of its first input, too.

    Attributes:
        context: the campaign.

    """

    context: CampaignContext

    def watches(self, index: int) -> bool:
        """Whether a device is watched; not where its profile says `canary_every = 0`."""
        return bool(self.context.health.record.devices[index].profile.canary_every)

    def begin(self, index: int) -> None:
        """Ask a device for the answer that is to stay, unless it was asked before."""
        if not self._rows(index):
            self._write(index, 1, self.context.ask_device(index))

    def ask(self, index: int) -> EvaluatedQuery:
        """Ask a device again, and keep what it answers in the journal."""
        one = self.context.ask_device(index)
        self._write(index, len(self._rows(index)) + 1, one)
        return one

    def holds(self, index: int, query: EvaluatedQuery) -> bool:
        """Note how an answer compares with the first one; not where another is given for good.

        Where it decides otherwise, the device is asked once more.

        Args:
            index: index of the device.
            query: what it answered now.

        """
        record = self.context.health.record
        readings, name = record.readings[index], record.devices[index].profile.name
        first, *_ = self._rows(index)
        (reference,) = from_rows(self.context.panel.reading, [first])
        held, repetition = True, query.repeated(reference)
        readings.count_canary(repetition)
        if repetition == "varied":
            record.warn(
                f"{name} does not repeat its answers to the bit: what it decides about input"
                f" {index} held, and its outputs varied"
            )
        elif repetition == "changed":
            held = self.context.ask_device(index).repeated(reference) != "changed"
            if held:
                record.warn(
                    f"{name} decided differently about input {index} once, and as before when asked"
                    " again"
                )
        record.keep()
        return held

    def _rows(self, index: int) -> list[AnswerRow]:
        return self.context.journal.steps("canary", index)

    def _write(self, index: int, n: int, query: EvaluatedQuery) -> None:
        row = to_row(
            self.context.panel.reading, "canary", index, n, self.context.seeds.inputs[index], query
        )
        self.context.journal.write_answers([row])
