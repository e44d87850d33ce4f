"""What a package says of a transport that it adds: its keys, its addresses, and how it is made."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from edgeflare.devices.profile_keys import ProfileKey
from edgeflare.devices.transports.transport import Transport

if TYPE_CHECKING:
    from edgeflare.devices.profile import Profile
    from edgeflare.devices.remote.remote_shell import Remote

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
