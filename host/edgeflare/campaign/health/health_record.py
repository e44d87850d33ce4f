"""What was seen of the devices of a campaign, and what looked wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.run.journal import Journal

KEY = "health"
"""Of the journal, under which a record is kept."""


class MonitoredDevice(Protocol):
    """A device, as far as its health is concerned."""

    @property
    def profile(self) -> Profile:
        """Its name and limits."""

    def telemetry(self) -> Telemetry:
        """Ask for its state right now; raises InfrastructureError."""


class WarningSink(Protocol):
    """Whoever is to be told."""

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

    def see(self, state: Telemetry) -> None:
        """Take in a device's state."""
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
    """The vitals of all devices, kept in the journal, so that a resumed run goes on with them.

    Attributes:
        patients: the devices, in their order in the panel.
        vitals: what was seen of each.

    """

    def __init__(
        self, patients: Sequence[MonitoredDevice], journal: Journal, nurse: WarningSink
    ) -> None:
        """Go on with what the journal has."""
        self.patients = tuple(patients)
        self._journal = journal
        self._nurse = nurse
        noted = journal.about().get(KEY, {"devices": [], "warnings": []})
        self._warnings: list[str] = noted["warnings"]
        self.vitals = [DeviceReadings.from_json(fields) for fields in noted["devices"]] or [
            DeviceReadings() for _ in self.patients
        ]

    def tell(self, line: str) -> None:
        """Tell what happens right now."""
        self._nurse.warned(line)

    def warn(self, line: str) -> None:
        """Tell what looks wrong, and keep it; each line once."""
        if line not in self._warnings:
            self._warnings.append(line)
            self._nurse.warned(line)
            self.keep()

    def keep(self) -> None:
        """Write the vitals down."""
        devices = [vitals.to_json() for vitals in self.vitals]
        self._journal.note(KEY, {"devices": devices, "warnings": self._warnings})


def _add(seen: dict[str, dict[str, float]], name: str, value: float) -> None:
    known = seen.setdefault(name, {"first": value, "min": value, "max": value, "last": value})
    known.update(min=min(known["min"], value), max=max(known["max"], value), last=value)
