"""Devices whose health is what the test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.errors import InfrastructureError


@dataclass
class ScriptedDevice:
    """A device whose thermometer shows what the test says, one reading after the other."""

    profile: Profile
    readings: list[float | None] = field(default_factory=list)
    looks: int = 0
    error: InfrastructureError = field(default_factory=lambda: DeviceLost("pulled the plug"))

    def telemetry(self) -> Telemetry:
        reading = self.readings[min(self.looks, len(self.readings) - 1)] if self.readings else 40.0
        self.looks += 1
        if reading is None:
            raise self.error
        return Telemetry(temperatures={"cpu": reading, "skin": 30.0}, frequencies={"cpu0": 1500.0})


def scripted_device(
    readings: list[float | None] | None = None,
    error: InfrastructureError | None = None,
    **profile: Any,
) -> ScriptedDevice:
    return ScriptedDevice(
        Profile(name="board", transport="address", **{"canary_every": 100, **profile}),
        readings or [],
        error=error or DeviceLost("pulled the plug"),
    )
