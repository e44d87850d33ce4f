"""Several batches under way at once, answered in the order in which they were put in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, TypeVar

from edgeflare.campaign.panel import Panel, PanelDeviceLost, Pending
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.query import Query
from edgeflare.errors import InfrastructureError

Ticket = TypeVar("Ticket")

DEPTH = 4
"""Batches under way: one computing on each arm, one on its way there, one on its way back, and one
whose answers the host is reading."""

MOST_RECOVERIES = 10
"""Times in a row that a device may be lost by the same batch. A bad link loses one in three; a
batch that always does would never end."""


@dataclass(frozen=True, slots=True)
class EvaluatedBatch(Generic[Ticket]):
    """A batch that was answered."""

    ticket: Ticket
    evaluated: list[EvaluatedQuery]
    device_busy_seconds: float

    @property
    def mean_seconds(self) -> float:
        """Evaluation time of one query, on the mean."""
        return fmean(one.seconds for one in self.evaluated)


@dataclass(slots=True)
class _SubmittedBatch(Generic[Ticket]):
    """A batch under way."""

    ticket: Ticket
    queries: Sequence[Query]
    seed_ids: Sequence[int]
    pending: Pending


class Pipeline(Generic[Ticket]):
    """Keeps batches under way on a panel, and survives a device that was lost and found again."""

    def __init__(
        self, panel: Panel, recover: Callable[[int], None], wait_until_ready: Callable[[], None]
    ) -> None:
        """Make an empty pipeline.

        Args:
            panel: the arms.
            recover: brings a lost device back, by its place among the devices, or raises.
            wait_until_ready: is called before each batch, and returns when the devices may go on.

        """
        self._panel = panel
        self._recover = recover
        self._wait_until_ready = wait_until_ready
        self._batches: deque[_SubmittedBatch[Ticket]] = deque()

    def __len__(self) -> int:
        """Return the number of batches under way."""
        return len(self._batches)

    @property
    def full(self) -> bool:
        """Whether another batch would have to wait for one to be taken out."""
        return len(self._batches) >= DEPTH

    def put(self, ticket: Ticket, queries: Sequence[Query], seed_ids: Sequence[int]) -> None:
        """Begin to evaluate a batch, of which each query comes from a seed."""
        self._wait_until_ready()
        pending = self._panel.submit(queries, seed_ids)
        self._batches.append(_SubmittedBatch(ticket, queries, seed_ids, pending))

    def take(self) -> EvaluatedBatch[Ticket]:
        """Wait for the oldest batch; a batch that was lost with its device is sent again."""
        for _ in range(MOST_RECOVERIES + 1):
            batch = self._batches[0]
            try:
                evaluated = batch.pending.collect()
            except PanelDeviceLost as lost:
                last = lost
                self._recover(lost.index)
                for other in self._batches:
                    other.pending = self._panel.submit(other.queries, other.seed_ids)
                continue
            self._batches.popleft()
            return EvaluatedBatch(batch.ticket, evaluated, batch.pending.device_busy_seconds)
        raise InfrastructureError(
            f"the same batch lost the device {MOST_RECOVERIES + 1} times in a row: {last}"
        )

    def stream(
        self, batches: Iterable[tuple[Ticket, Sequence[Query], Sequence[int]]]
    ) -> Iterator[EvaluatedBatch[Ticket]]:
        """Evaluate batch after batch, as many under way as the pipeline holds."""
        for batch in batches:
            if self.full:
                yield self.take()
            self.put(*batch)
        while self._batches:
            yield self.take()
