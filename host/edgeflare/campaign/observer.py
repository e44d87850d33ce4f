"""The observer of a campaign, and what it is told of the progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the search is.

    Attributes:
        seeds: seeds of the campaign.
        deviating_seeds: those that deviate themselves.
        ended: chains that have ended.
        findings: chains that ended in a finding.
        queries: queries so far.
        device_queries: device queries so far.
        seconds: wall seconds so far.
        most_queries_left: queries that the chains which have not ended may still spend.
        seconds_left: wall seconds until the search is stopped; infinite where they have no bound.

    """

    seeds: int
    deviating_seeds: int
    ended: int
    findings: int
    queries: int
    device_queries: int
    seconds: float
    most_queries_left: int
    seconds_left: float


@dataclass(frozen=True, slots=True)
class RefinementProgress:
    """How far the refinement of the findings is.

    Attributes:
        findings: all that are refined.
        ended: those of them whose refinement has ended.
        ended_queries: what these have spent.
        open_queries: what the others have spent so far.
        most_queries: what each may spend at most.

    """

    findings: int
    ended: int
    ended_queries: int
    open_queries: int
    most_queries: int


class Observer(Protocol):
    """Receives the progress of a campaign."""

    def warned(self, line: str) -> None:
        """See that something looks wrong with the pair."""

    def screened(self, done: int, total: int) -> None:
        """See that so many of the seeds have been evaluated."""

    def tested(self, done: int, total: int) -> None:
        """See that so many of the held-out inputs have been evaluated."""

    def searched(self, progress: Progress) -> None:
        """See how far the search is."""

    def refined(self, progress: RefinementProgress) -> None:
        """See how far the refinement of the findings is."""

    def verified(self, done: int, total: int) -> None:
        """See that so many evaluations of findings have been repeated."""

    def covered(self, done: int, total: int) -> None:
        """See that the neuron coverage of so many inputs has been measured."""


class Unobserved:
    """An observer that shows nothing."""

    def warned(self, line: str) -> None:
        """Show nothing."""

    def screened(self, done: int, total: int) -> None:
        """Show nothing."""

    def tested(self, done: int, total: int) -> None:
        """Show nothing."""

    def searched(self, progress: Progress) -> None:
        """Show nothing."""

    def refined(self, progress: RefinementProgress) -> None:
        """Show nothing."""

    def verified(self, done: int, total: int) -> None:
        """Show nothing."""

    def covered(self, done: int, total: int) -> None:
        """Show nothing."""
