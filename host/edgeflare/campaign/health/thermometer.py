"""Temperatures of the devices, read every few seconds, and pauses while one is too hot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from math import isnan, nan

from edgeflare.campaign.health.health_record import HealthRecord
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError

READ_INTERVAL_SECONDS = 5.0
"""Between two readings of a device that has a limit. Silicon warms up within seconds, a board
within minutes."""

COOLER_BY_CELSIUS = 5.0
"""Below its limit, before a device goes on; else it would stop again at once."""

COOLING_SECONDS = 1800.0
"""The longest pause. What is too hot for longer does not cool down by waiting."""

_NO_THERMOMETERS = ("PMIC-Die*", "lmh-dcvs*", "vbat*", "ibat*", "soc")
"""Thermal zones that tell a constant, a threshold, or volts, amperes and charge of a battery, as on
Jetsons and on phones of Qualcomm's."""


class Thermometer:
    """Reads the temperatures and frequencies of the devices, and waits while one is too hot."""

    def __init__(
        self,
        record: HealthRecord,
        stopped: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Watch over the devices of a record.

        Args:
            record: where what is seen is kept.
            stopped: whether the user wants to stop; ends a pause.
            clock: seconds that never go back.
            sleep: waits so many seconds.

        """
        self._record = record
        self._stopped = stopped
        self._clock = clock
        self._sleep = sleep
        self._read_at = [float("-inf")] * len(record.devices)
        self._pauses: dict[int, tuple[float, float]] = {}  # begin, and seconds paused before

    def read_all(self) -> None:
        """Note temperatures and frequencies of all devices."""
        for index in range(len(self._record.devices)):
            self._read(index)

    def read_unless_recent(self, index: int) -> None:
        """Note those of one device, unless they were read just before."""
        if not self._is_recent(index):
            self._read(index)

    def wait_until_cool(self) -> None:
        """Wait until no device is too hot, or the user wants to stop.

        Raises:
            InfrastructureError: a device does not cool down.

        """
        for index in range(len(self._record.devices)):
            cool = self.is_cool(index)
            while not cool and not self._stopped():
                self._sleep(READ_INTERVAL_SECONDS)
                self._watch(index)
                cool = index not in self._pauses

    def is_cool(self, index: int) -> bool:
        """Return whether a device may go on; it is read unless it was read just before.

        Raises:
            InfrastructureError: it does not cool down.

        """
        if not self._is_recent(index):
            self._watch(index)
        return index not in self._pauses

    def _watch(self, index: int) -> None:
        """Read a device that has a limit, and begin or end its pause."""
        profile = self._record.devices[index].profile
        limit = profile.pause_above_celsius
        if limit is None:
            return
        hottest = self._read(index)
        if index in self._pauses:
            self._go_on_cooling(index, limit, hottest)
        elif hottest is None:
            self._record.warn(
                f"{profile.name} does not tell its temperature, so that pause_above_celsius ="
                f" {limit:g} has no effect"
            )
        elif hottest > limit:
            self._begin_cooling(index, limit, hottest)

    def _is_recent(self, index: int) -> bool:
        return self._clock() < self._read_at[index] + READ_INTERVAL_SECONDS

    def _begin_cooling(self, index: int, limit: float, hottest: float) -> None:
        self._record.announce(
            f"{self._record.devices[index].profile.name} is at {hottest:.0f} °C"
            f" ({self._hottest_zone(index)}), above the {limit:g} of its profile: waiting until it"
            f" is at {limit - COOLER_BY_CELSIUS:g}"
        )
        readings = self._record.readings[index]
        readings.pauses += 1
        self._pauses[index] = (self._read_at[index], readings.paused_seconds)
        self._record.keep()

    def _go_on_cooling(self, index: int, limit: float, hottest: float | None) -> None:
        """Count the time of a pause until now, and end it where the device is cool."""
        since, paused_before = self._pauses[index]
        paused, enough = self._read_at[index] - since, limit - COOLER_BY_CELSIUS
        self._record.readings[index].paused_seconds = paused_before + paused
        self._record.keep()
        # One that was lost meanwhile goes on too: whoever asks it next notices.
        if hottest is None or isnan(hottest) or hottest <= enough:
            del self._pauses[index]
        elif paused >= COOLING_SECONDS:
            raise InfrastructureError(
                f"{self._record.devices[index].profile.name}: still at {hottest:.0f} °C after"
                f" {COOLING_SECONDS / 60:.0f} minutes of rest, where {enough:g} were expected; cool"
                f" it, or raise pause_above_celsius in its profile"
            )

    def _read(self, index: int) -> float | None:
        """Note a device's state; return its highest temperature.

        None where it tells none, NaN where it does not answer: that is for whoever asks it next to
        find out, who knows how to get it back.
        """
        self._read_at[index] = self._clock()
        device = self._record.devices[index]
        try:
            state = device.telemetry()
        except InfrastructureError:
            return nan
        self._record.readings[index].add(state)
        self._record.keep()
        return max(_watched(device.profile, state.temperatures).values(), default=None)

    def _hottest_zone(self, index: int) -> str:
        """Return the zone that was hottest when the device was read last."""
        readings, profile = self._record.readings[index], self._record.devices[index].profile
        watched = _watched(
            profile, {name: seen["last"] for name, seen in readings.temperatures.items()}
        )
        return max(watched, key=watched.__getitem__)


def _watched(profile: Profile, temperatures: Mapping[str, float]) -> Mapping[str, float]:
    """Return the temperatures that a profile's limit is about."""
    if profile.thermal_zones:
        return {
            zone: value
            for zone, value in temperatures.items()
            if _like(zone, profile.thermal_zones)
        }
    return {
        zone: value for zone, value in temperatures.items() if not _like(zone, _NO_THERMOMETERS)
    }


def _like(zone: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(zone, pattern) for pattern in patterns)
