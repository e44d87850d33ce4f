"""What the keys of a profile mean for one another: which a transport needs, and which it knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from edgeflare.errors import UserError

TransportName = Literal["emulated", "qemu", "adb", "ssh", "address"]
"""What brings the agent up; one class each in `devices/transports`."""

_REQUIRED: dict[TransportName, tuple[str, str] | None] = {
    "emulated": None,
    "qemu": ("cpu", "cortex-a72"),
    "adb": None,
    "ssh": None,  # its host too may come with the address
    "address": ("address", "HOST:PORT"),
}
"""The transports; and the key, with an example, without which one cannot do."""

_BELONGS_TO: dict[str, tuple[TransportName, ...]] = {
    "python": ("emulated", "ssh"),
    "link_delay_ms": ("emulated",),
    "runtime": ("qemu", "adb", "ssh"),
    "cpu": ("qemu",),
    "serial": ("adb",),
    "host": ("ssh",),
    "cache": ("adb", "ssh"),
    "cache_limit_mb": ("adb", "ssh"),
    "address": ("address",),
    "tls_ca": ("address",),
    "token_file": ("address",),
}
"""The keys that only some transports know."""


def check_transport(path: Path, values: Mapping[str, object]) -> None:
    """Refuse a profile that lacks a key that its transport needs, or has one of another's.

    Raises:
        UserError: it does; names the file and the key.

    """
    transport = values.get("transport")
    if transport is None:
        raise UserError(
            f"{path}: transport is missing; expected {_one_of(_REQUIRED)}, or a profile that"
            " it extends"
        )
    for key in values:
        owners = _BELONGS_TO.get(key)
        if owners is not None and transport not in owners:
            raise UserError(
                f"{path}: {key}: belongs to transport = {_one_of(owners)}, but this profile's is"
                f' "{transport}"'
            )
    required = _REQUIRED[transport]  # type: ignore[index]
    if required is not None and required[0] not in values:
        raise UserError(
            f'{path}: {required[0]} is missing; expected {required[0]} = "{required[1]}"'
        )


def _one_of(names: Iterable[str]) -> str:
    *most, last = (f'"{name}"' for name in names)
    return f"{', '.join(most)} or {last}" if most else last


def check_token(path: Path, said: Mapping[str, object], extending: Mapping[str, object]) -> None:
    """Refuse to show the token of one address to another.

    Args:
        path: the profile that may have a token.
        said: what it says.
        extending: what the profiles say that extend it.

    Raises:
        UserError: a profile sets another address than the one that it extends, whose token it has.

    """
    theirs, ours = said.get("address"), extending.get("address")
    taken = "token_file" in said and "token_file" not in extending
    if taken and None not in (theirs, ours) and theirs != ours:
        raise UserError(
            f"{path}: token_file is for {theirs}, and a profile that extends this one has the"
            f" address {ours}: give that one a token_file of its own"
        )
