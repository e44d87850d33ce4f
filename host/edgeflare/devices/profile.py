"""Device profiles: what they say, where they are kept, and how one is found by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgeflare.devices.profile_file import read_profile_file, split_address
from edgeflare.errors import UserError
from edgeflare.suggestion import suggestion

Kernels = Literal["xnnpack", "builtin", "reference"]
"""The kernels that run the operators: XNNPACK where it takes them, optimized or reference."""

ADDRESS_SCHEME = "grpc://"

_MEANT = ' Did you mean "{}"?'


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a device is reached, and how models run on it.

    Attributes:
        name: the file's name without its ending, or the address that was asked for.
        description: one line for people.
        source: the file that says all this; None for an address profile made on the spot.
        transport: what brings the agent up: "emulated" or "address".
        kernels: the kernels that models run on.
        threads: interpreter threads.
        warmup: inputs of zeros to run before a session counts as open.
        input_timeout_seconds: time that one input may take before it counts as a hang.
        python: the interpreter that runs an emulated device's agent; None for the host's own.
        link_delay_ms: emulated latency, added to each round trip of an emulated device.
        address: host:port of an agent that somebody started.
        tls_ca: PEM file with the certificate authority that vouches for that agent.
        token_file: file with the token that lets the host in there.

    """

    name: str
    transport: Literal["emulated", "address"]
    description: str = ""
    source: Path | None = None
    kernels: Kernels = "xnnpack"
    threads: int = 1
    warmup: int = 0
    input_timeout_seconds: float = 10.0
    python: str | None = None
    link_delay_ms: float = 0.0
    address: str | None = None
    tls_ca: Path | None = None
    token_file: Path | None = None


def find_profile(name: str) -> Profile:
    """Return the profile of that name, or one made on the spot for `grpc://host:port`.

    Raises:
        UserError: there is none, or its file says something that it must not.

    """
    if name.startswith(ADDRESS_SCHEME):
        return _address_profile(name)
    files = _files()
    if name not in files:
        raise UserError(
            f'unknown device "{name}".{suggestion(name, files, _MEANT)} `edgeflare devices list`'
            f" names them all; {ADDRESS_SCHEME}HOST:PORT reaches an agent that is already running"
        )
    return _load(name, files)


def list_profiles() -> list[Profile]:
    """Return all profiles, by name.

    Raises:
        UserError: the file of one of them says something that it must not.

    """
    files = _files()
    return [_load(name, files) for name in sorted(files)]


def _folders() -> Iterator[Path]:
    """Yield the folders that hold profiles; of two of the same name, the first one counts."""
    yield Path("device_profiles")
    yield Path(os.path.expanduser("~/.config/edgeflare/devices"))
    package = Path(__file__).resolve().parents[1]
    yield package / "device_profiles"  # where a wheel puts them
    yield package.parents[1] / "device_profiles"  # where a checkout keeps them


def _files() -> dict[str, Path]:
    files: dict[str, Path] = {}
    for folder in _folders():
        for path in sorted(folder.glob("*.toml")):
            files.setdefault(path.stem, path)
    return files


def _load(name: str, files: Mapping[str, Path]) -> Profile:
    """Read a profile and those that it extends; what the extending one says goes first."""
    path = files[name]
    values: dict[str, object] = {}
    line = [name]
    while True:
        table = read_profile_file(files[line[-1]])
        base = table.pop("extends", None)
        values = {**table, **values}
        if base is None:
            break
        if base in line:
            circle = " extends ".join([*line, str(base)])
            raise UserError(f"{path}: extends: goes round in a circle, {circle}")
        if base not in files:
            raise UserError(
                f'{files[line[-1]]}: extends = "{base}": there is no such profile.'
                f"{suggestion(str(base), files, _MEANT)} `edgeflare devices list` names them all"
            )
        line.append(str(base))
    _check_transport(path, values)
    return Profile(name=name, source=path, **values)  # type: ignore[arg-type]


_BELONGS_TO = {
    "python": "emulated",
    "link_delay_ms": "emulated",
    "address": "address",
    "tls_ca": "address",
    "token_file": "address",
}


def _check_transport(path: Path, values: Mapping[str, object]) -> None:
    transport = values.get("transport")
    if transport is None:
        raise UserError(
            f'{path}: transport is missing; expected transport = "emulated" or "address",'
            " or a profile that it extends"
        )
    for key in values:
        owner = _BELONGS_TO.get(key, transport)
        if owner != transport:
            raise UserError(
                f'{path}: {key}: belongs to transport = "{owner}", but this profile\'s is'
                f' "{transport}"'
            )
    if transport == "address" and "address" not in values:
        raise UserError(f'{path}: address is missing; expected address = "HOST:PORT"')


def _address_profile(name: str) -> Profile:
    address = name[len(ADDRESS_SCHEME) :]
    try:
        split_address(address)
    except ValueError as error:
        raise UserError(f'device "{name}": {error}, for example grpc://127.0.0.1:50051') from None
    return Profile(
        name=name,
        transport="address",
        description=f"an agent that somebody started, at {address}",
        address=address,
    )
