from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from edgeflare_agent.security import Refused, is_loopback, read_security
from edgeflare_protos import PROTOCOL_MAJOR, agent_pb2
from edgeflare_protos.agent_pb2_grpc import AgentStub

DESCRIBE = agent_pb2.DescribeRequest(protocol=agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR))


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("sesame\n")
    return path


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def test_loopback_is_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [
        True
    ] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.7")] == [False] * 3  # noqa: S104
    with pytest.raises(Refused, match="not a numeric address"):
        is_loopback("raspberrypi.local")


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
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
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
            lambda: stub.Describe(DESCRIBE, metadata=metadata, timeout=10),
            lambda: stub.UploadModel(iter([]), metadata=metadata, timeout=10),
            lambda: list(stub.InferStream(iter([]), metadata=metadata, timeout=10)),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        health = health_pb2_grpc.HealthStub(channel)
        alive = health.Check(
            health_pb2.HealthCheckRequest(service="edgeflare.v1.Agent"), timeout=10
        )
        assert alive.status == health_pb2.HealthCheckResponse.SERVING


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
            DESCRIBE, metadata=[("authorization", "Bearer sesame")], timeout=10
        )
        assert reply.protocol.major == PROTOCOL_MAJOR
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        AgentStub(channel).Describe(DESCRIBE, timeout=10)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


def test_certificate_and_key_that_do_not_fit_end_in_one_line(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    nonsense = tmp_path / "key.pem"
    nonsense.write_text("no key")
    flags = ["--tls-cert", str(certificate[0]), "--tls-key", str(nonsense)]
    command = [sys.executable, "-m", "edgeflare_agent", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode in (2, 3)
    assert "Traceback" not in ended.stderr
    assert "certificate and key do not fit" in ended.stderr
