"""The rounds of a survey: which items the device is asked about, as its answers come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.survey.items.survey_facts import SurveyFacts, surprises
from edgeflare.survey.sampling.sampling_design import SamplingDesign

_STREAM = 0x5EED
"""Tells the generator of the draws from those of chains, which have the run seed in common."""


@dataclass(frozen=True, slots=True)
class SamplingRounds:
    """Draws the items of each round.

    Attributes:
        design: draws them; what it draws depends on the run seed, the host's answers, and the
            device's in the rounds before.
        most: items that are drawn at most.
        earlier: bounds on the items that there were before, rising. A round ends at each of them,
            as it did then: the probabilities of its draws depend on how many they are.

    """

    design: SamplingDesign
    most: int
    earlier: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        facts: SurveyFacts,
        rng_seed: int,
        budget: int | None,
        earlier: tuple[int, ...] = (),
    ) -> SamplingRounds:
        """Prepare to draw.

        Args:
            facts: what the host says of all items.
            rng_seed: the run seed.
            budget: items that are drawn at most; None for all.
            earlier: budgets that there were before, rising.

        """
        rng = np.random.default_rng([rng_seed, _STREAM])
        design = SamplingDesign(facts.margin, facts.compression, facts.doubtful, rng)
        most = facts.items if budget is None else min(budget, facts.items)
        return cls(design, most, earlier)

    @classmethod
    def replayed(
        cls,
        facts: SurveyFacts,
        rng_seed: int,
        budget: int | None,
        earlier: tuple[int, ...] = (),
    ) -> SamplingRounds:
        """Draw the rounds again in which the device was asked, and tell what it answered."""
        rounds = cls.of(facts, rng_seed, budget, earlier)
        while (items := rounds.draw()) and facts.asked[items].all():
            rounds.tell(items, facts)
        return rounds

    def draw(self) -> list[int]:
        """Return the items of the next round; none where nothing is left to ask."""
        drawn = len(self.design.draws.items)
        bound = min((one for one in self.earlier if one > drawn), default=self.most)
        count = min(self.design.round_size, min(bound, self.most) - drawn)
        return self.design.draw(count) if count > 0 else []

    def tell(self, items: Sequence[int], facts: SurveyFacts) -> None:
        """Take what the device answered about the items of a round."""
        self.design.tell(items, surprises(facts)[np.asarray(items, np.int64)])
