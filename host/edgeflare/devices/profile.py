"""Device profiles: what they say, where they are kept, and how one is found by its name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from edgeflare.devices.profile_file import read_profile_file, split_address
from edgeflare.errors import UserError
from edgeflare.suggestion import suggestion

Kernels = Literal["xnnpack", "builtin", "reference"]
"""The kernels that run the operators: XNNPACK where it takes them, optimized or reference."""

TransportName = Literal["emulated", "qemu", "adb", "ssh", "address"]
"""What brings the agent up; one class each in `devices/transports`."""

_MEANT = ' Did you mean "{}"?'


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a device is reached, and how models run on it.

    Attributes:
        name: the file's name without its ending, or the address that was asked for.
        description: one line for people.
        source: the file that says all this; None for an address profile made on the spot.
        transport: what brings the agent up.
        kernels: the kernels that models run on.
        threads: interpreter threads.
        delegate: path on the device of an external delegate's library, or None.
        delegate_options: what that library is told.
        warmup: inputs of zeros to run before a session counts as open.
        input_timeout_seconds: time that one input may take before it counts as a hang.
        canary_every: device queries from one canary input to the next; 0 for none.
        pause_above_celsius: temperature above which the device is left to cool; None for no limit.
        thermal_zones: names of the zones that this temperature is taken from, with `*` for
            anything; none for all but those that are known to tell no temperature.
        python: an interpreter with a runtime that runs the agent, in place of the host's own
            (emulated) or of a bundle (ssh).
        link_delay_ms: emulated latency, added to each round trip of an emulated device.
        runtime: the TFLite runtime of the bundle, as `edgeflare agent bundle --runtime` takes it.
        cpu: the core that QEMU emulates, by its name for it.
        serial: what `adb devices` calls the device; None for the only one attached.
        host: what `ssh` is to connect to: a host or an alias of its configuration, perhaps with
            user and port.
        cache: folder on the device that holds bundles and models; None for the transport's usual.
        cache_limit_mb: megabytes that its models may take.
        address: host:port of an agent that somebody started.
        tls_ca: PEM file with the certificate authority that vouches for that agent.
        token_file: file with the token that lets the host in there.

    """

    name: str
    transport: TransportName
    description: str = ""
    source: Path | None = None
    kernels: Kernels = "xnnpack"
    threads: int = 1
    delegate: str | None = None
    delegate_options: Mapping[str, str] = field(default_factory=dict)
    warmup: int = 0
    input_timeout_seconds: float = 10.0
    canary_every: int = 1000
    pause_above_celsius: float | None = None
    thermal_zones: tuple[str, ...] = ()
    python: str | None = None
    link_delay_ms: float = 0.0
    runtime: str = "litert"
    cpu: str | None = None
    serial: str | None = None
    host: str | None = None
    cache: str | None = None
    cache_limit_mb: int = 1024
    address: str | None = None
    tls_ca: Path | None = None
    token_file: Path | None = None


def find_profile(name: str) -> Profile:
    """Return the profile of that name, or one made on the spot for an address with a scheme.

    Those are `adb://[SERIAL]`, `ssh://[USER@]HOST[:PORT]` and `grpc://HOST:PORT`.

    Raises:
        UserError: there is none, or its file says something that it must not.

    """
    scheme, separator, rest = name.partition("://")
    if separator:
        return _addressed(name, scheme, rest)
    files = _files()
    if name not in files:
        raise UserError(
            f'unknown device "{name}".{suggestion(name, files, _MEANT)} `edgeflare devices list`'
            f" names them all; {_SCHEMES_TEXT} need no profile"
        )
    return _load(name, files)


def find_profiles(names: Sequence[str]) -> list[Profile]:
    """Return the profiles of devices that are used together, each under a name of its own.

    An emulated device that is named several times is started as many times, and found again by the
    names that it then has: "emulated-builtin#2" is another "emulated-builtin".

    Raises:
        UserError: see `find_profile`; or a device that there is only once is named twice.

    """
    found: list[Profile] = []
    names = [_without_number(name) for name in names]
    for at, name in enumerate(names):
        profile = find_profile(name)
        before = names[:at].count(name)
        if before and profile.transport not in _STARTED:
            raise UserError(f'device "{name}" is named twice: name each device once')
        found.append(replace(profile, name=f"{name}#{before + 1}") if before else profile)
    return found


_STARTED: tuple[TransportName, ...] = ("emulated", "qemu")
"""The transports that start a device of their own, as often as it is asked for."""


def _without_number(name: str) -> str:
    """Return the name of a profile without the number that `find_profiles` added."""
    base, _, number = name.rpartition("#")
    files = _files()
    if name in files or base not in files or not number.isdecimal():
        return name
    return base if _load(base, files).transport in _STARTED else name


@dataclass(frozen=True, slots=True)
class Broken:
    """A profile that cannot be used.

    Attributes:
        name: its name.
        complaint: what its file, or one that it extends, says that it must not.

    """

    name: str
    complaint: str


def list_profiles() -> tuple[list[Profile], list[Broken]]:
    """Return all profiles, by name, and in a list of their own those that cannot be used."""
    files = _files()
    profiles: list[Profile] = []
    broken: list[Broken] = []
    for name in sorted(files):
        try:
            profiles.append(_load(name, files))
        except UserError as error:
            broken.append(Broken(name, str(error)))
    return profiles, broken


def _folders() -> Iterator[Path]:
    """Yield the folders that hold profiles; of two of the same name, the first one counts."""
    yield Path("device_profiles")
    yield Path(os.path.expanduser("~/.config/edgeflare/devices"))
    package = Path(__file__).resolve().parents[1]
    yield package / "device_profiles"  # where a wheel puts them
    yield package.parents[1] / "device_profiles"  # where a checkout keeps them


def _files() -> dict[str, list[Path]]:
    """Return the files of each name, the one that counts first."""
    files: dict[str, list[Path]] = {}
    for folder in _folders():
        for path in sorted(folder.glob("*.toml")):
            files.setdefault(path.stem, []).append(path)
    return files


def _load(name: str, files: Mapping[str, Sequence[Path]]) -> Profile:
    """Read a profile and those that it extends; what the extending one says goes first.

    One that extends its own name means the one of a folder that comes after its own.
    """
    path = files[name][0]
    values: dict[str, object] = {}
    line = [(name, path)]
    while True:
        last, at = line[-1]
        table = read_profile_file(at)
        base = table.pop("extends", None)
        values = {**table, **values}
        if base is None:
            break
        base = str(base)
        found = list(files.get(base, []))
        if not found:
            raise UserError(
                f'{at}: extends = "{base}": there is no such profile.'
                f"{suggestion(base, files, _MEANT)} `edgeflare devices list` names them all"
            )
        if base == last:
            found = found[found.index(at) + 1 :]
        if not found or (base, found[0]) in line:
            circle = " extends ".join([*(step for step, _ in line), base])
            raise UserError(f"{path}: extends: goes round in a circle, {circle}")
        line.append((base, found[0]))
    _check_transport(path, values)
    return Profile(name=name, source=path, **values)  # type: ignore[arg-type]


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


def _check_transport(path: Path, values: Mapping[str, object]) -> None:
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


_SCHEMES_TEXT = "adb://[SERIAL], ssh://[USER@]HOST and grpc://HOST:PORT"


def _addressed(name: str, scheme: str, rest: str) -> Profile:
    """Make the profile of a device that is named by its address alone."""
    if scheme == "grpc":
        return _network_agent(name, rest)
    if scheme == "adb":
        serial = rest or None
        return replace(_load("android-arm64", _files()), name=name, source=None, serial=serial)
    if scheme == "ssh":
        if not rest or rest.startswith("-"):
            raise UserError(f'device "{name}": expected ssh://[USER@]HOST[:PORT]')
        files = _files()
        return replace(_load("linux-aarch64-ssh", files), name=name, source=None, host=rest)
    raise UserError(f'device "{name}": unknown scheme "{scheme}://"; expected {_SCHEMES_TEXT}')


def _network_agent(name: str, address: str) -> Profile:
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
