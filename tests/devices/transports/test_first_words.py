from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator

import pytest

from edgeflare.devices.transports.first_words import read_until

HIGH = 1024 + 100
"""A descriptor beyond those that `select` takes."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], HIGH + 1), before[1]))
    reads, writes = os.pipe()
    os.dup2(reads, HIGH)
    os.close(reads)
    yield HIGH, writes
    os.close(HIGH)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_sign_is_found_that_comes_in_parts_behind_much_else(pipe: tuple[int, int]) -> None:
    reads, writes = pipe

    def say() -> None:
        for part in (b"a banner\n" * 10_000, b"rea", b"dy, and more"):
            os.write(writes, part)

    saying = threading.Thread(target=say)
    saying.start()
    heard = read_until(b"ready", reads, 200.0)
    saying.join()
    assert b"banner\nready" in heard
    os.close(writes)


def test_silence_and_an_end_are_told_apart(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    os.write(writes, b"not yet")
    with pytest.raises(TimeoutError):
        read_until(b"ready", reads, 0.0)
    os.close(writes)
    with pytest.raises(EOFError):
        read_until(b"ready", reads, 200.0)
