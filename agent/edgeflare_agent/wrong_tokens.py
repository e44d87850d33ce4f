"""A limit on wrong tokens, so that a token cannot be guessed by trying."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

BURST = 20
"""Wrong tokens that are free: a host with an old token asks a few times."""

PER_SECOND = 5.0
"""Wrong tokens a second beyond that: 158 million a year, of 2^128 that a good token can be. And so
soon after somebody's attempts end, a fifth of a second, a host with the right token is let in."""

_MOST_KNOWN = 1024
"""Connections that have shown the right token, of which those that have ended are forgotten where
that is seen."""


class WrongTokens:
    """Counts wrong tokens of all connections together, and remembers who showed the right one.

    Behind a forwarded port all hosts have the address of the loopback, so there is nothing to tell
    them apart by but their connections. One that has shown the right token is never refused the
    right one for what others do. What is kept does not grow with the attempts. Safe with several
    threads.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left = float(BURST)
        self._since = clock()
        self._known: OrderedDict[str, None] = OrderedDict()

    def admits(self, connection: str, *, right: bool) -> bool | None:
        """Return whether a call is let in; None if its token is not checked now.

        Args:
            connection: name of the connection that the call came by.
            right: whether its token is the right one.

        """
        with self._lock:
            now = self._clock()
            self._left = min(float(BURST), self._left + (now - self._since) * PER_SECOND)
            self._since = now
            known = connection in self._known
            if self._left < 1 and not (known and right):
                return None
            if right:
                self._known[connection] = None
                self._known.move_to_end(connection)
                if len(self._known) > _MOST_KNOWN:
                    self._known.popitem(last=False)
                return True
            self._left = max(0.0, self._left - 1)
            return False

    def knows(self, connection: str) -> bool:
        """Return whether a connection is one that has shown the right token."""
        with self._lock:
            return connection in self._known

    def known(self) -> frozenset[str]:
        """Return the connections that have shown the right token."""
        with self._lock:
            return frozenset(self._known)

    def forget(self, connections: Iterable[str]) -> None:
        """Forget connections, which have ended."""
        with self._lock:
            for connection in connections:
                self._known.pop(connection, None)
