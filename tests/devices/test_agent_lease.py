"""One agent and several hosts: one has the device, whatever becomes of it."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from called_commands import completed
from documents import Document
from edgeflare.devices import agent_lease
from edgeflare.devices import device as device_module
from edgeflare.devices.agent_lease import AgentLease, DeviceInUse
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.device_check import canary_model
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos import agent_pb2 as wire
from laboratory import untimed
from processes import alive

Images = NDArray[np.float32]
Start = Callable[..., Any]
Serve = Callable[..., Profile]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ROUNDS = 8
PATIENT_SECONDS = 200.0

IN_USE = re.compile(
    r"board \(127\.0\.0\.1:\d+\): (the lease of this command has ended, and the device is now )?"
    r"in use by \S+@\S+ \(process (\d+), [^)]+\) until \d\d:\d\d:\d\d at least, and longer while"
    r" that works: wait until it has ended, or name another device(; so says process (\d+) of the"
    r" user \d+ there; where that is the agent of another device of that machine, start each agent"
    r" with a name of its own, by its --device or a profile's agent_device)?"
)

HOST = """
import sys
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.errors import EdgeFlareError
profile = Profile(name="board", transport="address", address=sys.argv[1])
for _ in sys.stdin:
    try:
        with connect(profile):
            print("in", flush=True)
            sys.stdin.readline()
    except EdgeFlareError as error:
        print(error.exit_code, error, flush=True)
        sys.stdin.readline()
    print("out", flush=True)
"""
"""Opens the device at each other line, and closes it at the next."""


def board(address: str, **settings: Any) -> Profile:
    return Profile(
        name="board", transport="address", address=address, kernels="builtin", **settings
    )


LOSE_THE_ANSWER = """
import sys
from edgeflare.devices import device
from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.profile import Profile

class Unheard(Connection):
    def acquire_lease(self, request):
        super().acquire_lease(request)
        raise DeviceLost("the answer was lost")

device.Connection = Unheard
try:
    device.connect(Profile(name="board", transport="address", address=sys.argv[1]))
except DeviceLost:
    print("lost", flush=True)
"""


class Host:
    """A process with a cache of its own, as on a host of its own."""

    def __init__(self, script: str, cache: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


Hosts = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    with ExitStack() as stack:

        def start(script: str, cache: str, *arguments: str) -> Host:
            one = Host(script, tmp_path / cache, *arguments)
            stack.callback(one.kill)
            return one

        yield start


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))


def connect_when_free(profile: Profile) -> Device:
    deadline = time.monotonic() + PATIENT_SECONDS
    while True:
        try:
            return connect(profile)
        except DeviceInUse:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize("agents", [1, 2])
def test_of_two_hosts_that_open_a_device_at_once_one_gets_in(
    agents: int, start_agent: Start, host: Hosts, tmp_path: Path
) -> None:
    """Whether both ask one agent of the device, or each an agent of its own."""
    asked = [start_agent("--device", str(tmp_path)) for _ in range(agents)] * (2 // agents)
    hosts = [host(HOST, name, one.address) for name, one in zip(("a", "b"), asked, strict=True)]
    for _ in range(ROUNDS):
        for one in hosts:
            one.tell()
        heard = [one.hear() for one in hosts]
        (loser,) = [words for words in heard if words != "in"]
        winner = heard.index("in")
        told = IN_USE.fullmatch(loser.removeprefix("3 "))
        assert told is not None
        assert told[1] is None
        assert int(told[2]) == hosts[winner].process.pid
        assert told[4] == (None if agents == 1 else str(asked[winner].process.pid))
        for one in hosts:
            one.tell()
            assert one.hear() == "out"


def test_the_command_that_has_the_device_is_named_without_its_arguments(
    start_agent: Callable[..., Any],
    host: Callable[..., Host],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = start_agent("--device", str(tmp_path))
    other = host(HOST, "a", agent.address)
    for words, command in (
        (["/lib/edgeflare/__main__.py", "search", "secret"], "edgeflare search"),
        (["/bin/edgeflare", "--secret"], "edgeflare"),
        (["secret/tool.py", "secret"], "tool.py"),
        (["-c"], "python"),
    ):
        monkeypatch.setattr(sys, "argv", words)
        with connect(board(agent.address)):
            other.tell()
            assert f"(process {os.getpid()}, {command})" in other.hear()
            other.tell()
            assert other.hear() == "out"


def test_two_agents_of_one_device_in_one_command_are_the_users_to_tell_apart(
    start_agent: Start, tmp_path: Path
) -> None:
    shared, named = ("--device", str(tmp_path)), ("--device", f"{tmp_path}/npu")
    with connect(board(start_agent(*shared).address)):
        with pytest.raises(UserError) as refused:
            connect(board(start_agent(*shared).address))
        with connect(board(start_agent(*named).address)):
            pass
    assert re.fullmatch(
        r"board \(127\.0\.0\.1:\d+\): its agent and that of another of the devices named stand for"
        r" one device; name one of them alone, or, where they are two devices of one machine, start"
        r" each agent with a name of its own, by its --device or a profile's agent_device",
        str(refused.value),
    )


def test_one_agent_by_two_addresses_is_the_users_mistake(start_agent: Start) -> None:
    address = start_agent().address
    by_name = address.replace("127.0.0.1", "localhost")
    with (
        connect(board(address)),
        pytest.raises(UserError, match="two of the devices named are the same one; name it once"),
    ):
        connect(board(by_name))
    with connect(board(by_name)):
        pass


def test_who_has_the_same_name_and_number_is_another_where_this_process_has_nothing(
    serve: Serve,
) -> None:
    """As in another container, whose host and user may be called the same."""
    profile = serve(in_use_by=agent_lease._own_words())
    with pytest.raises(DeviceInUse, match="wait until it has ended"):
        connect(profile)


def test_after_a_kill_the_same_host_need_not_wait_and_others_do(
    start_agent: Start, host: Hosts, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = start_agent("--lease-seconds", "3600").address
    killed = host(HOST, "here", address)
    killed.tell()
    assert killed.hear() == "in"
    (file,) = (tmp_path / "here" / "edgeflare" / "leases").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    killed.kill()
    assert not alive(killed.process.pid)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(DeviceInUse, match=rf"process {killed.process.pid}, python\)"):
        connect(board(address))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    with connect(board(address)) as device:
        device.open(model)
        assert len(device.telemetry().worker_rss_bytes) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    with connect(board(address)):  # which was given back
        pass
    assert file.read_text() == str(os.getpid())


def test_a_lease_is_renewed_for_as_long_as_it_is_held(
    start_agent: Start, model: Path, images: Images, host: Any
) -> None:
    address = start_agent("--lease-seconds", "2").address
    other = host(HOST, "other", address)
    with connect(board(address)) as device:
        session = device.open(model)
        before = session.submit(images).result(PATIENT_SECONDS).outputs
        until = time.monotonic() + 2 * 2
        while time.monotonic() < until:  # it asks for nothing, and another host tries to get in
            other.tell()
            assert other.hear().startswith("3 board")
            other.tell()
            assert other.hear() == "out"
            time.sleep(0.2)
        after = session.submit(images).result(PATIENT_SECONDS).outputs
        assert np.array_equal(after, before)


SUBMIT_AND_STOP = """
import os, signal, sys
import numpy as np
from pathlib import Path
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.errors import EdgeFlareError
profile = Profile(name="board", transport="address", address=sys.argv[1], kernels="builtin")
with connect(profile) as device:
    session = device.open(Path(sys.argv[2]))
    images = np.zeros((30_000, 1, 4), np.float32)[:, 0]
    session.submit(images[:1]).result(200)
    future = session.submit(images)
    print("stops", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        future.result(200)
        print("answered")
    except EdgeFlareError as error:
        print(type(error).__name__, error)
    try:
        device.reopen()
    except EdgeFlareError as error:
        print(error.exit_code, error, flush=True)
"""


def test_an_answer_that_waited_while_the_lease_was_lost_is_not_taken(
    start_agent: Start, host: Hosts, tmp_path: Path
) -> None:
    """It was given in time, and lay in the stopped host's sockets meanwhile."""
    address = start_agent("--lease-seconds", "2").address
    model = tmp_path / "canary.tflite"
    model.write_bytes(canary_model())
    stopped = host(SUBMIT_AND_STOP, "stopped", address, str(model))
    assert stopped.hear() == "stops"
    with connect_when_free(board(address)):
        os.kill(stopped.process.pid, signal.SIGCONT)
        assert re.match(
            r"(LeaseEnded|DeviceLost) board .*the agent refuses: the lease of this call has ended,"
            r" and the device is in use by ",
            stopped.hear(),
        )
        told = IN_USE.fullmatch(stopped.hear().removeprefix("3 "))
        assert told is not None
        assert told[1] is not None
        assert int(told[2]) == os.getpid()


def test_a_lease_that_ended_is_taken_again_where_nobody_else_has_it(
    start_agent: Start, model: Path, images: Images
) -> None:
    address = start_agent("--lease-seconds", "2").address
    with connect(board(address)) as device:
        session = device.open(model)
        before = session.submit(images).result(PATIENT_SECONDS).outputs
        assert device._lease is not None
        device._lease.suspend()  # as if no more renewal got through
        time.sleep(2.5)
        with pytest.raises(DeviceLost, match="the lease of this call has ended"):
            session.submit(images).result(PATIENT_SECONDS)
        device.reopen()
        assert np.array_equal(session.submit(images).result(PATIENT_SECONDS).outputs, before)


def test_an_answer_under_another_lease_is_not_taken(
    start_agent: Start, model: Path, images: Images
) -> None:
    with connect(board(start_agent().address)) as device:
        session = device.open(model)
        connection = session._connection  # as if the agent had counted on meanwhile
        connection._lease_number += 1
        with pytest.raises(DeviceLost, match="given under another lease"):
            session.submit(images).result(PATIENT_SECONDS)


def test_an_agent_that_was_started_anew_gives_a_lease_anew_or_says_who_has_it(
    start_agent: Start, model: Path, host: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, *[0.3] * 600))
    agent = start_agent()
    other = host(HOST, "other", agent.address)
    with connect(board(agent.address)) as device:
        session = device.open(model)
        for gets_in in (False, True):
            agent.kill()
            agent = start_agent("--port", agent.address.rpartition(":")[2])
            if gets_in:
                other.tell()
                assert other.hear() == "in"
                with pytest.raises(DeviceInUse, match=rf"now in use .*{other.process.pid}, python"):
                    device.reopen()
            else:
                with pytest.raises(DeviceLost):
                    session.submit(np.zeros((1, 4, 4, 1), np.float32)).result(PATIENT_SECONDS)
                device.reopen()
                session.submit(np.zeros((1, 4, 4, 1), np.float32)).result(PATIENT_SECONDS)


def test_where_the_answer_to_its_request_is_lost_the_next_command_need_not_wait(
    start_agent: Start, host: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = start_agent("--lease-seconds", "3600").address
    ended = host(LOSE_THE_ANSWER, "here", address)
    assert ended.hear() == "lost"
    ended.process.wait(PATIENT_SECONDS)
    with monkeypatch.context() as another_host:
        another_host.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
        with pytest.raises(DeviceInUse):  # so there is a lease
            connect(board(address))
    with connect(board(address)):
        pass


@pytest.mark.parametrize(
    ("told", "believed"),
    [(0.0, 1.0), (-5.0, 1.0), (math.nan, 1.0), (math.inf, 3600.0), (30.0, 30.0)],
)
def test_what_an_agent_says_that_a_lease_lasts_is_believed_within_bounds(
    serve: Serve, told: float, believed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[float] = []
    monkeypatch.setattr(AgentLease, "_keep_renewing", lambda *given: begun.append(given[2]))
    profile = serve(lease_seconds=told)
    with connect(profile) as device:
        lease = device._lease
        assert lease is not None
        assert lease._good_until - agent_lease._now() <= believed
        lease._renew(device._connection)
        assert believed - 60 < lease._good_until - agent_lease._now() <= believed
    assert begun == [believed]


@pytest.mark.parametrize("told", [-math.inf, math.nan, math.inf])
def test_a_time_that_is_none_does_not_keep_it_from_saying_who_has_the_device(
    serve: Serve, told: float
) -> None:
    holder = wire.LeaseHolder(user="ana@bench3", pid=812, command="edgeflare search")
    profile = serve(lease_seconds=told, in_use_by=holder)
    with pytest.raises(DeviceInUse, match=r"in use by ana@bench3 \(process 812, edgeflare search"):
        connect(profile)


SEARCH = (
    *("search", "examples/fashion_lenet4", "--strategy", "dflare", "--first", "5"),
    *("--max-queries", "400", "--shrink", "20", "--fail-on", "none"),
)


def begin_search(address: str, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "edgeflare", *SEARCH, "--device", f"grpc://{address}"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(out.parent / "searching")}
    return subprocess.Popen(
        [*command, "--out", str(out)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished_search(address: str, out: Path, *more: str) -> Document:
    completed(*SEARCH, "--device", f"grpc://{address}", "--out", out, *more)
    document: Document = json.loads((out / "run.json").read_bytes())
    return document


def test_a_search_that_was_stopped_for_longer_than_its_lease_ends_in_order(
    start_agent: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    address = start_agent("--lease-seconds", "2").address
    calm, out = finished_search(address, tmp_path / "calm"), tmp_path / "run"
    with begin_search(address, out) as search:
        ahead = RunDirectory(out).journal.with_name("run.db-wal")  # 4 MB in the end
        while not ahead.exists() or ahead.stat().st_size < 500_000:
            assert search.poll() is None
            time.sleep(0.02)
        search.send_signal(signal.SIGSTOP)
        with connect_when_free(board(address)) as device:
            search.send_signal(signal.SIGCONT)
            _, words = search.communicate(timeout=PATIENT_SECONDS)
            assert len(device.telemetry().worker_rss_bytes) == 0  # it started nothing there
    assert search.returncode == 3
    last = words.strip().splitlines()[-1]
    assert "the lease of this command has ended, and the device is now in use by" in last
    assert f"(process {os.getpid()}, " in last
    assert last.endswith(f"the same command with --out {out} --resume goes on")

    stopped = load_document(RunDirectory(out))  # holds it to the schema
    assert stopped.stopped_by == "infrastructure"
    assert 0 < stopped.totals.queries < calm["totals"]["queries"]
    assert untimed(finished_search(address, out, "--resume")) == untimed(calm)
