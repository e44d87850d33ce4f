"""Linear algebra on one thread, also where several ask for that at once."""

from __future__ import annotations

import numpy as np  # noqa: F401 - has the library whose threads are limited
from threadpoolctl import threadpool_info, threadpool_limits

from edgeflare.linear_algebra import one_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info()}


def test_the_last_to_end_puts_back_what_was_before_the_first() -> None:
    with threadpool_limits(3):
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {3}
