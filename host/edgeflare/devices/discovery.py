"""The devices that are attached or reachable right now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.transports.transport_plugin import TransportPlugin
from edgeflare.devices.transports.transport_registry import transport, transports
from edgeflare.errors import EdgeFlareError

_AT_ONCE = 16


def device_states(profiles: Iterable[Profile]) -> list[tuple[Profile, str]]:
    """Return each profile, and each attached device that none names, with how it is right now.

    All are asked at the same time. Nothing is started, neither on a device nor here.
    """
    known = list(profiles)
    for name, plugin in transports().items():
        with suppress(EdgeFlareError):  # which the rows of its profiles say
            known += _attached([one for one in known if one.transport == name], plugin)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip(known, pool.map(_state, known), strict=True))


def _attached(known: list[Profile], plugin: TransportPlugin) -> Iterator[Profile]:
    """Yield profiles of the attached devices of a transport that no known profile names."""
    if plugin.attached is None or plugin.scheme is None:
        return
    for address in plugin.attached():
        values = plugin.scheme.read(address.partition("://")[2])
        if not any(all(one.value(key) == values[key] for key in values) for one in known):
            yield find_profile(address)


def _state(profile: Profile) -> str:
    try:
        return transport(profile.transport).status(profile)
    except EdgeFlareError as error:
        return str(error).removeprefix(f"{profile.name}: ")
