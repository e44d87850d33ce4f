"""A TCP proxy in this process that harms what passes through it, as its generator says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

Fault = Literal["drop", "delay", "reorder", "cut", "corrupt"]

EVERY_FAULT: Mapping[Fault, float] = {
    "drop": 1.0,
    "delay": 1.0,
    "reorder": 1.0,
    "cut": 1.0,
    "corrupt": 2.0,
}
"""What may happen to a segment, and how often in relation to each other."""

SEGMENT_BYTES = 16 * 1024
DELAY_SECONDS = 0.01


class FaultyProxy:
    """Passes connections on to a target, and harms some of the segments that pass.

    drop: a segment vanishes. delay: it waits, and all behind it with it. reorder: it goes after
    the next one. cut: the connection is reset. corrupt: one to eight of its bytes change.

    As a context manager it closes itself.

    Attributes:
        address: where it listens.
        faults: how many there were, by kind.
        accepted: how many connections there were.

    """

    def __init__(self, target: str, seed: int, kinds: Mapping[Fault, float] = EVERY_FAULT) -> None:
        """Listen; nothing is harmed until `harm` is called.

        Args:
            target: host:port to pass on to.
            seed: of the faults.
            kinds: what may happen, with weights.

        """
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._rng = np.random.default_rng(seed)
        self._kinds = list(kinds)
        weights = np.array(list(kinds.values()))
        self._shares = weights / weights.sum()
        self._lock = threading.Lock()
        self._rate, self._left = 0.0, 0
        self.faults: Counter[str] = Counter()
        self.accepted = 0
        self._silent = threading.Event()
        self._bytes_per_second = float("inf")
        self._closed = False
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._begin(self._accept)

    def harm(self, rate: float, most: int) -> None:
        """From now on harm each segment with this probability, and so many at most."""
        with self._lock:
            self._rate, self._left = rate, most

    def fall_silent(self) -> None:
        """Pass nothing on any more, while all connections stay open: a cable that was pulled."""
        self._silent.set()

    def throttle(self, bytes_per_second: float) -> None:
        """From now on pass no more on than that, in each direction of each connection."""
        self._bytes_per_second = bytes_per_second

    def speak_again(self) -> None:
        """Undo `fall_silent` for new connections; what was swallowed stays lost."""
        self.cut_all()
        self._silent.clear()

    def cut_all(self) -> None:
        """Reset every connection that is open."""
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            _reset(one)

    def close(self) -> None:
        """Stop listening, and reset every connection."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()
        for thread in list(self._threads):
            thread.join()

    def __enter__(self) -> FaultyProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=5)
                far.settimeout(None)
            except OSError:
                _reset(near)
                continue
            with self._lock:
                self.accepted += 1
                self._sockets |= {near, far}
                self._threads = [thread for thread in self._threads if thread.is_alive()]
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._begin(self._pass_on, near, far)
            self._begin(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for segment in self._harmed(source):
                if not self._silent.is_set():
                    time.sleep(len(segment) / self._bytes_per_second)
                    sink.sendall(segment)
        for one in (source, sink):
            _reset(one)
            with self._lock:
                self._sockets.discard(one)

    def _harmed(self, source: socket.socket) -> Iterator[bytes]:
        """Yield what the sink is to get of what the source sends."""
        held = b""
        while segment := source.recv(SEGMENT_BYTES):
            fault = self._fault()
            if fault == "cut":
                return
            if fault == "reorder" and not held:
                held = segment
                continue
            if fault == "corrupt":
                segment = self._corrupted(segment)
            if fault == "delay":
                time.sleep(DELAY_SECONDS)
            if fault != "drop":
                yield segment
            if held:
                yield held
                held = b""
        if held:
            yield held

    def _fault(self) -> Fault | None:
        with self._lock:
            if not self._left or self._rng.random() >= self._rate:
                return None
            self._left -= 1
            fault = self._kinds[self._rng.choice(len(self._kinds), p=self._shares)]
            self.faults[fault] += 1
            return fault

    def _corrupted(self, segment: bytes) -> bytes:
        """Change bytes, each to another value, close together or far apart."""
        changed = bytearray(segment)
        with self._lock:
            for _ in range(self._rng.integers(1, 9)):
                changed[self._rng.integers(len(changed))] ^= int(self._rng.integers(1, 256))
        return bytes(changed)


def _reset(one: socket.socket) -> None:
    """Close a socket without a farewell: whoever is at its other end sees a reset."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.shutdown(socket.SHUT_RDWR)
    one.close()
