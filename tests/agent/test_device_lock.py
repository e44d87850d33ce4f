"""The lock that the agents of a machine share, between processes as they come and go."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from edgeflare_agent.device_lock import DeviceLock, LockOwner

PATIENT_SECONDS = 200

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has no abstract sockets")

HOLD = """
import sys
from edgeflare_agent.device_lock import DeviceLock
lock = DeviceLock(sys.argv[1])
assert lock.take(lambda: b"mine") is None
print("held", flush=True)
sys.stdin.read()
"""


HOLD_WITHOUT_FILES = """
import resource, sys
from edgeflare_agent.device_lock import DeviceLock
lock = DeviceLock(sys.argv[1])
assert lock.take(lambda: b"mine") is None
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
print("held", flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_NOFILE, before)
print("has files again", flush=True)
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
    assert lock.take(lambda: b"ours") == LockOwner(b"mine", os.getuid(), holder.pid)
    assert DeviceLock(name + "!").take(lambda: b"another") is None
    holder.kill()
    holder.wait()
    assert lock.take(lambda: b"ours") is None
    assert DeviceLock(name).take(lambda: b"theirs") == LockOwner(b"ours", os.getuid(), os.getpid())
    lock.drop()
    lock.drop()
    assert DeviceLock(name).take(lambda: b"theirs") is None


def test_a_holder_that_is_stopped_has_it_all_the_same(
    holder: subprocess.Popen[str], name: str
) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    os.waitpid(holder.pid, os.WUNTRACED)  # until it is
    assert DeviceLock(name).take(lambda: b"ours") == LockOwner(b"", os.getuid(), holder.pid)


def test_one_that_answers_byte_by_byte_keeps_nobody_waiting(name: str) -> None:
    """Each byte arrives in time; all that would be read take a quarter of an hour."""
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        caller, _ = listener.accept()
        with caller, contextlib.suppress(OSError):
            while not ended.wait(0.2):
                caller.send(b"x")

    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as squatter,
        ThreadPoolExecutor(2) as pool,
    ):
        squatter.bind(DeviceLock(name)._address)
        squatter.listen()
        pool.submit(drip, squatter)
        try:
            owner = pool.submit(DeviceLock(name).take, lambda: b"ours").result(PATIENT_SECONDS)
        finally:
            ended.set()
    assert owner is not None
    assert owner.told == b"x" * len(owner.told)
    assert (owner.uid, owner.pid) == (os.getuid(), os.getpid())


def test_one_that_could_open_nothing_for_a_while_answers_again(name: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_WITHOUT_FILES, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as full:
        assert full.stdin is not None
        assert full.stdout is not None
        assert full.stdout.readline() == "held\n"
        lock = DeviceLock(name)
        lock.take(lambda: b"ours")  # for which it may have had a file in reserve
        assert lock.take(lambda: b"ours") == LockOwner(b"", os.getuid(), full.pid)
        full.stdin.write("\n")
        full.stdin.flush()
        assert full.stdout.readline() == "has files again\n"
        assert lock.take(lambda: b"ours") == LockOwner(b"mine", os.getuid(), full.pid)
        full.kill()


def test_one_that_finds_out_by_the_question_that_it_has_ended_gives_way(name: str) -> None:
    former = DeviceLock(name)

    def ended() -> bytes:
        former.drop()
        return b""

    assert former.take(ended) is None
    assert DeviceLock(name).take(lambda: b"ours") is None
