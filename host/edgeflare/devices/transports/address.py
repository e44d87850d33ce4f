"""The transport "address": an agent that somebody started, reached over the network or a tunnel."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from edgeflare.devices.lease import lease
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_keys import AcceptedValues, ProfileKey, path, read_text
from edgeflare.devices.transports.transport import Endpoint, Transport, split_address
from edgeflare.devices.transports.transport_plugin import (
    STATUS_SECONDS,
    AddressScheme,
    TransportPlugin,
)
from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular

TOKEN_VARIABLE = "EDGEFLARE_TOKEN"  # noqa: S105 - the name of a variable
TLS_CA_VARIABLE = "EDGEFLARE_TLS_CA"

_MOST_BYTES = 2**24
"""Most bytes of a file with a token, or with certificates."""


class AddressTransport(Transport):
    """Starts and stops nothing; takes a lease, and reads what it takes to be let in.

    The mirror of the agent's rule for binding: only a loopback address is spoken to in the clear,
    and only as long as no certificate authority is named. A token is never an argument, since
    arguments show in process lists.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._held = ExitStack()

    def open(self) -> Endpoint:
        """Lease the agent, and return its address with its credentials, read anew."""
        with ExitStack() as stack:
            address = self._profile.address or ""
            local = stack.enter_context(lease(f"grpc://{address}"))
            named = os.environ.get(TLS_CA_VARIABLE)
            ca = self._profile.tls_ca or (Path(named) if named else None)
            endpoint = Endpoint(
                address,
                tls=ca is not None or not _is_loopback(split_address(address)[0]),
                tls_ca=self._read("tls_ca", ca) if ca else None,
                token=self._token(),
                local_lease=local,
            )
            self._held = stack.pop_all()
        return endpoint

    def close(self) -> None:
        """Give the lease back; the agent itself belongs to whoever started it."""
        self._held.close()

    def failure_reason(self) -> str:
        """Return nothing: only the agent's own log could tell."""
        return ""

    def _token(self) -> str | None:
        path = self._profile.token_file
        if path is None:
            source, text = TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE, "")
        else:
            source, text = str(path), self._read("token_file", path).decode("latin-1")
            if not text.strip():
                raise UserError(f"{source}: is empty; expected the agent's token in its first line")
        token = text.partition("\n")[0].strip()
        if not (token.isascii() and token.isprintable()):
            raise UserError(f"{source}: is no token; expected plain ASCII characters")
        return token or None

    def _read(self, key: str, path: Path) -> bytes:
        device = f'device "{self._profile.name}"'
        try:
            return read_regular(path, _MOST_BYTES)
        except UserError as error:
            raise UserError(f"{device}: {key}: {error}") from None
        except OSError as error:
            raise UserError(f"{device}: {key} {path}: cannot be read: {error.strerror}") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _status(profile: Profile) -> str:
    try:
        socket.create_connection(split_address(profile.address or ""), STATUS_SECONDS).close()
    except OSError as error:
        return f"nobody is there ({error.strerror or error})"
    return "somebody listens"


def _check_token(path: Path, said: Mapping[str, object], extending: Mapping[str, object]) -> None:
    """Refuse to show the token of one address to another."""
    base, extended = said.get("address"), extending.get("address")
    inherited = "token_file" in said and "token_file" not in extending
    if inherited and None not in (base, extended) and base != extended:
        raise UserError(
            f"{path}: token_file is for {base}, and a profile that extends this one has the"
            f" address {extended}: give that one a token_file of its own"
        )


def _read_address(folder: Path, value: object) -> str:
    address = read_text(folder, value)
    split_address(address)
    return address


def _read_scheme(address: str) -> Mapping[str, object]:
    try:
        split_address(address)
    except ValueError as error:
        raise ValueError(f"{error}, for example grpc://127.0.0.1:50051") from None
    return {"address": address, "description": f"an agent that somebody started, at {address}"}


PLUGIN = TransportPlugin(
    create=AddressTransport,
    keys=(
        ProfileKey(
            "address",
            AcceptedValues('an address, "HOST:PORT"', _read_address),
            example="HOST:PORT",
        ),
        ProfileKey("tls_ca", path("the path of a PEM file"), relative_path=True),
        ProfileKey("token_file", path("the path of a file"), relative_path=True),
    ),
    check_extension=_check_token,
    needs_trust=False,
    scheme=AddressScheme("grpc", "grpc://HOST:PORT", _read_scheme),
    status=_status,
)
