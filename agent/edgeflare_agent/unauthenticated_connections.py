"""Connections that have shown no token: few are kept, not for long; and a limit on wrong tokens."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import resource
import socket
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

UNAUTHENTICATED_SECONDS = 10.0
"""A host shows its token with its first call, as soon as it is connected."""

MOST_UNAUTHENTICATED = 64
"""Hosts that connect at the same moment are fewer, and so many are closed at the next look."""

MOST_UNAUTHENTICATED_OF_ONE_PEER = 16
"""Behind a forwarded port, or one router, several hosts have one address."""

MOST_CONNECTIONS = 256
"""Most connections in all: more than one look leaves, so that a host finds a place between two
looks."""

_WANTED_DESCRIPTORS = 4096

_SOCKETS = "/proc/self/fd"


def connections_within_limit() -> int:
    """Return how many connections this process may have, once its limit is raised if it may be.

    Half of the descriptors at least are left for all else, such as workers and models.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _WANTED_DESCRIPTORS:
        wanted = _WANTED_DESCRIPTORS
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, soft // 2))


@dataclass(frozen=True)
class _Connection:
    """A connection of the port.

    Attributes:
        descriptor: file descriptor of its socket.
        number: the system's number of its socket, which tells it from a later one of that
            descriptor.
        name: what gRPC calls it.
        peer: where it comes from.

    """

    descriptor: int
    number: int
    name: str
    peer: str


class UnauthenticatedConnections:
    """Closes connections of a port that do not show the token.

    gRPC accepts connections by itself and tells nobody, so the process looks at its own sockets.
    Where the system does not list them, gRPC's own limits are all there is.

    Args:
        port: where hosts connect.
        tokens: knows which connections have shown the token, by the names that gRPC has for them,
            and forgets those that have ended.
        clock: seconds.

    """

    def __init__(
        self, port: int, tokens: WrongTokens, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._port = port
        self._tokens = tokens
        self._clock = clock
        self._since: dict[int, float] = {}

    def look(self) -> None:
        """Close who has had its time, and the oldest of too many.

        Those that were not there at the last look are spared: a host among them is about to show
        its token. To be called often.
        """
        now = self._clock()
        known = self._tokens.known()  # first: of what is known later, the socket may be new
        try:
            connections = list(_connections(self._port))
        except OSError:
            return
        self._tokens.forget(known.difference(connection.name for connection in connections))
        self._since = {
            connection.number: self._since.get(connection.number, now) for connection in connections
        }
        unauthenticated = [
            connection for connection in connections if not self._tokens.knows(connection.name)
        ]
        unauthenticated.sort(
            key=lambda connection: (self._since[connection.number], connection.number), reverse=True
        )
        for connection in self._to_be_closed(unauthenticated, now):
            _close(connection)

    def _to_be_closed(self, newest_first: list[_Connection], now: float) -> list[_Connection]:
        closed = []
        kept: Counter[str] = Counter()
        for connection in newest_first:
            since = self._since[connection.number]
            many = (
                kept.total() >= MOST_UNAUTHENTICATED
                or kept[connection.peer] >= MOST_UNAUTHENTICATED_OF_ONE_PEER
            )
            if now - since >= UNAUTHENTICATED_SECONDS or (many and since < now):
                closed.append(connection)
            else:
                kept[connection.peer] += 1
        return closed


def _connections(port: int) -> Iterator[_Connection]:
    """Yield the connections that this process has of a port.

    Raises:
        OSError: the system does not list them.

    """
    for descriptor in map(int, os.listdir(_SOCKETS)):
        with contextlib.suppress(OSError):  # it has just ended
            if not os.readlink(f"{_SOCKETS}/{descriptor}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if _is_of(connection, port):
                    number = os.fstat(connection.fileno()).st_ino
                    yield _Connection(descriptor, number, *_names(connection.getpeername()))


def _is_of(connection: socket.socket, port: int) -> bool:
    """Return whether a socket is a connection that was made to a port of ours."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return False
    return bool(connection.getsockname()[1] == port)


def _close(closed: _Connection) -> None:
    """End a connection under gRPC, which then closes its socket by itself."""
    with (
        contextlib.suppress(OSError),
        socket.socket(fileno=os.dup(closed.descriptor)) as connection,
    ):
        if os.fstat(connection.fileno()).st_ino == closed.number:
            connection.shutdown(socket.SHUT_RDWR)


def _names(address: tuple[str, int, int, int] | tuple[str, int]) -> tuple[str, str]:
    """Return the name that gRPC has for a connection, and that of its peer."""
    host, _, _ = address[0].partition("%")
    ip = ipaddress.ip_address(host)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if isinstance(ip, ipaddress.IPv4Address):
        return f"ipv4:{ip}:{address[1]}", str(ip)
    scope = f"%25{address[3]}" if len(address) > 3 and address[3] else ""
    # A network gives each of its hosts as many addresses as it likes out of these.
    peer = str(ipaddress.ip_network((ip, 64), strict=False))
    return f"ipv6:%5B{ip}{scope}%5D:{address[1]}", peer


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
