"""The lock that the agents of a machine share, between processes as they come and go."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from edgeflare_agent.device_lock import DeviceLock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has no abstract sockets")

HOLD = """
import sys
from edgeflare_agent.device_lock import DeviceLock
lock = DeviceLock(sys.argv[1])
assert lock.take(lambda: b"mine") is None
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def name() -> str:
    return f"test {secrets.token_hex(8)} {'long' * 50}"


@pytest.fixture
def holder(name: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_who_has_it_says_so_until_it_ends(holder: subprocess.Popen[str], name: str) -> None:
    lock = DeviceLock(name)
    assert lock.take(lambda: b"ours") == b"mine"
    assert DeviceLock(name + "!").take(lambda: b"another") is None
    holder.kill()
    holder.wait()
    assert lock.take(lambda: b"ours") is None
    assert DeviceLock(name).take(lambda: b"theirs") == b"ours"
    lock.drop()
    lock.drop()
    assert DeviceLock(name).take(lambda: b"theirs") is None


def test_a_holder_that_is_stopped_has_it_all_the_same(
    holder: subprocess.Popen[str], name: str
) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    assert DeviceLock(name).take(lambda: b"ours") == b""


def test_one_that_finds_out_by_the_question_that_it_has_ended_gives_way(name: str) -> None:
    former = DeviceLock(name)

    def ended() -> bytes:
        former.drop()
        return b""

    assert former.take(ended) is None
    assert DeviceLock(name).take(lambda: b"ours") is None
