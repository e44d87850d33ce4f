"""The transports that there are: ours, and those of installed packages, by their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint
from types import MappingProxyType

from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.transport_plugin import TransportPlugin
from edgeflare.errors import UserError
from edgeflare.python_callable import reason
from edgeflare_operators.entry_points import entry_points

ENTRY_POINTS = "edgeflare.transports"
"""The group of entry points under which a package offers transports."""

_LISTED_FIRST = ("emulated", "qemu", "adb", "ssh", "address")
"""The order of our own in lists and messages; entry points have none."""


def transports() -> Mapping[str, TransportPlugin]:
    """Return all transports by name: EdgeFlare's own first, then others in alphabetical order.

    Raises:
        UserError: a package's transport does not load.

    """
    return MappingProxyType({name: transport(name) for name in transport_names()})


def transport_names() -> tuple[str, ...]:
    """Return the names of the transports, and load none."""
    return tuple(_entries())


@cache
def transport(name: str) -> TransportPlugin:
    """Return the transport of that name; no other one is loaded.

    Raises:
        KeyError: there is none.
        UserError: it does not load.

    """
    entry = _entries()[name]
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise UserError(
            f'the transport "{name}" of package {_package(entry)} does not load'
            f" ({reason(error)}); correct or uninstall the package"
        ) from error
    if not isinstance(loaded, TransportPlugin):
        raise UserError(
            f'the transport "{name}" of package {_package(entry)}: {entry.value} is no'
            " TransportPlugin; correct or uninstall the package"
        )
    return loaded


def cache_of(profile: Profile) -> str | None:
    """Return the folder on a device where agents and models stay, or None where none do.

    One that begins with `~/` is in the home there.
    """
    deployment = transport(profile.transport).deployment
    return profile.cache or (deployment.cache if deployment else None)


@cache
def _entries() -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=_position):
        if entry.name in found:
            raise UserError(
                f"the packages {_package(found[entry.name])} and {_package(entry)} both offer a"
                f' transport "{entry.name}": uninstall one of them'
            )
        found[entry.name] = entry
    if not found:
        raise UserError(
            "EdgeFlare's own transports are not registered; install it anew: pip install"
            " --force-reinstall edgeflare"
        )
    return found


def _position(entry: EntryPoint) -> tuple[int, str]:
    ours = entry.name in _LISTED_FIRST
    return _LISTED_FIRST.index(entry.name) if ours else len(_LISTED_FIRST), entry.name


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "unknown"
