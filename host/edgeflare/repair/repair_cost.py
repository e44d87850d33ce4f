"""What the appended part costs on the device: bytes, and time for one inference."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.device import Device

BATCHES = 30
"""Of each model in turn, so that whatever else the device does falls on both."""

BATCH = 64


@dataclass(frozen=True, slots=True)
class Cost:
    """A model beside the same one repaired, on a device.

    Attributes:
        device: its name.
        bytes_before: size of the file.
        bytes_after: the same of the repaired one.
        seconds_before: of one inference in a batch of 64, the median of 30 batches.
        seconds_after: the same of the repaired one.
        ratio: of the two, the median over batches of both models one after the other.

    """

    device: str
    bytes_before: int
    bytes_after: int
    seconds_before: float
    seconds_after: float
    ratio: float


def measure(device: Device, before: Path, after: Path, inputs: NDArray[np.generic]) -> Cost:
    """Measure both models on a device.

    Args:
        device: where.
        before: the compressed model.
        after: the same one, repaired.
        inputs: (batch, …) encoded inputs, at least one.

    Raises:
        UserError: the device refuses one of them.
        InfrastructureError: the device fails.

    """
    rows = np.arange(BATCH) % len(inputs)
    profile = device.profile
    with (
        closing(device.open_as(before, profile.kernels, profile.threads)) as first,
        closing(device.open_as(after, profile.kernels, profile.threads)) as second,
    ):
        times = [
            tuple(
                session.submit(inputs[rows]).result().busy_seconds / BATCH
                for session in (first, second)
            )
            for _ in range(BATCHES + 1)
        ][1:]  # the first of each warms up
    return Cost(
        profile.name,
        before.stat().st_size,
        after.stat().st_size,
        median(one for one, _ in times),
        median(other for _, other in times),
        median(other / one for one, other in times),
    )


def outputs_on(device: Device, model: Path, inputs: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the raw outputs that a model gives on a device: (batch, classes).

    Raises:
        UserError: the device refuses it.
        InfrastructureError: the device fails.

    """
    profile = device.profile
    with closing(device.open_as(model, profile.kernels, profile.threads)) as session:
        outputs = session.submit(inputs).result().outputs
    raw: NDArray[np.generic] = outputs.reshape(len(inputs), -1)
    return raw
