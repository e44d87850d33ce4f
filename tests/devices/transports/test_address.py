from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.address import AddressTransport
from edgeflare.errors import InfrastructureError, UserError
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR


@pytest.fixture(autouse=True)
def no_credentials_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("EDGEFLARE_TOKEN", "EDGEFLARE_TLS_CA"):
        monkeypatch.delenv(variable, raising=False)


def board(address: str = "127.0.0.1:50051", **settings: Any) -> Profile:
    return Profile(name="board", transport="address", address=address, **settings)


@pytest.mark.parametrize(
    ("address", "tls"),
    [
        ("127.0.0.1:1", False),
        ("[::1]:1", False),
        ("localhost:1", False),
        ("10.0.0.7:1", True),
        ("board.local:1", True),
        ("[fe80::1]:1", True),
    ],
)
def test_only_loopback_is_spoken_to_in_the_clear(address: str, tls: bool) -> None:
    with AddressTransport(board(address)) as endpoint:
        assert (endpoint.address, endpoint.tls) == (address, tls)


def test_a_named_authority_means_tls_even_on_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_bytes(b"PEM")
    monkeypatch.setenv("EDGEFLARE_TLS_CA", str(tmp_path / "ca.pem"))

    with AddressTransport(board()) as endpoint:
        assert (endpoint.tls, endpoint.tls_ca) == (True, b"PEM")


def test_the_profiles_token_goes_before_the_environments_and_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("  from-file \nsecond line\n")
    monkeypatch.setenv("EDGEFLARE_TOKEN", "from-environment")

    with AddressTransport(board()) as endpoint:
        assert endpoint.token == os.environ["EDGEFLARE_TOKEN"]
        assert "from-environment" not in repr(endpoint)
    with AddressTransport(board(token_file=tmp_path / "token")) as endpoint:
        assert str(endpoint.token) == "from-file"


def test_credentials_that_are_none(tmp_path: Path) -> None:
    absent, empty, binary, pipe = (
        tmp_path / name for name in ("absent", "empty", "binary", "pipe")
    )
    os.mkfifo(pipe)
    empty.write_text("\n")
    binary.write_bytes(b"\xff\xfe\x00")

    device = 'device "board": '
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"token_file": absent}, f"{device}token_file {absent}: cannot be read: No such file or d"),
        ({"tls_ca": tmp_path}, f"{device}tls_ca {tmp_path}: cannot be read: Is a directory"),
        ({"token_file": pipe}, f"{device}token_file: {pipe} is not a regular file: give one"),
        ({"tls_ca": pipe}, f"{device}tls_ca: {pipe} is not a regular file: give one"),
        ({"token_file": empty}, f"{empty}: is empty; expected the agent's token in its first line"),
        ({"token_file": binary}, f"{binary}: is no token; expected plain ASCII characters"),
    )
    for settings, complaint in cases:
        with pytest.raises(UserError) as caught:
            AddressTransport(board(**settings)).open()
        assert str(caught.value).startswith(complaint)


def test_an_agent_behind_tls(start_agent: Callable[..., Any], tmp_path: Path) -> None:
    certificate, key, other = (tmp_path / name for name in ("cert.pem", "key.pem", "other.pem"))
    for path in (other, certificate):  # the key that stays is the second one's
        make_certificate(path, key)
    (tmp_path / "token").write_text("t")
    agent = start_agent(
        *("--tls-cert", str(certificate), "--tls-key", str(key)),
        *("--token-file", str(tmp_path / "token")),
    )
    profile = board(agent.address, tls_ca=certificate, token_file=tmp_path / "token")

    with connect(profile) as device:
        assert device.provenance.protocol == f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"
    with pytest.raises(InfrastructureError, match="certificate is not trusted"):
        connect(replace(profile, tls_ca=other))
    with pytest.raises(InfrastructureError, match="whether the agent wants TLS"):
        connect(replace(profile, tls_ca=None))


def make_certificate(certificate: Path, key: Path) -> None:
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "1", "-subj", "/CN=agent"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", str(certificate), "-keyout", str(key)),
        ],
        check=True,
        capture_output=True,
    )
