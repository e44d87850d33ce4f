from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from edgeflare.devices.device import connect as connect_device
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError
from edgeflare_agent.security import Refused, is_loopback, read_security
from edgeflare_protos import PROTOCOL_MAJOR, agent_pb2
from edgeflare_protos.agent_pb2_grpc import AgentStub

DESCRIBE = agent_pb2.DescribeRequest(protocol=agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR))


def test_loopback_is_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [
        True
    ] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.7")] == [False] * 3  # noqa: S104
    with pytest.raises(Refused, match="not a numeric address"):
        is_loopback("raspberrypi.local")


@pytest.mark.openssl
@pytest.mark.parametrize("given", ["nothing", "token", "tls"])
def test_other_addresses_need_tls_and_a_token(
    given: str, token_file: Path, certificate: tuple[Path, Path]
) -> None:
    flags = {
        "nothing": [],
        "token": ["--token-file", str(token_file)],
        "tls": ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])],
    }[given]
    command = [sys.executable, "-m", "edgeflare_agent", "--host", "0.0.0.0", *flags]  # noqa: S104
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert "needs --tls-cert, --tls-key and --token-file" in ended.stderr


def test_files_that_do_not_serve_are_named(tmp_path: Path, token_file: Path) -> None:
    with pytest.raises(Refused, match="go together"):
        read_security("127.0.0.1", token_file, None, None)
    with pytest.raises(Refused, match=r"--token-file: cannot read .*absent"):
        read_security("127.0.0.1", None, None, tmp_path / "absent")
    token_file.write_text("\nsecond line")
    with pytest.raises(Refused, match="holds no token"):
        read_security("127.0.0.1", None, None, token_file)


@pytest.mark.parametrize(
    "metadata", [[], [("authorization", "Bearer wrong")], [("authorization", "sesame")]]
)
def test_without_the_token_only_health_answers(
    metadata: list[tuple[str, str]], start_agent: Callable[..., object], token_file: Path
) -> None:
    agent = start_agent("--token-file", str(token_file))
    with agent.channel() as channel:  # type: ignore[attr-defined]
        stub = AgentStub(channel)
        calls: list[Callable[[], object]] = [
            lambda: stub.Describe(DESCRIBE, metadata=metadata, timeout=200),
            lambda: stub.UploadModel(iter([]), metadata=metadata, timeout=200),
            lambda: list(stub.InferStream(iter([]), metadata=metadata, timeout=200)),
            lambda: list(stub.Capture(agent_pb2.CaptureRequest(), metadata=metadata, timeout=200)),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        health = health_pb2_grpc.HealthStub(channel)
        alive = health.Check(
            health_pb2.HealthCheckRequest(service="edgeflare.v1.Agent"), timeout=200
        )
        assert alive.status == health_pb2.HealthCheckResponse.SERVING


def test_those_who_watch_its_health_keep_nobody_from_asking(
    start_agent: Callable[..., Any],
) -> None:
    agent = start_agent()
    everything = health_pb2.HealthCheckRequest()
    with agent.channel() as channel:
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
            with pytest.raises(grpc.RpcError) as caught:
                AgentStub(guesser).Describe(DESCRIBE, metadata=wrong, timeout=200)
            codes.append(caught.value.code())
            if number % 20 == 19:  # undisturbed by the guesser, streams too
                AgentStub(host).Describe(DESCRIBE, metadata=right, timeout=200)
                list(AgentStub(host).InferStream(iter([]), metadata=right, timeout=200))
        assert set(codes) == {
            grpc.StatusCode.UNAUTHENTICATED,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
        }
        profile = Profile(name="board", transport="address", address=address, token_file=token_file)
        connect_device(profile).close()


@pytest.mark.openssl
def test_tls_and_token_open_the_door(
    start_agent: Callable[..., object], token_file: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    flags = ["--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(token_file)]
    agent = start_agent("--host", "0.0.0.0", *flags)  # noqa: S104
    address = f"127.0.0.1:{agent.port}"  # type: ignore[attr-defined]
    trusted = grpc.ssl_channel_credentials(cert.read_bytes())
    with grpc.secure_channel(address, trusted) as channel:
        reply = AgentStub(channel).Describe(
            DESCRIBE, metadata=[("authorization", "Bearer sesame")], timeout=200
        )
        assert reply.protocol.major == PROTOCOL_MAJOR
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        AgentStub(channel).Describe(DESCRIBE, timeout=200)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


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
            *("--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(token_file))
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
    "",
    ".",
    "..",
    "../../../../etc/passwd",
    "/etc/passwd",
    "a" * 63,
    "A" * 64,
    "a" * 64 + "\n",
    "a" * 64 + "\0",
    "../" + "a" * 61,
    "a" * 64 + "/../x",
    "\N{FULLWIDTH LATIN SMALL LETTER A}" * 64,
    ".upload-x",
    "%2e%2e%2f" + "a" * 55,
)


def calls_with(client: Any, name: str) -> list[Callable[[], object]]:
    """All calls that name a model."""
    return [
        lambda: client.stub.FindModel(agent_pb2.FindModelRequest(sha256=name), timeout=200),
        lambda: client.upload(b"content", sha256=name),
        lambda: client.stub.OpenSession(
            agent_pb2.OpenSessionRequest(
                model_sha256=name, kernels="KERNELS_BUILTIN", threads=1, input_timeout_seconds=5
            ),
            timeout=200,
        ),
    ]


def test_names_that_are_no_sha256_reach_no_file(
    start_agent: Callable[..., Any], connect: Callable[..., Any], tmp_path: Path
) -> None:
    client = connect(start_agent())
    before = sorted(tmp_path.rglob("*"))
    for name in NO_SHA256:
        for call in calls_with(client, name):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT, name
            assert "64 lower-case hexadecimal digits" in (caught.value.details() or "")
            assert sorted(tmp_path.rglob("*")) == before, name


@pytest.mark.parametrize("promised", [2 * 2**20, 2**63, 2**64 - 1, 100])
def test_a_model_over_the_bound_is_refused_and_leaves_nothing(
    promised: int, start_agent: Callable[..., Any], connect: Callable[..., Any], tmp_path: Path
) -> None:
    """Whoever promises too much is refused at once, and whoever sends more than promised then."""
    client = connect(start_agent("--store-limit-mb", "1"))
    content = bytes(2 * 2**20)
    with pytest.raises(grpc.RpcError) as caught:
        client.upload(content, size=promised)
    assert caught.value.code() == (
        grpc.StatusCode.DATA_LOSS if promised == 100 else grpc.StatusCode.RESOURCE_EXHAUSTED
    )
    assert list((tmp_path / "store").iterdir()) == []


def test_a_delegate_that_was_not_allowed_is_not_loaded(
    start_agent: Callable[..., Any], connect: Callable[..., Any], int8_model: Path
) -> None:
    client = connect(start_agent("--allow-delegate", "/opt/libgood.so"))
    client.upload(int8_model.read_bytes())
    request = agent_pb2.OpenSessionRequest(
        model_sha256=hashlib.sha256(int8_model.read_bytes()).hexdigest(),
        kernels="KERNELS_BUILTIN",
        threads=1,
        input_timeout_seconds=5,
    )
    for library in ("/tmp/evil.so", "/opt/../opt/libgood.so", "libgood.so"):  # noqa: S108
        request.delegate.library = library
        with pytest.raises(grpc.RpcError) as caught:
            client.stub.OpenSession(request, timeout=200)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "was not told to allow the delegate" in (caught.value.details() or "")


@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_a_port_that_is_none_is_refused_in_one_line(port: str) -> None:
    command = [sys.executable, "-m", "edgeflare_agent", "--port", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert "--port" in ended.stderr
