"""What is attached or reachable right now."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from edgeflare.devices.profile import Profile, find_profile
from edgeflare.devices.profile_file import split_address
from edgeflare.devices.transports.adb import Attached, attached_as_far_as_known
from edgeflare.devices.transports.qemu import find_qemu
from edgeflare.devices.transports.ssh import SshRemote
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError

PATIENCE_SECONDS = 5
"""For a device to let itself be reached; one that takes longer counts as not there."""

_AT_ONCE = 16

_NO_SERVER = "adb's server does not run: `adb start-server`, and look again"


def look_around(profiles: Iterable[Profile]) -> list[tuple[Profile, str]]:
    """Return each profile, and each attached phone that none names, with how it is right now.

    All are asked at the same time. Nothing is started, neither on a device nor adb's server here.
    """
    known = list(profiles)
    phones, trouble = _phones()
    named = {profile.serial for profile in known if profile.transport == "adb"}
    with suppress(UserError):  # the profile that they all extend is broken, which its own row says
        known += [find_profile(f"adb://{one.serial}") for one in phones if one.serial not in named]

    def state(profile: Profile) -> str:
        if profile.transport == "adb":
            return trouble or _phone(profile, phones)
        return _STATES[profile.transport](profile)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip(known, pool.map(state, known), strict=True))


def _phones() -> tuple[list[Attached], str]:
    try:
        phones = attached_as_far_as_known()
    except InfrastructureError as error:
        return [], str(error)
    return (phones, "") if phones is not None else ([], _NO_SERVER)


def _phone(profile: Profile, phones: list[Attached]) -> str:
    if profile.serial is None:
        return f"{len(phones)} attached" if phones else "none attached"
    state = next((one.state for one in phones if one.serial == profile.serial), "not attached")
    return f"{profile.serial} {'attached' if state == 'device' else state}"


def _emulated(_profile: Profile) -> str:
    return "here"


def _qemu(_profile: Profile) -> str:
    return "here" if find_qemu() else "no QEMU on this machine"


def _ssh(profile: Profile) -> str:
    if profile.host is None:
        return "names no host"
    try:
        with SshRemote(profile, PATIENCE_SECONDS):
            return "reachable"
    except EdgeFlareError as error:
        return str(error).removeprefix(f"{profile.name}: ")


def _address(profile: Profile) -> str:
    try:
        where = split_address(profile.address or "")
        socket.create_connection(where, PATIENCE_SECONDS).close()
    except OSError as error:
        return f"nobody is there ({error.strerror or error})"
    return "somebody listens"


_STATES: dict[str, Callable[[Profile], str]] = {
    "emulated": _emulated,
    "qemu": _qemu,
    "ssh": _ssh,
    "address": _address,
}
