"""Several batches under way at once, answered in the order in which they were put in.

When a device was lost and is reached again, all batches under way are evaluated again by it and by
the host's arms, even where their answers had arrived: these are the same, since a model gives the
same answer to the same input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Generic, TypeVar

from edgeflare.campaign.panel import Panel, PanelDeviceLost, Pending
from edgeflare.core.query import EvaluatedQuery, Query
from edgeflare.errors import InfrastructureError

Ticket = TypeVar("Ticket")

DEPTH = 4
"""Batches under way: one computing on each arm, one on its way there, one on its way back, and one
whose answers the host is reading."""

_BATCH_SECONDS = 0.25
"""The longest that a batch should take on one device, so that progress is seen and Ctrl-C is heeded
on one that needs a tenth of a second for one input."""

MOST_RECOVERIES = 10
"""Times in a row that a device may be lost by the same batch. A bad link loses one in three; a
batch that always does would never end."""


def batch_size(seconds: float, most: int) -> int:
    """Return how many queries make a batch.

    Args:
        seconds: seconds that a query takes; 0 where that is not known.
        most: the most that a batch may have, and has where they are quick.

    """
    if seconds <= 0.0:
        return most
    return max(1, min(most, int(_BATCH_SECONDS / seconds)))


@dataclass(frozen=True, slots=True)
class EvaluatedBatch(Generic[Ticket]):
    """A batch that was answered."""

    ticket: Ticket
    evaluated: list[EvaluatedQuery]
    device_busy_seconds: float

    @property
    def mean_seconds(self) -> float:
        """Evaluation time of one query, on the mean."""
        return fmean(query.seconds for query in self.evaluated)


@dataclass(slots=True)
class _SubmittedBatch(Generic[Ticket]):
    """A batch under way."""

    ticket: Ticket
    queries: Sequence[Query]
    seed_ids: Sequence[int]
    pending: Pending
    losses: int = 0


class Pipeline(Generic[Ticket]):
    """Keeps batches under way on a panel, and survives a device that was lost and found again."""

    def __init__(
        self,
        panel: Panel,
        recover: Callable[[int], None],
        wait_until_ready: Callable[[], None] = lambda: None,
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
        self._recovery: Future[None] | None = None

    def __len__(self) -> int:
        """Return the number of batches under way."""
        return len(self._batches)

    @property
    def full(self) -> bool:
        """Whether another batch would have to wait: for one to be taken out, or for a device."""
        return len(self._batches) >= DEPTH or self._recovery is not None

    @property
    def awaited(self) -> list[Future[Any]]:
        """What has to be done before `poll` can return a batch; empty if nothing has."""
        if self._recovery is not None:
            return [self._recovery]
        return self._batches[0].pending.unfinished if self._batches else []

    def put(self, ticket: Ticket, queries: Sequence[Query], seed_ids: Sequence[int]) -> None:
        """Begin to evaluate a batch, of which each query comes from a seed."""
        self._wait_until_ready()
        pending = self._panel.submit(queries, seed_ids)
        self._batches.append(_SubmittedBatch(ticket, queries, seed_ids, pending))

    def take(self) -> EvaluatedBatch[Ticket]:
        """Wait for the oldest batch; a batch that was lost with its device is sent again."""
        self._finish_recovery()
        while True:
            try:
                return self._collect()
            except PanelDeviceLost as lost:
                self._recover(lost.index)
                self._send_again()

    def poll(self, executor: Executor) -> EvaluatedBatch[Ticket] | None:
        """Return the oldest batch if it is answered, without waiting.

        A lost device is brought back by `executor`; the call after it came back sends again what
        was lost with it.
        """
        if self._recovery is not None and self._recovery.done():
            self._finish_recovery()
        if not self._batches or self.awaited:
            return None
        try:
            return self._collect()
        except PanelDeviceLost as lost:
            self._recovery = executor.submit(self._recover, lost.index)
            return None

    def _collect(self) -> EvaluatedBatch[Ticket]:
        """Wait for the oldest batch, or raise that a device was lost."""
        batch = self._batches[0]
        try:
            evaluated = batch.pending.collect()
        except PanelDeviceLost as lost:
            batch.losses += 1
            if batch.losses <= MOST_RECOVERIES:
                raise
            raise InfrastructureError(
                f"the same batch lost the device {batch.losses} times in a row: {lost}"
            ) from lost
        self._batches.popleft()
        return EvaluatedBatch(batch.ticket, evaluated, batch.pending.device_busy_seconds)

    def _finish_recovery(self) -> None:
        """Wait for a device that is being brought back, if one is, and send to it again."""
        recovery, self._recovery = self._recovery, None
        if recovery is not None:
            recovery.result()
            self._send_again()

    def _send_again(self) -> None:
        for batch in self._batches:
            batch.pending = self._panel.submit(batch.queries, batch.seed_ids)

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
