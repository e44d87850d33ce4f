"""Whether the devices still answer as they did, while they are asked about a rare event."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.errors import InfrastructureError
from edgeflare.survey.phases.answer_watch import AnswerWatch


@dataclass(slots=True)
class RareCheck:
    """Asks each device again about the first of its inputs, as the survey's rounds did.

    What is answered to that is no part of the survey's own queries, and is not kept: a rare event
    is estimated anew where it was not estimated to its end.

    Attributes:
        watch: compares the answers.
        devices: how many there are.
        asked: device queries that this took.

    """

    watch: AnswerWatch
    devices: int
    asked: int = 0

    def __call__(self) -> None:
        """Ask the devices whose profile does not say `canary_every = 0`.

        Raises:
            InfrastructureError: the answer of one has changed, and stays so; or it is lost for
                good.

        """
        context = self.watch.context
        for index in filter(self.watch.watches, range(self.devices)):
            self.watch.begin(index)
            self.asked += 1
            if self.watch.holds(index, context.ask_device(index)):
                continue
            line = (
                f"{context.health.record.devices[index].profile.name}: what it decides about input"
                f" {index} has changed; what was answered about rare events was dropped, and is"
                " asked again on --resume: look after the device"
            )
            context.health.record.warn(line)
            raise InfrastructureError(line)
