"""The seam between a search and whatever evaluates for it: ask and tell.

A strategy is written as a generator: it yields the queries that it wants evaluated, is sent their
outcomes, and returns the trigger that it found, or None if it gives up. So it reads like the
algorithm in its paper. `GeneratorStrategy` makes a generator the `Strategy` that the engine drives.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.operator_pool import built_in_pool
from edgeflare_operators import MutationOperator


@dataclass(frozen=True, slots=True)
class Donor:
    """Another seed of the campaign, one that does not deviate itself.

    Attributes:
        image: the seed input, HWC uint8.
        outcome: what the arms answered about it.

    """

    image: Image
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Start:
    """What a search begins with.

    Attributes:
        image: the seed input, HWC uint8.
        outcome: what the arms answered about the seed input.
        goal: what counts as a finding.
        rng: the only source of randomness that the search may use.
        bounds: how far a mutant may be from the seed; every query keeps them.
        ensemble: kernel sets of the twin that can be asked beside its own; empty for none.
        donors: seeds of the campaign, this one maybe among them; empty where none are lent.
        operators: the run's operator pool, in the order of the operators' names; EdgeFlare's own
            unless told otherwise.

    """

    image: Image
    outcome: Outcome
    goal: Goal
    rng: np.random.Generator
    bounds: Bounds = UNBOUNDED
    ensemble: tuple[str, ...] = ()
    donors: Sequence[Donor] = ()
    operators: Sequence[MutationOperator] = field(default_factory=built_in_pool)


class Strategy(Protocol):
    """A search for one triggering input, from one seed input."""

    def ask(self) -> Sequence[Query]:
        """Return the images to evaluate next; empty when the search has ended."""

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of the queries last asked, in their order."""

    @property
    def finding(self) -> Trigger | None:
        """The triggering input, once there is one."""


SearchGenerator = Generator[Sequence[Query], Sequence[Outcome], Trigger | None]
StrategyFunction = Callable[[Start], SearchGenerator]
"""A strategy as it is written: from a start to the generator of its search."""


class GeneratorStrategy:
    """Drives a generator as a `Strategy`."""

    def __init__(self, generator: SearchGenerator) -> None:
        self._generator = generator
        self._finding: Trigger | None = None
        self._asked: Sequence[Query] = ()
        self._advance(None)

    def ask(self) -> Sequence[Query]:
        """Return the queries that the generator waits for."""
        return self._asked

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Send the outcomes into the generator and let it run to its next queries."""
        self._advance(outcomes)

    @property
    def finding(self) -> Trigger | None:
        """What the generator returned."""
        return self._finding

    def _advance(self, outcomes: Sequence[Outcome] | None) -> None:
        try:
            self._asked = (
                next(self._generator) if outcomes is None else self._generator.send(outcomes)
            )
        except StopIteration as end:
            self._asked = ()
            self._finding = end.value
