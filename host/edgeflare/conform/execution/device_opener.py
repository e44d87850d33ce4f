"""A device as what loads files of models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

from edgeflare.conform.execution.model_opener import LoadRefused
from edgeflare.devices.device import Device
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import UserError
from edgeflare.untrusted_text import printable


@dataclass(frozen=True, slots=True)
class DeviceOpener:
    """Loads files into worker processes of a device's agent, as its profile says.

    Attributes:
        device: connected; its owner closes it.
        stopped: whether the user does not want to wait for a lost device any longer.
        most_input_seconds: what is enough for small models, where the profile allows more.

    """

    device: Device
    stopped: Callable[[], bool] = lambda: False
    most_input_seconds: float = inf

    @property
    def name(self) -> str:
        """The name of a device among what runs models."""
        return "device"

    @property
    def payload_limit_bytes(self) -> int:
        """What one message to its agent may carry."""
        return self.device.payload_limit_bytes

    @property
    def input_seconds(self) -> float:
        """What its profile allows, or less."""
        return min(self.device.profile.input_timeout_seconds, self.most_input_seconds)

    def open(self, path: Path) -> DeviceSession:
        """Load a file; see `ModelOpener`."""
        profile = self.device.profile
        try:
            # Not as a session that the device keeps: hundreds come and go, and none comes back.
            return self.device.open_as(path, profile.kernels, profile.threads)
        except UserError as error:
            told = str(error).removeprefix(f"{path}: ").removeprefix(f"{profile.name}: ")
            raise LoadRefused(printable(told)) from error

    def recover(self) -> None:
        """Bring the device back; see `ModelOpener`."""
        self.device.reopen(self.stopped)
