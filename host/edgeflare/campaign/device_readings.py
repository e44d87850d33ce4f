"""What was seen of the devices of a campaign, and what looked wrong.

Temperatures are read every few seconds, with pauses while a device is too hot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from math import isnan, nan
from typing import Protocol

from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.errors import InfrastructureError
from edgeflare.run.journal_rows import NotedHealth
from edgeflare.run.run_journal import HEALTH_KEY, RunJournal


class MonitoredDevice(Protocol):
    """A device whose temperature and answers are watched."""

    @property
    def profile(self) -> Profile:
        """Its name and limits."""

    def telemetry(self) -> Telemetry:
        """Ask for its state right now; raises InfrastructureError."""


class WarningSink(Protocol):
    """Receives what the user should know."""

    def warned(self, line: str) -> None:
        """See that something is not as it should be."""


@dataclass(slots=True)
class DeviceReadings:
    """What was seen of one device.

    Attributes:
        temperatures_celsius: by thermal zone, each as first, min, max and last.
        frequencies_mhz: the same by core.
        canaries: how often its canary was asked, and with what result.
        pauses: how often it was left to cool.
        paused_seconds: seconds left to cool, in all.
        failed: a canary has failed, and none was good since.

    """

    temperatures_celsius: dict[str, dict[str, float]] = field(default_factory=dict)
    frequencies_mhz: dict[str, dict[str, float]] = field(default_factory=dict)
    canaries: dict[str, int] = field(default_factory=dict)
    pauses: int = 0
    paused_seconds: float = 0.0
    failed: bool = False

    def add(self, state: Telemetry) -> None:
        """Add the state of a device."""
        for name, value in state.temperatures.items():
            _add(self.temperatures_celsius, name, value)
        for name, value in state.frequencies.items():
            _add(self.frequencies_mhz, name, value)

    def count_canary(self, repetition: str) -> None:
        """Count what a canary has answered."""
        self.canaries[repetition] = self.canaries.get(repetition, 0) + 1


class HealthRecord:
    """The readings of all devices, kept in the journal, so that a resumed run goes on with them.

    Attributes:
        devices: the devices, in their order in the panel.
        readings: what was seen of each.

    """

    def __init__(
        self, devices: Sequence[MonitoredDevice], journal: RunJournal, sink: WarningSink
    ) -> None:
        """Go on with what the journal has."""
        self.devices = tuple(devices)
        self._journal = journal
        self._sink = sink
        noted: NotedHealth = journal.about().get(HEALTH_KEY, {"devices": [], "warnings": []})
        self._warnings = noted["warnings"]
        self.readings = [DeviceReadings(**fields) for fields in noted["devices"]] or [
            DeviceReadings() for _ in self.devices
        ]

    def announce(self, line: str) -> None:
        """Show a line about what happens right now."""
        self._sink.warned(line)

    def warn(self, line: str) -> None:
        """Show a line about what looks wrong, and keep it; each line once."""
        if line not in self._warnings:
            self._warnings.append(line)
            self._sink.warned(line)
            self.keep()

    def keep(self) -> None:
        """Write the readings into the journal."""
        devices = [asdict(readings) for readings in self.readings]
        self._journal.note(HEALTH_KEY, {"devices": devices, "warnings": self._warnings})


def _add(seen: dict[str, dict[str, float]], name: str, value: float) -> None:
    known = seen.setdefault(name, {"first": value, "min": value, "max": value, "last": value})
    known.update(min=min(known["min"], value), max=max(known["max"], value), last=value)


READ_INTERVAL_SECONDS = 5.0
"""Seconds between two readings of a device that has a limit. Silicon warms up within seconds, a
board within minutes."""

COOLER_BY_CELSIUS = 5.0
"""Degrees below its limit at which a device goes on; else it would stop again at once."""

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
            profile, {name: seen["last"] for name, seen in readings.temperatures_celsius.items()}
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
