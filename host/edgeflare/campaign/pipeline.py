"""Several batches under way at once, answered in the order in which they were put in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from edgeflare.campaign.panel import Evaluated, Panel, Pending
from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError
from edgeflare.search.strategy import Query

Ticket = TypeVar("Ticket")

DEPTH = 4
"""Batches under way: one computing on each arm, one on its way there, one on its way back, and one
whose answers the host is reading."""

MOST_RECOVERIES = 3
"""Times in a row that a device may be lost by the same batch. A bad link loses one now and then; a
batch that always does would never end."""


@dataclass(frozen=True, slots=True)
class Landed(Generic[Ticket]):
    """A batch that was answered."""

    ticket: Ticket
    evaluated: list[Evaluated]
    device_busy_seconds: float


class Pipeline(Generic[Ticket]):
    """Keeps batches under way on a panel, and survives a device that was lost and found again."""

    def __init__(self, panel: Panel, recover: Callable[[DeviceLost], None]) -> None:
        """Make an empty pipeline; `recover` brings a lost device back, or raises."""
        self._panel = panel
        self._recover = recover
        self._flights: deque[tuple[Ticket, Sequence[Query], Pending]] = deque()

    def __len__(self) -> int:
        """Return the number of batches under way."""
        return len(self._flights)

    @property
    def full(self) -> bool:
        """Whether another batch would have to wait for one to be taken out."""
        return len(self._flights) >= DEPTH

    def put(self, ticket: Ticket, queries: Sequence[Query]) -> None:
        """Begin to evaluate a batch."""
        self._flights.append((ticket, queries, self._panel.submit(queries)))

    def take(self) -> Landed[Ticket]:
        """Wait for the oldest batch; a batch that was lost with its device is sent again."""
        for _ in range(MOST_RECOVERIES + 1):
            ticket, _, pending = self._flights[0]
            try:
                evaluated = pending.collect()
            except DeviceLost as lost:
                last = lost
                self._recover(lost)
                self._flights = deque(
                    (ticket, queries, self._panel.submit(queries))
                    for ticket, queries, _ in self._flights
                )
                continue
            self._flights.popleft()
            return Landed(ticket, evaluated, pending.device_busy_seconds)
        raise InfrastructureError(
            f"the same batch lost the device {MOST_RECOVERIES + 1} times in a row: {last}"
        )

    def stream(self, batches: Iterable[tuple[Ticket, Sequence[Query]]]) -> Iterator[Landed[Ticket]]:
        """Evaluate batch after batch, as many under way as the pipeline holds."""
        for ticket, queries in batches:
            if self.full:
                yield self.take()
            self.put(ticket, queries)
        while self._flights:
            yield self.take()
