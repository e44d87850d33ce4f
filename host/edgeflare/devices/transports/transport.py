"""The seam between a device and whatever brings its agent up."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol

from edgeflare.devices.lease import LocalLease
from edgeflare.devices.profile import Profile

_MOST_PORT: Final = 65535

_LONGEST_NAME: Final = 253
"""Bytes of a name that the Domain Name System can hold."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an agent listens, and what it takes to be let in.

    Attributes:
        address: host:port.
        tls: whether the connection is encrypted and the agent's certificate checked.
        tls_ca: PEM of the authority that vouches for the agent; None for the system's own list.
        token: what the agent wants to be shown, or None.
        local_lease: the device among the processes of this user on this host, held for as long as
            the transport is open; None where nothing keeps them apart.

    """

    address: str
    tls: bool = False
    tls_ca: bytes | None = None
    token: str | None = field(default=None, repr=False)
    local_lease: LocalLease | None = None


class Transport(Protocol):
    """Brings an agent up and takes it down; may be opened again after it was closed.

    As a context manager it opens and closes itself.
    """

    def open(self) -> Endpoint:
        """Bring the agent up, and return where it listens.

        Raises:
            UserError: the profile asks for something that is not there.
            InfrastructureError: the agent does not come up.

        """

    def close(self) -> None:
        """Undo what open did, and leave nothing behind. Closing twice is no error."""

    def failure_reason(self) -> str:
        """Return what is known of why the agent no longer answers; empty if nothing is."""

    def __enter__(self) -> Endpoint:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def allow_delegate(profile: Profile) -> list[str]:
    """Return the agent's options that let hosts name the profile's delegate, and no other."""
    return [] if profile.delegate is None else ["--allow-delegate", profile.delegate]


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; an IPv6 host stands in brackets.

    Raises:
        ValueError: it is no such address; the message says what is expected.

    """
    host, _, port = address.rpartition(":")
    numbered = port.isascii() and port.isdigit() and len(port) <= len(str(_MOST_PORT))
    if not _is_host(host) or not numbered or not 0 < int(port) <= _MOST_PORT:
        raise ValueError("expected HOST:PORT")
    return host.strip("[]"), int(port)


def _is_host(host: str) -> bool:
    """Tell whether a text is an IPv6 address in brackets, or can be looked up as a name.

    What no resolver takes is refused here, since Python raises no OSError for it.
    """
    try:
        if host.startswith("[") and host.endswith("]"):
            return bool(ipaddress.IPv6Address(host[1:-1]))
        name = host.encode("idna")
    except ValueError:
        return False
    return 0 < len(name) <= _LONGEST_NAME and host.isprintable() and not set(host) & set(":/[] ")
