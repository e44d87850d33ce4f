"""The law of leases: one host at a time, numbers that only grow, and one lock for all agents."""

# ruff: noqa: ARG002 - the arguments of methods are those of the seam

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgeflare_agent import device_lease
from edgeflare_agent.device_lease import DeviceLease, DeviceLock, Grant, LockOwner, NotLeased, Taken
from edgeflare_protos import agent_pb2
from edgeflare_protos.lease_words import holder_words, lease_token

SECONDS = 10.0
PATIENT_SECONDS = 200.0
HOSTS = ("ana", "ben", "eve")


class LoneDevice(DeviceLock):
    """A device with no other agent."""

    def __init__(self) -> None:
        self.taken = False

    def take(self, tell: Callable[[], bytes]) -> LockOwner | None:
        assert not self.taken
        self.taken = True
        return None

    def drop(self) -> None:
        self.taken = False


class Saying(LoneDevice):
    """A device whose other agent says something."""

    def __init__(self, told: bytes) -> None:
        super().__init__()
        self._told = told

    def take(self, tell: Callable[[], bytes]) -> LockOwner | None:
        return LockOwner(self._told, 1001, 812)


class Hesitating(LoneDevice):
    """A device whose other agent lets this one wait until it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.ended = threading.Event(), threading.Event()

    def take(self, tell: Callable[[], bytes]) -> LockOwner | None:
        self.asked.set()
        self.ended.wait(2 * PATIENT_SECONDS)
        return super().take(tell)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def words(host: str) -> agent_pb2.LeaseHolder:
    return agent_pb2.LeaseHolder(user=host, pid=1, command="edgeflare search")


@dataclass(frozen=True)
class GivenLease:
    """A lease that was given, and the token by which its host shows it."""

    host: str
    number: int
    token: str


class LawOfLeases(RuleBasedStateMachine):
    """Hosts take, use and give back leases, in any order, and time passes.

    What is expected is written down in the simplest way: whose the device is, and until when.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.device = Clock(), LoneDevice()
        self.lease = DeviceLease(SECONDS, self.device, self.clock)
        self.given: list[GivenLease] = []
        self.latest: GivenLease | None = None
        self.ends = 0.0

    @property
    def owner(self) -> GivenLease | None:
        return self.latest if self.clock.now < self.ends else None

    @rule(seconds=st.sampled_from([1.0, SECONDS - 1, SECONDS, 3 * SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(host=st.sampled_from(HOSTS), former=st.sampled_from(["", *HOSTS]))
    def a_host_asks(self, host: str, former: str) -> None:
        owner = self.owner
        outcome = self.lease.acquire(words(host), of(host), former and of(former))
        if owner is not None and owner.host not in (host, former):
            assert isinstance(outcome, Taken)
            left = self.ends - self.clock.now
            assert (outcome.holder.user, outcome.seconds) == (owner.host, left)
            return
        assert isinstance(outcome, Grant)
        self.ends = self.clock.now + SECONDS
        if owner is not None and owner.host == host:
            assert outcome == Grant(len(self.given), SECONDS, continues=True)
            return
        continues = bool(self.given) and self.given[-1].host == host
        assert outcome == Grant(len(self.given) + 1, SECONDS, continues)
        self.latest = GivenLease(host, outcome.number, lease_token(outcome.number, of(host)))
        self.given.append(self.latest)

    @precondition(lambda self: self.given)
    @rule(back=st.integers(0, 3))
    def a_call_comes(self, back: int) -> None:
        one = self.given[-1 - back % len(self.given)]
        if one == self.owner:
            assert self.lease.admit(one.token) == len(self.given)
            self.ends = self.clock.now + SECONDS
        else:
            with pytest.raises(NotLeased, match="the lease of this call has ended"):
                self.lease.admit(one.token)

    @precondition(lambda self: self.given)
    @rule(back=st.integers(0, 3))
    def a_lease_is_given_back(self, back: int) -> None:
        one = self.given[-1 - back % len(self.given)]
        self.lease.release(one.token)
        if one == self.owner:
            self.latest = None

    @invariant()
    def whoever_has_no_lease_is_served_while_nobody_has_one(self) -> None:
        if self.owner is None:
            assert self.lease.admit(None) == 0
        else:
            with pytest.raises(NotLeased, match=f"in use by {self.owner.host} "):
                self.lease.admit(None)
        assert self.device.taken == (self.owner is not None)


TestLawOfLeases = LawOfLeases.TestCase


def of(host: str) -> str:
    """Return the secret of a host."""
    return f"secret of {host}"


def test_the_token_of_an_earlier_agent_is_none_of_this_one() -> None:
    """Both have given one lease, so the numbers are the same."""
    earlier, later = DeviceLease(SECONDS, LoneDevice()), DeviceLease(SECONDS, LoneDevice())
    before = earlier.acquire(words("ana"), "before")
    after = later.acquire(words("ben"), "after")
    assert isinstance(before, Grant)
    assert isinstance(after, Grant)
    with pytest.raises(NotLeased, match=r"and the device is in use by ben \(process 1, edge"):
        later.admit(lease_token(before.number, "before"))
    assert later.admit(lease_token(after.number, "after")) == after.number


def told_of(host: str, seconds: float) -> bytes:
    reply = agent_pb2.AcquireLeaseReply(in_use_by=words(host), remaining_seconds=seconds)
    return bytes(reply.SerializeToString())


@pytest.mark.parametrize(
    ("told", "user", "seconds"),
    [
        (told_of("ana", 7), "ana", 7.0),
        (b"", "", 0.0),
        (b"\xff" * 4096, "", 0.0),
        (told_of("\x1b[2J", 7), "", 0.0),
        (told_of("ana", float("nan")), "ana", 0.0),
    ],
    ids=["an agent", "silence", "noise", "commands of a terminal", "no number"],
)
def test_whatever_another_program_of_the_device_says_it_is_in_use(
    told: bytes, user: str, seconds: float
) -> None:
    outcome = DeviceLease(SECONDS, Saying(told)).acquire(words("ben"), "secret")
    assert isinstance(outcome, Taken)
    assert (outcome.holder.user, outcome.seconds) == (user, seconds)
    assert outcome.told_by == agent_pb2.DeviceProcess(uid=1001, pid=812)
    assert holder_words(outcome.holder).isprintable()


def test_while_another_agent_lets_it_wait_nobody_else_has_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Hesitating()
    lease = DeviceLease(SECONDS, device)
    with ThreadPoolExecutor(3) as pool:
        try:
            first = pool.submit(lease.acquire, words("ana"), "first")
            assert device.asked.wait(PATIENT_SECONDS)
            assert pool.submit(lease.admit, None).result(PATIENT_SECONDS) == 0
            monkeypatch.setattr(device_lease, "TAKE_SECONDS", 0.01)
            turned_away = pool.submit(lease.acquire, words("ben"), "second").result(PATIENT_SECONDS)
            assert turned_away == Taken(agent_pb2.LeaseHolder(), 0.0)
            monkeypatch.setattr(device_lease, "TAKE_SECONDS", PATIENT_SECONDS)
            waiting = pool.submit(lease.acquire, words("eve"), "third")
        finally:
            device.ended.set()
        assert first.result(PATIENT_SECONDS) == Grant(1, SECONDS, continues=False)
        outcome = waiting.result(PATIENT_SECONDS)
        assert isinstance(outcome, Taken)
        assert outcome.holder.user == "ana"


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="has no abstract sockets")

HOLD = """
import resource, sys
from edgeflare_agent.device_lease import DeviceLock
lock = DeviceLock(sys.argv[1])
assert lock.take(lambda: b"mine") is None
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), before[1]))
print("held", flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_NOFILE, before)
print("has files again", flush=True)
sys.stdin.read()
"""
"""Holds the lock, with so many descriptors until it reads a line."""


@pytest.fixture
def name() -> str:
    return f"test {secrets.token_hex(8)} {'long' * 50}"


@contextlib.contextmanager
def holding(name: str, descriptors: int = 100) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, name, str(descriptors)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def holder(name: str) -> Iterator[subprocess.Popen[str]]:
    with holding(name) as process:
        yield process


@on_linux
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


@pytest.fixture
def short_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time for which a lock waits for its holder to answer."""
    monkeypatch.setattr(device_lease, "TAKE_SECONDS", 0.5)


@pytest.mark.slow
@on_linux
def test_a_holder_that_is_stopped_has_it_all_the_same(
    holder: subprocess.Popen[str], name: str, short_take: None
) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    os.waitpid(holder.pid, os.WUNTRACED)  # until it is
    assert DeviceLock(name).take(lambda: b"ours") == LockOwner(b"", os.getuid(), holder.pid)


@pytest.mark.slow
@on_linux
def test_one_that_answers_byte_by_byte_keeps_nobody_waiting(name: str, short_take: None) -> None:
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


@pytest.mark.slow
@on_linux
def test_one_that_could_open_nothing_for_a_while_answers_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holding(name, descriptors=3) as full:
        assert full.stdin is not None
        assert full.stdout is not None
        lock = DeviceLock(name)
        with monkeypatch.context() as short_take:
            short_take.setattr(device_lease, "TAKE_SECONDS", 0.5)
            lock.take(lambda: b"ours")  # for which it may have had a file in reserve
            assert lock.take(lambda: b"ours") == LockOwner(b"", os.getuid(), full.pid)
        full.stdin.write("\n")
        full.stdin.flush()
        assert full.stdout.readline() == "has files again\n"
        assert lock.take(lambda: b"ours") == LockOwner(b"mine", os.getuid(), full.pid)


@on_linux
def test_one_that_finds_out_by_the_question_that_it_has_ended_gives_way(name: str) -> None:
    former = DeviceLock(name)

    def ended() -> bytes:
        former.drop()
        return b""

    assert former.take(ended) is None
    assert DeviceLock(name).take(lambda: b"ours") is None
