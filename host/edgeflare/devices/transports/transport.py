"""The seam between a device and whatever brings its agent up, and what a package says of that."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from edgeflare.devices.lease import LocalLease
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_keys import ProfileKey

if TYPE_CHECKING:
    from edgeflare.devices.remote.remote_shell import Remote


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
    bracketed = host.startswith("[") and host.endswith("]")
    usable = bool(host) and (bracketed or not set(host) & set(":/ "))
    if not usable or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError("expected HOST:PORT")
    return host.strip("[]"), int(port)


STATUS_SECONDS = 5
"""Seconds for a device to let itself be reached; one that takes longer counts as not there."""


@dataclass(frozen=True, slots=True)
class AddressScheme:
    """The addresses by which devices of a transport are named without a profile: SCHEME://REST.

    Attributes:
        name: the scheme, without "://".
        syntax: the whole address, as help and errors show it: "ssh://[USER@]HOST".
        read: returns the profile's keys, with their values, that the REST of an address sets;
            raises ValueError with what is expected where it is no such address.
        extends: the profile that gives all other keys; None where their defaults do.

    """

    name: str
    syntax: str
    read: Callable[[str], Mapping[str, object]]
    extends: str | None = None


@dataclass(frozen=True, slots=True)
class AgentDeployment:
    """How the agent is put on devices that have a shell.

    Attributes:
        shell: returns the shell of a profile's device; nothing is reached yet.
        cache: the folder on the device where agents and models stay, unless the profile sets
            `cache`; one that begins with `~/` is in the home there.
        bundle_targets: targets of `edgeflare agent bundle`, by the machine's name for its
            architecture (`uname -m`).
        without_bundle: what the user can do where there is no bundle for a machine.

    """

    shell: Callable[[Profile], Remote]
    cache: str
    bundle_targets: Mapping[str, str]
    without_bundle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportPlugin:
    """A transport, as a package registers it under the entry point group `edgeflare.transports`.

    The name of the entry point is what profiles write as `transport`. Only `create` is needed.

    Attributes:
        create: returns the transport of a profile; starts and reaches nothing yet.
        keys: the keys that profiles of this transport may set, beside those of every profile. The
            value of one that `Profile` has a field for is in that field, others in `options`.
        check_extension: looks at one file of a profile that extends others: given its path, the
            values that it sets, and those that the files set that extend it, raises UserError
            where these must not come together.
        needs_trust: whether a profile of the working directory takes the user's trust because it
            names this transport, whatever keys it sets. That is right for a transport that starts
            a program or contacts an address without a key that says so.
        starts_device: whether each opened transport starts a device of its own on this machine, so
            that a command may name one profile several times.
        scheme: how devices are named without a profile; None where they cannot be.
        attached: returns the addresses, in that scheme, of the devices that are attached right
            now; None where that cannot be known. It starts nothing.
        status: says in a few words how a profile's device is right now, within `STATUS_SECONDS`;
            an `EdgeFlareError` counts as such words. It starts nothing.
        checks: what `edgeflare doctor` looks for on this machine.
        deployment: how the agent is put on the device; None where nothing is.

    """

    create: Callable[[Profile], Transport]
    keys: Sequence[ProfileKey] = ()
    check_extension: Callable[[Path, Mapping[str, object], Mapping[str, object]], None] | None = (
        None
    )
    needs_trust: bool = True
    starts_device: bool = False
    scheme: AddressScheme | None = None
    attached: Callable[[], Sequence[str]] | None = None
    status: Callable[[Profile], str] = lambda _profile: "not known until it is opened"
    checks: Callable[[], Sequence[Check]] = tuple
    deployment: AgentDeployment | None = None


_PROGRAM_SECONDS = 20.0
"""Seconds for a program to say its version, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for.

    Attributes:
        name: what it is.
        found: what was found; empty if nothing.
        needed: whether nothing works without it.
        mend: the command that brings it, or what to do.

    """

    name: str
    found: str
    needed: bool
    mend: str


def check_program(name: str, program: str, question: str, mend: str) -> Check:
    """Look for a program; the first line that it says of its version is what was found.

    Args:
        name: what the check is called.
        program: the command, or its path.
        question: the option by which it tells its version.
        mend: see `Check`.

    """
    try:
        done = subprocess.run(
            [program, question],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROGRAM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return Check(name, "", False, mend)
    said = (done.stdout + done.stderr).strip().splitlines()
    return Check(name, said[0] if said and not done.returncode else "", False, mend)


def is_installed(package: str) -> bool:
    """Tell whether a package is installed for this Python."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
