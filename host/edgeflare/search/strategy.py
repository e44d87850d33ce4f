"""The seam between a search and whatever evaluates for it: ask and tell.

A strategy is written as a *story*: a generator that yields the queries it wants evaluated, is
sent their outcomes, and returns the trigger that it found (or None if it gives up). It reads like
the algorithm in its paper. `Told` turns a story into the `Strategy` that the engine drives.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edgeflare.search.bounds import UNBOUNDED, Bounds
from edgeflare.search.goal import Goal, Kind
from edgeflare.search.outcome import Arm, Image, Outcome


@dataclass(frozen=True, slots=True)
class Query:
    """One mutated input to be evaluated on some arms.

    Attributes:
        image: the input, HWC uint8.
        arms: which arms are asked; may be empty where kernel sets are named.
        kernels: further kernel sets of the twin that are asked, members of its ensemble.
        again: the input is one that was asked before, in a search the one just before, now on
            further arms: no query of its own.

    """

    image: Image
    arms: tuple[Arm, ...]
    kernels: tuple[str, ...] = ()
    again: bool = False


@dataclass(frozen=True, slots=True)
class Trigger:
    """A triggering input, and how the search came to it.

    Attributes:
        image: the input, HWC uint8.
        kind: what makes it a finding.
        outcome: what the arms answered.
        operators: names of the mutation operators that lead from the seed to it, in order.

    """

    image: Image
    kind: Kind
    outcome: Outcome
    operators: tuple[str, ...]


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

    """

    image: Image
    outcome: Outcome
    goal: Goal
    rng: np.random.Generator
    bounds: Bounds = UNBOUNDED
    ensemble: tuple[str, ...] = ()
    donors: Sequence[Donor] = ()


class Strategy(Protocol):
    """A search for one triggering input, from one seed input."""

    def ask(self) -> Sequence[Query]:
        """Return the images to evaluate next; empty when the search has ended."""

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of the queries last asked, in their order."""

    @property
    def finding(self) -> Trigger | None:
        """The triggering input, once there is one."""


Story = Generator[Sequence[Query], Sequence[Outcome], Trigger | None]
Tale = Callable[[Start], Story]
"""A strategy as it is written: from a start to the story of its search."""


class Told:
    """Drives a story as a `Strategy`."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._finding: Trigger | None = None
        self._asked: Sequence[Query] = ()
        self._advance(None)

    def ask(self) -> Sequence[Query]:
        """Return the queries that the story waits for."""
        return self._asked

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Send the outcomes into the story and let it run to its next question."""
        self._advance(outcomes)

    @property
    def finding(self) -> Trigger | None:
        """What the story returned."""
        return self._finding

    def _advance(self, outcomes: Sequence[Outcome] | None) -> None:
        try:
            self._asked = next(self._story) if outcomes is None else self._story.send(outcomes)
        except StopIteration as end:
            self._asked = ()
            self._finding = end.value
