"""What watches over the devices of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeflare.campaign.health.canaries import Canaries
from edgeflare.campaign.health.health_record import HealthRecord, MonitoredDevice, WarningSink
from edgeflare.campaign.health.thermometer import Thermometer
from edgeflare.core.seeds import Seeds
from edgeflare.run.journal import Journal


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """What watches over the devices of a campaign.

    Attributes:
        thermometer: holds up the searches of a device while it is too hot.
        canaries: end it where the answers of a device have changed.
        record: keeps what was seen of each device.

    """

    thermometer: Thermometer
    canaries: Canaries
    record: HealthRecord

    @classmethod
    def of(
        cls,
        devices: Sequence[MonitoredDevice],
        seeds: Seeds,
        journal: Journal,
        sink: WarningSink,
        stopped: Callable[[], bool],
    ) -> DeviceHealth:
        """Watch over devices.

        Args:
            devices: the devices, in their order in the panel; with none, nothing is watched.
            seeds: of the campaign.
            journal: where what was seen is noted.
            sink: is told of pauses and of what looks wrong.
            stopped: whether the user wants to stop; ends a pause.

        """
        record = HealthRecord(devices, journal, sink)
        thermometer = Thermometer(record, stopped)
        return cls(thermometer, Canaries(record, thermometer, journal, seeds), record)
