"""Who gets in: addresses, tokens, certificates, and names that reach no file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hypothesis import given
from hypothesis import strategies as st

from agent_calls import DESCRIBE, opening, refused
from edgeflare.devices.device import connect as connect_device
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError
from edgeflare_agent.security import Refused, is_loopback, read_security
from edgeflare_agent.unauthenticated_connections import BURST, PER_SECOND, WrongTokens
from edgeflare_protos import agent_pb2
from edgeflare_protos.agent_pb2_grpc import AgentStub


def test_loopback_is_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [
        True
    ] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.7")] == [False] * 3  # noqa: S104
    with pytest.raises(Refused, match="not a numeric address"):
        is_loopback("raspberrypi.local")


def test_other_addresses_need_tls_and_a_token(tmp_path: Path, token_file: Path) -> None:
    tls = tmp_path / "tls"
    tls.touch()
    for files in ((None, None, None), (None, None, token_file), (tls, tls, None)):
        with pytest.raises(Refused, match="needs --tls-cert, --tls-key and --token-file"):
            read_security("0.0.0.0", *files)  # noqa: S104
    command = [sys.executable, "-m", "edgeflare_agent", "--host", "0.0.0.0"]  # noqa: S104
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "needs --tls-cert, --tls-key and --token-file" in ended.stderr


def test_files_that_do_not_serve_are_named(tmp_path: Path, token_file: Path) -> None:
    with pytest.raises(Refused, match="go together"):
        read_security("127.0.0.1", token_file, None, None)
    with pytest.raises(Refused, match=r"--token-file: cannot read .*absent"):
        read_security("127.0.0.1", None, None, tmp_path / "absent")
    token_file.write_text("\nsecond line")
    with pytest.raises(Refused, match="holds no token"):
        read_security("127.0.0.1", None, None, token_file)


def test_without_the_token_only_health_answers(start_agent: Any, token_file: Path) -> None:
    agent = start_agent("--token-file", str(token_file))
    with agent.channel() as channel:
        stub = AgentStub(channel)
        calls: list[tuple[Callable[..., Any], Any]] = [
            (stub.Describe, DESCRIBE),
            (stub.UploadModel, iter([])),
            (lambda *request, **how: list(stub.InferStream(*request, **how)), iter([])),
            (lambda *asked, **how: list(stub.Capture(*asked, **how)), agent_pb2.CaptureRequest()),
        ]
        for shown in ([], [("authorization", "Bearer wrong")], [("authorization", "sesame")]):
            for call, request in calls:
                code, _ = refused(call, request, metadata=shown)
                assert code == grpc.StatusCode.UNAUTHENTICATED
        asked = health_pb2.HealthCheckRequest(service="edgeflare.v1.Agent")
        alive = health_pb2_grpc.HealthStub(channel).Check(asked, timeout=200)
        assert alive.status == health_pb2.HealthCheckResponse.SERVING


def test_those_who_watch_its_health_keep_nobody_from_asking(shared_agent: Any) -> None:
    everything = health_pb2.HealthCheckRequest()
    with shared_agent.channel() as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watchers = [health.Watch(everything, timeout=200) for _ in range(6)]
        for watcher in watchers:
            assert next(watcher).status == health_pb2.HealthCheckResponse.SERVING
        alive = health.Check(everything, timeout=60)
        assert alive.status == health_pb2.HealthCheckResponse.SERVING
        for watcher in watchers:
            watcher.cancel()


def test_guessing_is_slowed_down_and_the_host_gets_in_all_the_same(
    start_agent: Callable[..., Any], token_file: Path
) -> None:
    """All come from the loopback address, as behind a forwarded port."""
    agent = start_agent("--token-file", str(token_file))
    address = f"127.0.0.1:{agent.port}"
    right = [("authorization", "Bearer sesame")]
    apart = [("grpc.use_local_subchannel_pool", 1)]  # else both share one connection
    with (
        grpc.insecure_channel(address, apart) as host,
        grpc.insecure_channel(address, apart) as guesser,
    ):
        AgentStub(host).Describe(DESCRIBE, metadata=right, timeout=200)
        codes = []
        for number in range(200):
            wrong = [("authorization", f"Bearer {number}")]
            codes.append(refused(AgentStub(guesser).Describe, DESCRIBE, metadata=wrong)[0])
            if number % 20 == 19:  # undisturbed by the guesser, streams too
                AgentStub(host).Describe(DESCRIBE, metadata=right, timeout=200)
                list(AgentStub(host).InferStream(iter([]), metadata=right, timeout=200))
        assert set(codes) == {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED}
        profile = Profile(name="board", transport="address", address=address, token_file=token_file)
        connect_device(profile).close()


@pytest.mark.openssl
def test_certificate_and_key_that_do_not_fit_end_in_one_line(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    nonsense = tmp_path / "key.pem"
    nonsense.write_text("no key")
    flags = ["--tls-cert", str(certificate[0]), "--tls-key", str(nonsense)]
    command = [sys.executable, "-m", "edgeflare_agent", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode in (2, 3)
    assert "Traceback" not in ended.stderr
    assert "certificate and key do not fit" in ended.stderr


def make_certificate(folder: Path, *validity: str) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    cert, key, request = folder / "cert.pem", folder / "key.pem", folder / "request.pem"
    extensions = folder / "extensions"
    extensions.write_text("subjectAltName=IP:127.0.0.1")
    for command in (
        [
            *("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
            *("-keyout", str(key), "-out", str(request)),
        ],
        [
            *("openssl", "x509", "-req", "-in", str(request), "-signkey", str(key)),
            *("-extfile", str(extensions), "-out", str(cert), *validity),
        ],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.mark.openssl
def test_an_expired_certificate_is_not_trusted(
    certificate: tuple[Path, Path],
    start_agent: Callable[..., Any],
    token_file: Path,
    tmp_path: Path,
) -> None:
    """The host says that it is the certificate; a valid one made alike is trusted."""
    for validity, trusted in ((("-days", "2"), True), (("-days", "-1"), False)):
        cert, key = make_certificate(tmp_path / str(trusted), *validity)
        agent = start_agent(
            *("--host", "0.0.0.0", "--token-file", str(token_file)),  # noqa: S104
            *("--tls-cert", str(cert), "--tls-key", str(key)),
        )
        profile = Profile(
            name="board",
            transport="address",
            address=f"127.0.0.1:{agent.port}",
            tls_ca=cert,
            token_file=token_file,
        )
        if trusted:
            connect_device(profile).close()
        else:
            with pytest.raises(InfrastructureError, match="the agent's certificate is not trusted"):
                connect_device(profile)


NO_SHA256 = (
    *("", ".", "..", "../../../../etc/passwd", "/etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"),
    *("a" * 64 + "\0", "../" + "a" * 61, "a" * 64 + "/../x", ".upload-x", "%2e%2e%2f" + "a" * 55),
    "\N{FULLWIDTH LATIN SMALL LETTER A}" * 64,
)


def test_names_that_are_no_sha256_reach_no_file(
    start_agent: Any, connect: Any, tmp_path: Path, int8_model: Path
) -> None:
    client = connect(start_agent())
    before = sorted(tmp_path.rglob("*"))
    for name in NO_SHA256:
        calls = (
            (client.stub.FindModel, agent_pb2.FindModelRequest(sha256=name)),
            (lambda *_, n=name, **__: client.upload(b"content", sha256=n), None),
            (client.stub.OpenSession, opening(int8_model, model_sha256=name)),
        )
        for call, request in calls:
            code, words = refused(call, request)
            assert code == grpc.StatusCode.INVALID_ARGUMENT, name
            assert "64 lower-case hexadecimal digits" in words
            assert sorted(tmp_path.rglob("*")) == before, name


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def exhausted(clock: Clock) -> WrongTokens:
    attempts = WrongTokens(clock)
    for number in range(BURST):
        assert attempts.admits(f"ipv4:127.0.0.1:{number}", right=False) is False
    return attempts


def test_wrong_tokens_are_not_looked_at_without_end_nor_are_right_ones() -> None:
    """Else the answer would tell a guesser that he was right."""
    attempts = exhausted(Clock())
    assert attempts.admits("new", right=False) is None
    assert attempts.admits("new", right=True) is None


def test_the_right_host_is_let_in_a_fifth_of_a_second_later() -> None:
    clock = Clock()
    attempts = exhausted(clock)
    clock.now += 1 / PER_SECOND
    assert attempts.admits("new", right=True) is True


def test_a_connection_that_has_shown_the_right_token_goes_on() -> None:
    clock = Clock()
    attempts = WrongTokens(clock)
    assert attempts.admits("host", right=True) is True
    for number in range(10 * BURST):
        attempts.admits(str(number), right=False)
    assert attempts.admits("host", right=True) is True


def test_a_known_connection_cannot_guess_on() -> None:
    attempts = WrongTokens(Clock())
    attempts.admits("host", right=True)
    looked_at = [attempts.admits("host", right=False) for _ in range(100)].count(False)
    assert looked_at == BURST


@given(st.lists(st.tuples(st.floats(0, 0.5), st.booleans(), st.integers(0, 9)), max_size=300))
def test_no_more_are_looked_at_than_the_limit(calls: list[tuple[float, bool, int]]) -> None:
    clock = Clock()
    attempts = WrongTokens(clock)
    refused = 0
    for pause, right, connection in calls:
        clock.now += pause
        refused += attempts.admits(str(connection), right=right) is False
        assert refused <= BURST + clock.now * PER_SECOND + 1


def test_what_is_kept_does_not_grow() -> None:
    attempts = WrongTokens(Clock())
    for number in range(5000):
        attempts.admits(str(number), right=True)
    assert len(attempts.known()) == 1024
    assert attempts.knows("4999")
