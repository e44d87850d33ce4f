"""Tests of edgeflare.repair.repair_cost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from edgeflare.devices.device import Device
from edgeflare.repair import repair_cost
from edgeflare.repair.repair_cost import BATCHES, LEAST_SECONDS, measure


class SteadyDevice:
    """A device on which every batch takes as long as the clock says."""

    profile = SimpleNamespace(name="steady", kernels="builtin", threads=1)

    def __init__(self, seconds: float) -> None:
        self.seconds, self.batches = seconds, 0

    def open_as(self, *_: object) -> Any:
        return SimpleNamespace(submit=self.submit, close=lambda: None)

    def submit(self, _rows: object) -> Any:
        self.batches += 1
        return SimpleNamespace(result=lambda: SimpleNamespace(busy_seconds=self.seconds))


@pytest.mark.parametrize(
    ("seconds", "batches"), [(0.002, 2 * round(LEAST_SECONDS / 0.004)), (0.5, 2 * (BATCHES + 1))]
)
def test_short_batches_take_more_turns(
    seconds: float, batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.tflite").write_bytes(b"")
    device = SteadyDevice(seconds)
    monkeypatch.setattr(repair_cost, "monotonic", lambda: device.batches * seconds)
    file = tmp_path / "model.tflite"
    cost = measure(cast("Device", device), file, file, np.zeros((1, 2), np.int8))
    assert device.batches == pytest.approx(batches, abs=2)
    assert cost.ratio == 1.0
