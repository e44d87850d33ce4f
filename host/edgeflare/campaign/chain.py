"""One seed input being searched by one strategy, and what it has spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.query import Arm, EvaluatedQuery, Query
from edgeflare.run.journal_rows import ChainRow, Ended
from edgeflare.strategies.strategy import AskTellSearch


def chain_generator(rng_seed: int, seed_id: int) -> np.random.Generator:
    """Return the chain's own generator, which depends on nothing but these two numbers."""
    return np.random.default_rng([rng_seed, seed_id])


@dataclass(slots=True)
class Chain:
    """A chain of the campaign.

    Attributes:
        seed_id: position of the seed input in its set.
        strategy: the search.
        goal: what counts as a finding; for counting ties.
        steps: answers told so far.
        queries: distinct inputs among them.
        device_queries: those of them that the device answered.
        evaluations: invocations of the host's arms, by arm.
        member_evaluations: invocations of each member of the twin's ensemble.
        ties: queries whose compared labels differ by a tie only.
        seconds: the chain's share of evaluation time, that of white-box queries left out.

    """

    seed_id: int
    strategy: AskTellSearch
    goal: Goal
    steps: int = 0
    queries: int = 0
    device_queries: int = 0
    evaluations: dict[Arm, int] = field(default_factory=lambda: {Arm.ORIGINAL: 0, Arm.TWIN: 0})
    member_evaluations: int = 0
    ties: int = 0
    seconds: float = 0.0

    def tell(self, evaluated: Sequence[EvaluatedQuery]) -> None:
        """Count what was evaluated, and tell it to the strategy."""
        self.steps += len(evaluated)
        self.queries += _inputs(self.strategy.ask())
        for query in evaluated:
            answers = query.outcome.answers
            self.member_evaluations += bool(query.outcome.members)
            self.device_queries += Arm.DEVICE in answers
            for arm in self.evaluations:
                self.evaluations[arm] += arm in answers
            self.ties += self.goal.tied_deviation(query.outcome)
            self.seconds += query.seconds
        self.strategy.tell([query.outcome for query in evaluated])

    def affords(self, allowance: int) -> bool:
        """Whether what the strategy asks next stays within so many queries of the chain."""
        return self.queries + _inputs(self.strategy.ask()) <= allowance

    def ending(self, max_queries: int, max_seconds: float) -> Ended | None:
        """Return why the chain has ended, or None while it is open."""
        if self.strategy.finding is not None:
            return "finding"
        if not self.strategy.ask():
            return "max-time" if self.strategy.time_up else "gave-up"
        if not self.affords(max_queries):
            return "max-queries"
        if self.seconds >= max_seconds:  # that of white-box queries is the strategy's to limit
            return "max-time"
        return None

    @property
    def spent_seconds(self) -> float:
        """The chain's share of evaluation time, that of white-box queries included."""
        return self.seconds + self.strategy.whitebox_seconds

    @property
    def trigger(self) -> Trigger | None:
        """The triggering input, once there is one."""
        return self.strategy.finding

    def row(self, ended: Ended) -> ChainRow:
        """Return what the journal keeps of the chain."""
        return ChainRow(
            seed_id=self.seed_id,
            ended=ended,
            queries=self.queries,
            device_queries=self.device_queries,
            original_evaluations=self.evaluations[Arm.ORIGINAL],
            twin_evaluations=self.evaluations[Arm.TWIN],
            member_evaluations=self.member_evaluations,
            ties=self.ties,
            seconds=self.spent_seconds,
            host_gradients=self.strategy.host_gradients,
            translated_evaluations=self.strategy.translated_evaluations,
        )


def _inputs(queries: Sequence[Query]) -> int:
    """Return how many distinct inputs are asked about."""
    return len(queries) - sum([query.again for query in queries])
