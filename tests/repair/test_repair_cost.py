"""Tests of edgeflare.repair.repair_cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from edgeflare.devices.device import Device
from edgeflare.repair import repair_cost
from edgeflare.repair.cost_limits import DEFAULT, latency_limit
from edgeflare.repair.repair_cost import (
    LEAST_SECONDS,
    LEAST_TURNS,
    MOST_SECONDS,
    MOST_TURNS,
    Cost,
    measure,
)


class TimedDevice:
    """A device on which batches take what a test says, and no other time passes.

    Attributes:
        before: seconds of a batch of the first model that is opened, by its number.
        factor: of the second model, over the first.
        opened: models that are open, and `batches` what each was asked.

    """

    profile = SimpleNamespace(name="timed", kernels="builtin", threads=1)

    def __init__(self, before: Callable[[int], float], factor: Callable[[int], float]) -> None:
        self.before, self.factor = before, factor
        self.opened, self.batches, self.now = 0, list[int](), 0.0

    def open_as(self, *_: object) -> Any:
        model, self.opened = self.opened, self.opened + 1
        return SimpleNamespace(submit=partial(self.submit, model), close=lambda: None)

    def submit(self, model: int, _rows: object) -> Any:
        number = len(self.batches)
        seconds = self.before(number) * (self.factor(number) if model else 1.0)
        self.batches.append(model)
        self.now += seconds
        return SimpleNamespace(result=lambda: SimpleNamespace(busy_seconds=seconds))


@pytest.fixture
def cost_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cost]:
    file = tmp_path / "model.tflite"
    file.write_bytes(b"")

    def measured(device: TimedDevice, limit: str = "none") -> Cost:
        monkeypatch.setattr(repair_cost, "monotonic", lambda: device.now)
        rows = np.zeros((1, 2), np.int8)
        return measure(cast("Device", device), file, file, rows, limit=latency_limit(limit))

    return measured


@pytest.mark.parametrize(
    ("seconds", "turns"), [(0.002, round(LEAST_SECONDS / 0.004)), (0.5, LEAST_TURNS)]
)
def test_short_batches_take_more_turns(
    seconds: float, turns: int, cost_of: Callable[..., Cost]
) -> None:
    cost = cost_of(TimedDevice(lambda _: seconds, lambda _: 1.0))
    assert cost.turns == pytest.approx(turns, abs=1)
    assert (cost.ratio_low, cost.ratio, cost.ratio_high) == (1.0, 1.0, 1.0)


def test_drift_of_the_device_cancels(cost_of: Callable[..., Cost]) -> None:
    """It slows down by 4 % a batch: whichever model came second each time would seem slower."""
    device = TimedDevice(lambda number: 0.1 * 1.04**number, lambda _: 1.0)
    cost = cost_of(device, "+3%")
    assert cost.ratio == pytest.approx(1.0, abs=0.002)
    assert {tuple(device.batches[turn : turn + 2]) for turn in range(0, 20, 2)} == {(0, 1), (1, 0)}


def noisy(median: float, spread: float) -> Callable[[int], float]:
    """A ratio about its median, half of the time above it."""
    rng = np.random.default_rng(0)
    return lambda _: float(median * np.exp(rng.normal(0.0, spread)))


@pytest.mark.parametrize(
    ("median", "spread", "exceeds"),
    [(2.9, 0.1, True), (1.08, 0.01, True), (1.08, 0.5, False), (1.0, 0.5, False)],
)
def test_a_limit_is_exceeded_where_the_whole_interval_lies_above(
    median: float, spread: float, *, exceeds: bool, cost_of: Callable[..., Cost]
) -> None:
    limit = latency_limit(DEFAULT)
    assert limit is not None
    cost = cost_of(TimedDevice(lambda _: 0.05, noisy(median, spread)), DEFAULT)
    assert cost.exceeds(limit) is exceeds
    assert cost.ratio_low <= cost.ratio <= cost.ratio_high
    assert cost.turns >= LEAST_TURNS
    undecided = cost.ratio_low < 1.05 < cost.ratio_high
    assert (cost.turns * 0.1 * (1.0 + median) / 2.0 > 0.8 * MOST_SECONDS) is undecided


def test_a_slow_model_is_measured_in_more_turns_where_they_do_not_decide(
    cost_of: Callable[..., Cost],
) -> None:
    slow = [cost_of(TimedDevice(lambda _: 1.0, noisy(ratio, 0.2)), DEFAULT) for ratio in (1.0, 2.9)]
    assert [one.turns for one in slow] == [MOST_TURNS, LEAST_TURNS]
