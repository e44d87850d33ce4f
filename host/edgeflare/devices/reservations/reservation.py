"""A reservation of a device, in the system by which a lab says who may use what."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from edgeflare.class_registry import InstalledClasses
from edgeflare.devices.profile import Profile
from edgeflare.errors import EdgeFlareError
from edgeflare.untrusted_text import printable

ENTRY_POINTS: Final = "edgeflare.reservations"
"""The group of entry points under which a package offers reservations."""


class Reservation(ABC):
    """A device, as a lab's system of reservations knows it.

    It says who may use a device. What keeps two hosts apart that may is the agent's lease.

    Attributes:
        place: what that system calls the device.

    """

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def reserve(self) -> bool:
        """Reserve the device for this user, without waiting for others to end.

        Returns:
            Whether it has to be given back: no, where the user had reserved it before.

        Raises:
            UserError: the system does not know the device, or is not installed here.
            InfrastructureError: somebody else has it, or the system does not answer.

        """

    @abstractmethod
    def release(self) -> None:
        """Give the device back.

        Raises:
            InfrastructureError: the system does not take it, which the user is warned of.

        """


reservation_systems: Final = InstalledClasses[Reservation](
    ENTRY_POINTS, "system of reservations", Reservation
)


@contextmanager
def reserved(profile: Profile) -> Iterator[None]:
    """Hold the reservation that a profile asks for, if any, for as long as the context lasts.

    Raises:
        UserError: there is no such system or device.
        InfrastructureError: somebody else has the device, or the system does not answer.

    """
    if profile.reservation is None:
        yield
        return
    system, _, place = profile.reservation.partition(":")
    reservation = reservation_systems.find(system)(place)
    try:
        lent = reservation.reserve()
    except EdgeFlareError as error:
        raise type(error)(f"{profile.name}: {error}") from None
    try:
        yield
    finally:
        if lent:
            _release(reservation, profile.name)


def _release(reservation: Reservation, name: str) -> None:
    """Give a device back; that this fails changes nothing of what was done with it."""
    try:
        reservation.release()
    except EdgeFlareError as error:
        sys.stderr.write(f"edgeflare: warning: {printable(f'{name}: {error}')}\n")
