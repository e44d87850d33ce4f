"""What was seen of the devices of a campaign, and what looked wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.run.journal import HEALTH_KEY, RunJournal


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
        temperatures: degrees Celsius by thermal zone, each as first, min, max and last.
        frequencies: the same in MHz by core.
        canaries: how often its canary was asked, and with what result.
        pauses: how often it was left to cool.
        paused_seconds: for how long in all.
        failed: a canary has failed, and none was good since.

    """

    temperatures: dict[str, dict[str, float]] = field(default_factory=dict)
    frequencies: dict[str, dict[str, float]] = field(default_factory=dict)
    canaries: Counter[str] = field(default_factory=Counter)
    pauses: int = 0
    paused_seconds: float = 0.0
    failed: bool = False

    def add(self, state: Telemetry) -> None:
        """Add the state of a device."""
        for name, value in state.temperatures.items():
            _add(self.temperatures, name, value)
        for name, value in state.frequencies.items():
            _add(self.frequencies, name, value)

    def to_json(self) -> dict[str, Any]:
        """Return what is kept of them."""
        return {
            "temperatures": self.temperatures,
            "frequencies": self.frequencies,
            "canaries": dict(self.canaries),
            "pauses": self.pauses,
            "paused_seconds": self.paused_seconds,
            "failed": self.failed,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> DeviceReadings:
        """Return what was kept."""
        return cls(**{**fields, "canaries": Counter(fields["canaries"])})


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
        noted = journal.about().get(HEALTH_KEY, {"devices": [], "warnings": []})
        self._warnings: list[str] = noted["warnings"]
        self.readings = [DeviceReadings.from_json(fields) for fields in noted["devices"]] or [
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
        devices = [readings.to_json() for readings in self.readings]
        self._journal.note(HEALTH_KEY, {"devices": devices, "warnings": self._warnings})


def _add(seen: dict[str, dict[str, float]], name: str, value: float) -> None:
    known = seen.setdefault(name, {"first": value, "min": value, "max": value, "last": value})
    known.update(min=min(known["min"], value), max=max(known["max"], value), last=value)
