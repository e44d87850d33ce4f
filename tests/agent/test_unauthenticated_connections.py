"""Floods of connections that show no token, on an agent with few descriptors."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from agent_calls import DESCRIBE, batch, wait_until
from edgeflare_agent.unauthenticated_connections import (
    MOST_CONNECTIONS,
    MOST_UNAUTHENTICATED,
    MOST_UNAUTHENTICATED_OF_ONE_PEER,
    UNAUTHENTICATED_SECONDS,
    UnauthenticatedConnections,
    WrongTokens,
)
from edgeflare_protos import TOO_MANY_WRONG_TOKENS, agent_pb2, set_seal
from edgeflare_protos.agent_pb2_grpc import AgentStub
from edgeflare_protos.lease_words import LEASE, lease_token

DESCRIPTORS = 1024
FLOOD = 1000
HURRIED_AGENT = """
import sys
from edgeflare_agent import unauthenticated_connections
unauthenticated_connections.UNAUTHENTICATED_SECONDS = 5.0
from edgeflare_agent.__main__ import main
sys.exit(main())
"""
TOKEN = ("authorization", "Bearer sesame")
OTHERS = 60
"""What an agent with one session has open besides."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    head = len(content).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + content


SETTINGS = frame(4, 0, 0)


def beginning_of_call(path: str, stream: int) -> bytes:
    """The headers of a call, whose request never comes."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "agent",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    block = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return frame(1, 4, stream, block)


def calls(path: str) -> bytes:
    begun = (beginning_of_call(path, number) for number in range(1, 61, 2))
    return PREFACE + SETTINGS + b"".join(begun)


HELLO_OF_TLS = bytes.fromhex("1603010200010001fc0303")

FIRST_BYTES = {
    "nothing": b"",
    "half a preface": PREFACE[:10],
    "a preface": PREFACE,
    "half a frame of settings": PREFACE + SETTINGS[:5],
    "settings": PREFACE + SETTINGS,
    "half a hello of TLS": HELLO_OF_TLS,
    "calls without a token": calls("/edgeflare.v1.Agent/Describe"),
    "questions after health": calls("/grpc.health.v1.Health/Check"),
}


@pytest.fixture
def enough_descriptors() -> Iterator[None]:
    """The flood has as many descriptors as it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * FLOOD:
        pytest.skip(f"needs {2 * FLOOD} descriptors, and may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * FLOOD, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def frugal_python(tmp_path: Path, enough_descriptors: None) -> str:
    """Python for an agent that has few descriptors, as services have by default, and less time."""
    path = tmp_path / "frugal-python"
    path.write_text(
        f"#!/bin/sh\nulimit -n {DESCRIPTORS}\nshift 2  # -m edgeflare_agent\n"
        f"exec {sys.executable} -c '{HURRIED_AGENT}' \"$@\"\n"
    )
    path.chmod(0o755)
    return str(path)


class Flood:
    """Connects from many addresses, and sends a byte now and then where that is asked for."""

    def __init__(self, port: int, first: list[bytes]) -> None:
        self._port = port
        self._first = itertools.cycle(first)
        self.connections: list[socket.socket] = []

    def come(self, count: int) -> None:
        for number in range(count):
            with contextlib.suppress(OSError):
                source = f"127.0.{1 + number % 5}.{1 + number % 7}"
                one = socket.create_connection(
                    ("127.0.0.1", self._port), 50, source_address=(source, 0)
                )
                self.connections.append(one)
                one.sendall(next(self._first))
                one.setblocking(False)

    def send(self, content: bytes) -> None:
        for one in self.connections:
            with contextlib.suppress(OSError):
                one.send(content)

    def standing(self) -> int:
        """Return how many the agent has not closed."""
        return sum(map(stands, self.connections))

    def go(self) -> None:
        for one in self.connections:
            one.close()


def stands(connection: socket.socket) -> bool:
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def new_connection(port: int, host: str = "127.0.0.1", cert: Path | None = None) -> grpc.Channel:
    apart = [("grpc.use_local_subchannel_pool", 1)]  # not one that stands already
    if cert is None:
        return grpc.insecure_channel(f"{host}:{port}", apart)
    credentials = grpc.ssl_channel_credentials(cert.read_bytes())
    return grpc.secure_channel(f"{host}:{port}", credentials, apart)


def describe(port: int, cert: Path | None = None) -> None:
    """Let a new host in, which tries as hosts do while wrong tokens came lately."""
    with new_connection(port, cert=cert) as channel:
        for _ in range(5):
            try:
                AgentStub(channel).Describe(DESCRIBE, metadata=[TOKEN], timeout=50)
                return
            except grpc.RpcError as error:
                refused: Any = error
                time.sleep(1)
            if refused.details() != TOO_MANY_WRONG_TOKENS:
                break
        raise AssertionError(f"the host was not let in: {refused.details()}")


class WithMetadata:
    """A stub each of whose calls carries the token, and the lease if there is one."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub
        self.metadata: list[tuple[str, str]] = [TOKEN]

    def __getattr__(self, name: str) -> Any:
        return functools.partial(getattr(self._stub, name), metadata=self.metadata)


class HostAtWork:
    """A host that has the lease and a session, and runs one batch after the other."""

    def __init__(self, client: Any, model: Path) -> None:
        client.stub = WithMetadata(client.stub)
        secret = "a" * 22
        asked = agent_pb2.AcquireLeaseRequest(
            holder=agent_pb2.LeaseHolder(user="ana@bench3", pid=812, command="edgeflare search"),
            secret=secret,
        )
        set_seal(asked)
        lease = client.stub.AcquireLease(asked, timeout=50)
        client.stub.metadata.append((LEASE, lease_token(lease.lease_number, secret)))
        self._stub = client.stub
        self._session = client.open(model).session_id
        self._stop = threading.Event()
        self.answered = 0
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> HostAtWork:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        request = batch(self._session, bytes(8))
        while not self._stop.wait(0.01):
            try:
                self._stub.Infer(request, timeout=50)
                self.answered += 1
            except grpc.RpcError as error:
                self.failures.append(str(error))


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


@pytest.mark.slow
def test_a_flood_of_connections_disturbs_no_host_and_keeps_none_out(
    start_agent: Any, connect: Any, frugal_python: str, token_file: Path, int8_model: Path
) -> None:
    agent = start_agent("--token-file", str(token_file), python=frugal_python)
    flood = Flood(agent.port, list(FIRST_BYTES.values()))
    with HostAtWork(connect(agent), int8_model) as host:
        assert wait_until(lambda: host.answered > 10)
        before, most = resident_mb(agent.pid), 0
        for _ in range(FLOOD // 100):
            flood.come(100)
            most = max(most, descriptors(agent.pid))
        assert most <= MOST_CONNECTIONS + OTHERS
        assert wait_until(lambda: flood.standing() <= MOST_UNAUTHENTICATED)
        assert wait_until(lambda: descriptors(agent.pid) <= MOST_UNAUTHENTICATED + OTHERS)
        describe(agent.port)
        flood.send(SETTINGS)  # whoever says something now and then has no more time than others
        assert wait_until(lambda: flood.standing() == 0)
        answered = host.answered
        assert wait_until(lambda: host.answered > answered + 10)
    flood.go()
    assert host.failures == []
    assert resident_mb(agent.pid) < before + 160


@pytest.mark.slow
@pytest.mark.openssl
def test_a_flood_of_unfinished_handshakes_keeps_no_host_out(
    start_agent: Any, frugal_python: str, token_file: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    agent = start_agent(
        *("--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(token_file)),
        python=frugal_python,
    )
    flood = Flood(agent.port, [b"", HELLO_OF_TLS])
    flood.come(FLOOD)
    assert wait_until(lambda: flood.standing() <= MOST_UNAUTHENTICATED)
    describe(agent.port, cert)
    assert wait_until(lambda: flood.standing() == 0)
    flood.go()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])  # noqa: S104
def test_connections_have_the_names_that_the_service_sees(host: str) -> None:
    """Else a host that has shown its token would pass for one that has not."""
    peers = []

    class Peers(grpc.ServerInterceptor):
        def intercept_service(self, *_: object) -> Any:
            def note(_request: object, context: grpc.ServicerContext) -> bytes:
                peers.append(context.peer())
                return b""

            return grpc.unary_unary_rpc_method_handler(note)

    server = grpc.server(ThreadPoolExecutor(1), interceptors=[Peers()])
    place = f"[{host}]" if ":" in host else host
    port = server.add_insecure_port(f"{place}:0")
    server.start()
    names: list[str] = []

    class Noting(WrongTokens):
        def knows(self, connection: str) -> bool:
            names.append(connection)
            return True

    callers = ["[::1]", "127.0.0.1"] if host == "::" else [place]
    for caller in callers:
        with new_connection(port, caller) as channel:
            call: Any = channel.unary_unary("/a/b")
            call(b"", timeout=50)
            UnauthenticatedConnections(port, Noting()).look()
    server.stop(None).wait()
    assert len(set(peers)) == len(callers)
    assert set(peers) <= set(names)


class Port:
    """A port of this process, and those that connect to it."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=500))
        self.number = self._listener.getsockname()[1]

    def connect(self, source: str) -> socket.socket:
        caller = self._stack.enter_context(
            socket.create_connection(("127.0.0.1", self.number), source_address=(source, 0))
        )
        accepted, _ = self._listener.accept()
        self._stack.enter_context(accepted)
        caller.setblocking(False)
        return caller


def name_of(connection: socket.socket) -> str:
    host, port = connection.getsockname()
    return f"ipv4:{host}:{port}"


@pytest.fixture
def port() -> Iterator[Port]:
    with contextlib.ExitStack() as stack:
        yield Port(stack)


def test_whoever_does_not_show_the_token_in_time_is_closed(port: Port) -> None:
    now = 100.0
    host, silent = port.connect("127.0.0.1"), port.connect("127.0.0.1")
    tokens = WrongTokens()
    tokens.admits(name_of(host), right=True)
    watched = UnauthenticatedConnections(port.number, tokens, lambda: now)
    watched.look()
    now += UNAUTHENTICATED_SECONDS * 0.9
    late = port.connect("127.0.0.1")
    watched.look()
    assert all(map(stands, (host, silent, late)))
    now += UNAUTHENTICATED_SECONDS * 0.1
    watched.look()
    assert (stands(host), stands(silent), stands(late)) == (True, False, True)


def test_a_host_is_known_as_long_as_it_is_connected_whoever_comes_and_goes(port: Port) -> None:
    now = 100.0
    tokens = WrongTokens()
    watched = UnauthenticatedConnections(port.number, tokens, lambda: now)
    host = port.connect("127.0.0.1")
    tokens.admits(name_of(host), right=True)
    for number in range(2000):
        tokens.admits(f"ipv4:127.0.0.9:{number}", right=True)
        if number % 100 == 99:
            watched.look()
    assert tokens.known() == {name_of(host)}
    tokens.admits(name_of(host), right=False)  # as of another host behind the same proxy
    now += UNAUTHENTICATED_SECONDS
    watched.look()
    assert stands(host)


def test_those_without_the_token_are_bounded_in_all_and_by_peer_and_the_newest_stay(
    port: Port,
) -> None:
    now = 100.0
    watched = UnauthenticatedConnections(port.number, WrongTokens(), lambda: now)
    of_one = [port.connect("127.0.0.1") for _ in range(30)]
    watched.look()
    assert all(map(stands, of_one))  # each has the time until the next look
    now += 0.2
    newest = port.connect("127.0.0.1")
    watched.look()
    assert sum(map(stands, of_one)) == MOST_UNAUTHENTICATED_OF_ONE_PEER - 1
    assert stands(newest)
    of_many = [port.connect(f"127.0.1.{number % 50 + 1}") for number in range(100)]
    watched.look()
    now += 0.2
    watched.look()
    assert sum(map(stands, [*of_one, newest, *of_many])) == MOST_UNAUTHENTICATED


@pytest.mark.parametrize(("soft", "hard", "expected"), [(100, 100, 50), (100, 400, 200)])
def test_half_of_the_descriptors_are_left_for_all_else(soft: int, hard: int, expected: int) -> None:
    """The limit is raised first, where it may be."""
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "from edgeflare_agent import unauthenticated_connections as connections\n"
        "print(connections.connections_within_limit())"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert int(printed.stdout) == expected
