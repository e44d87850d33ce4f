"""A link whose items arrive late: the emulated latency of profiles with `link_delay_ms`.

This is emulation, and provenance says so (`transport`, `link_delay_ms`): nothing but time is
added. Every round trip takes the delay longer, all of it on the way there. As on a real slow link
it is latency and not throughput: what was sent while another item was under way arrives right
behind it.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class DelayLine(Generic[Item]):
    """A queue whose items come out in order, each `seconds` after it was put in.

    One thread may put while another iterates. Iteration waits for items until the line is closed.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._queue: queue.SimpleQueue[tuple[float, Item] | None] = queue.SimpleQueue()

    def put(self, item: Item) -> None:
        """Send an item on its way; never blocks."""
        self._queue.put((self._clock() + self._seconds, item))

    def close(self) -> None:
        """End the iteration behind the items that are under way."""
        self._queue.put(None)

    def __iter__(self) -> Iterator[Item]:
        while (entry := self._queue.get()) is not None:
            due, item = entry
            if (left := due - self._clock()) > 0:
                self._sleep(left)
            yield item
