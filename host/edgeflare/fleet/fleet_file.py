"""A `fleet.toml`: the hosts of a lab, and the devices of each by class."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.errors import UserError
from edgeflare.outside_text import read_toml

_CLASS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_RESERVED = frozenset({"CPU", "GPU", "memory", "object_store_memory"})

_MOST_OF_A_CLASS = 1000
"""Devices of one class on one host, at most."""


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """Where an attempt at a unit may run.

    Attributes:
        host: name of the host.
        device_class: the device's class.
        device: name of the device, as `--device` takes it.
        number: position among several of the same name, as an emulation has them.

    """

    host: str
    device_class: str
    device: str
    number: int = 0

    def __str__(self) -> str:
        """Return what people call it."""
        return f"{self.device}{f'#{self.number + 1}' if self.number else ''} on {self.host}"


@dataclass(frozen=True, slots=True)
class FleetHost:
    """A host of a fleet.

    Attributes:
        name: what people call it.
        address: IP address in the cluster; empty for the host on which the command runs.
        devices: the names of its devices, by their class.

    """

    name: str
    address: str
    devices: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Fleet:
    """The hosts of a lab."""

    hosts: tuple[FleetHost, ...]

    def places(self, classes: Sequence[str]) -> tuple[DevicePlace, ...]:
        """Return the places of some classes of devices.

        Raises:
            UserError: nobody offers one of them.

        """
        return tuple(place for class_ in classes for place in self._of_class(class_))

    def _of_class(self, device_class: str) -> tuple[DevicePlace, ...]:
        if device_class in _RESERVED:
            raise UserError(
                f"{device_class} is a resource that Ray has of its own: give the device class"
                " another name"
            )
        places = tuple(
            DevicePlace(host.name, device_class, device, at)
            for host in self.hosts
            for at, device in _numbered(host.devices.get(device_class, ()))
        )
        if not places:
            known = sorted({name for host in self.hosts for name in host.devices})
            raise UserError(
                f"no host of the fleet offers the device class {device_class}: it has"
                f" {', '.join(known) or 'none'}; name one of these with --device, or add it to"
                " fleet.toml"
            )
        return places

    def host(self, name: str) -> FleetHost:
        """Return the host of that name."""
        return next(host for host in self.hosts if host.name == name)


@dataclass(frozen=True, slots=True)
class FleetHosts:
    """Where the work of a fleet is done.

    Attributes:
        address: address of the cluster's head, or `LOCAL`.
        file: hosts and their devices; None for this host alone.
        devices: devices of each class, where it is this host alone.

    """

    address: str
    file: Path | None
    devices: int

    def offering(self, classes: Sequence[str]) -> Fleet:
        """Return the fleet; this host alone offers the devices of whatever classes are asked for.

        Raises:
            UserError: `fleet.toml` says what it must not.

        """
        return local_fleet(classes, self.devices) if self.file is None else read_fleet(self.file)


def local_fleet(devices: Sequence[str], count: int) -> Fleet:
    """Return the fleet of this host alone, with so many of each device."""
    return Fleet((FleetHost("local", "", {device: (device,) * count for device in devices}),))


def read_fleet(path: Path) -> Fleet:
    """Read a `fleet.toml`.

    Raises:
        UserError: it cannot be read, or says something that it must not; names the key.

    """
    try:
        content = read_toml(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    for key in content.keys() - {"hosts"}:
        raise UserError(f"{path}: unknown key {key}: expected [hosts.NAME]")
    hosts = content.get("hosts")
    if not isinstance(hosts, Mapping) or not hosts:
        raise UserError(f"{path} names no hosts: write a [hosts.NAME] for each")
    fleet = Fleet(tuple(_host(path, name, said) for name, said in hosts.items()))
    addresses = [host.address for host in fleet.hosts]
    for address in addresses:
        if addresses.count(address) > 1:
            raise UserError(f"{path}: two hosts have the address {address}")
    return fleet


def _host(path: Path, name: str, said: Any) -> FleetHost:
    where = f"{path}: [hosts.{name}]"
    if not isinstance(said, Mapping) or said.keys() != {"address", "devices"}:
        odd = sorted(said.keys() - {"address", "devices"}) if isinstance(said, Mapping) else []
        unknown = f"unknown key {odd[0]}: " if odd else ""
        raise UserError(f"{where}: {unknown}expected address and devices")
    devices = said["devices"]
    try:
        # As Ray writes it: of IPv6 there are several ways.
        address = str(ipaddress.ip_address(str(said["address"])))
    except ValueError:
        raise UserError(
            f"{where}: address is the IP address that the host has in the cluster"
        ) from None
    if not isinstance(devices, Mapping) or not devices:
        raise UserError(f"{where}: devices are names or a number, by their class")
    return FleetHost(
        name,
        address,
        {device_class: _devices(where, device_class, n) for device_class, n in devices.items()},
    )


def _devices(where: str, device_class: str, said: Any) -> tuple[str, ...]:
    if not _CLASS.fullmatch(device_class):
        raise UserError(
            f"{where}: {device_class!r} is no device class: name it with letters, digits, - . and _"
        )
    if isinstance(said, int) and not isinstance(said, bool) and 0 < said <= _MOST_OF_A_CLASS:
        return (device_class,) * said
    if isinstance(said, list) and said and all(isinstance(word, str) and word for word in said):
        if len(set(said)) < len(said):
            raise UserError(f"{where}: {device_class} names a device twice")
        return tuple(said)
    raise UserError(
        f"{where}: {device_class} is a list of device names, or how many at once of an emulation"
    )


def _numbered(devices: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    seen: dict[str, int] = {}
    for device in devices:
        at = seen.get(device, 0)
        seen[device] = at + 1
        yield at, device
