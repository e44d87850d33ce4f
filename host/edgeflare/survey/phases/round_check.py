"""Whether the devices of a survey still answer as they did: an input asked again in every round.

A search asks its canaries in between its queries, and knows which chains to drop. A survey has
rounds in their place: a good answer vouches for the round before it, and where one has changed for
good, what was said in the round is dropped, so that a resumed survey asks it again. That is done to
the answers of all devices: what is left of a round that was cut short has to be its first draws,
which do not depend on the inputs, and each device has some of the inputs.

A device that was lost, or whose host was killed, may have been reset since, and then vouches for
nothing that was answered before. So the journal notes what was vouched for. Of the rest the last
answers are asked for again, and where they are others now, the rest is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.errors import InfrastructureError
from edgeflare.run.device_assignment import device_of
from edgeflare.survey.items.surveyed_items import SurveyedItems
from edgeflare.survey.phases.answer_watch import AnswerWatch
from edgeflare.survey.record.survey_journal import VOUCHED_KEY, vouched_draws


class RoundCheck:
    """Asks each device again about the first of its inputs, as it is.

    Devices whose profile says `canary_every = 0` are not asked.
    """

    def __init__(self, context: CampaignContext, items: SurveyedItems) -> None:
        """Watch over the devices of a campaign, each of which has some of the items."""
        self._context = context
        self._items = items
        self._watch = AnswerWatch(context)

    def unvouched(self, items: Sequence[int], before: int) -> list[int]:
        """Return the items of a round that were answered and that nothing vouches for, in order.

        There are none where no device of the round is watched.

        Args:
            items: of the round, as they were drawn.
            before: how many were drawn before them.

        """
        if not self._concerned(items):
            return []
        journal = self._context.journal
        answered = journal.survey.device_items()
        return [one for one in items[max(0, vouched_draws(journal) - before) :] if one in answered]

    def drop(self, items: Sequence[int]) -> list[int]:
        """Drop what was answered about items, and return which these were."""
        journal = self._context.journal
        dropped = sorted(journal.survey.device_items().intersection(items))
        with journal.transaction():
            journal.survey.drop_device(dropped)
        return dropped

    def before_round(self, items: Sequence[int]) -> None:
        """Ask the devices that a round concerns for the answer that is to stay, unless they were.

        Raises:
            InfrastructureError: a device is lost for good.

        """
        for index in self._concerned(items):
            self._watch.begin(index)

    def after_round(self, items: Sequence[int], done: int) -> None:
        """Ask the devices that a round concerned again, and note that they vouch for it.

        Args:
            items: that were to be asked.
            done: how many of all draws, the first ones, were asked by now.

        Raises:
            InfrastructureError: the answer of one has changed, and stays so; or it is lost for
                good.

        """
        for index in self._concerned(items):
            if not self._watch.holds(index, self._watch.ask(index)):
                self._end(index, items)
        self._context.journal.note(VOUCHED_KEY, done)

    def _end(self, index: int, items: Sequence[int]) -> None:
        """Drop a round, in which the answer of a device has changed, and end the survey."""
        context, dropped = self._context, self.drop(items)
        name = context.health.record.devices[index].profile.name
        line = (
            f"{name}: what it decides about input {index} has changed; {len(dropped)} of this"
            " round's answers were dropped, to be asked again with --resume: look after the device"
        )
        context.health.record.warn(line)
        raise InfrastructureError(line)

    def _concerned(self, items: Sequence[int]) -> list[int]:
        """Return the devices that have some of the items, and are to be checked."""
        mine = {self._index(item) for item in items}
        return [index for index in sorted(mine) if self._watch.watches(index)]

    def _index(self, item: int) -> int:
        return device_of(self._items.input_of(item), self._context.panel.devices)
