"""Linear algebra on one thread.

The last digits of a product depend on the number of threads, and with more they keep the models'
processes from the cores. The number is one of the whole process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()

_limits: list[threadpool_limits] = []
"""The limits that were set since nobody needed one, the first of which knows what was before."""

_users = set[object]()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on one thread, for as long as the context lasts, in any thread.

    Of several that overlap, the last to end puts back what was before the first.
    """
    user = object()
    with _lock:
        _limits.append(threadpool_limits(1))  # libraries may have been loaded since the last
        _users.add(user)
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            while _limits and not _users:
                _limits.pop().restore_original_limits()
