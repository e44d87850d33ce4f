"""What a campaign does about a device that gets hot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edgeflare.campaign.device_readings import (
    COOLING_SECONDS,
    READ_INTERVAL_SECONDS,
    HealthRecord,
    Thermometer,
)
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.errors import InfrastructureError
from edgeflare.run.run_journal import RunJournal
from scripted_health import ScriptedDevice, scripted_device


class Clock:
    """A clock that moves only while somebody sleeps, and a second with each look at it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class RecordingSink:
    told: list[str] = field(default_factory=list)

    def warned(self, line: str) -> None:
        self.told.append(line)


@dataclass
class Ward:
    """One device under watch."""

    device: ScriptedDevice
    journal: RunJournal
    clock: Clock = field(default_factory=Clock)
    sink: RecordingSink = field(default_factory=RecordingSink)
    stopped: bool = False

    def __post_init__(self) -> None:
        self.thermometer = Thermometer(
            HealthRecord((self.device,), self.journal, self.sink),
            lambda: self.stopped,
            self.clock,
            self.clock.sleep,
        )

    @property
    def seen(self) -> dict[str, Any]:
        (device,) = self.journal.about()["health"]["devices"]
        return dict(device)


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    journal = RunJournal.create(tmp_path / "run.db", {})
    yield journal
    journal.close()


def test_a_hot_device_rests_until_it_is_cool(journal: RunJournal) -> None:
    readings: list[float | None] = [70.0, 81.0, 79.0, 76.0, 75.0, 74.0]
    ward = Ward(scripted_device(readings, pause_above_celsius=80.0), journal)
    ward.thermometer.wait_until_cool()
    assert ward.clock.slept == []
    ward.thermometer.wait_until_cool()  # too early to look again
    assert ward.device.looks == 1
    ward.clock.now += READ_INTERVAL_SECONDS
    ward.thermometer.wait_until_cool()
    assert ward.clock.slept == [READ_INTERVAL_SECONDS] * 3
    assert ward.sink.told == [
        "board is at 81 °C (cpu), above the 80 of its profile: waiting until it is at 75"
    ]
    assert (ward.seen["pauses"], ward.seen["paused_seconds"]) == (1, 3 * READ_INTERVAL_SECONDS)
    assert ward.seen["temperatures_celsius"]["cpu"] == {
        "first": 70,
        "min": 70,
        "max": 81,
        "last": 75,
    }
    assert ward.seen["frequencies_mhz"] == {
        "cpu0": {"first": 1500, "min": 1500, "max": 1500, "last": 1500}
    }


@pytest.mark.parametrize(
    ("zones", "hottest"),
    [
        ({}, "board is at 85 °C (skin)"),
        ({"thermal_zones": ("cpu*", "skin")}, "board is at 85 °C (skin)"),
        ({"thermal_zones": ("cpu*",)}, "board is at 81 °C (cpu0-thermal)"),
        ({"thermal_zones": ("PMIC-*",)}, "board is at 100 °C (PMIC-Die)"),
    ],
)
def test_zones_that_are_no_thermometers_are_left_out(
    zones: dict[str, Any], hottest: str, journal: RunJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Jetson's PMIC-Die always tells 100 °C; a phone's soc is the charge of its battery."""
    told = {"cpu0-thermal": 81.0, "skin": 85.0, "PMIC-Die": 100.0, "soc": 99.0, "lmh-dcvs-00": 98.0}
    board = scripted_device(pause_above_celsius=80.0, **zones)
    monkeypatch.setattr(board, "telemetry", lambda: Telemetry(temperatures=told))
    ward = Ward(board, journal, stopped=True)
    ward.thermometer.wait_until_cool()
    (line,) = ward.sink.told
    assert line.startswith(f"{hottest}, above the 80 of its profile")


def test_a_device_that_stays_hot_ends_the_run(journal: RunJournal) -> None:
    ward = Ward(scripted_device([95.0], pause_above_celsius=80.0), journal)
    with pytest.raises(
        InfrastructureError,
        match=r"^board: still at 95 °C after 30 minutes of rest, where 75 were expected; cool it,"
        r" or raise pause_above_celsius in its profile$",
    ):
        ward.thermometer.wait_until_cool()
    assert sum(ward.clock.slept) == COOLING_SECONDS


def test_a_pause_ends_when_the_user_stops_or_the_device_is_lost(journal: RunJournal) -> None:
    lost = Ward(scripted_device([95.0, None], pause_above_celsius=80.0), journal)
    lost.thermometer.wait_until_cool()
    assert len(lost.clock.slept) == 1
    stopped = Ward(scripted_device([95.0], pause_above_celsius=80.0), journal, stopped=True)
    stopped.thermometer.wait_until_cool()
    assert stopped.clock.slept == []


def test_a_limit_that_has_no_effect_is_told(
    journal: RunJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = scripted_device(pause_above_celsius=80.0)
    monkeypatch.setattr(mute, "telemetry", Telemetry)
    ward = Ward(mute, journal)
    for _ in range(3):
        ward.clock.now += READ_INTERVAL_SECONDS
        ward.thermometer.wait_until_cool()
    assert ward.sink.told == [
        "board does not tell its temperature, so that pause_above_celsius = 80 has no effect"
    ]


def test_a_device_that_does_not_answer_is_not_said_to_tell_nothing(journal: RunJournal) -> None:
    """It was lost, or its agent refuses; whoever asks it next finds out and gets it back."""
    for error in (DeviceLost("pulled the plug"), InfrastructureError("refuses")):
        ward = Ward(scripted_device([None], pause_above_celsius=80.0, error=error), journal)
        ward.thermometer.wait_until_cool()
        ward.thermometer.read_all()
        assert ward.sink.told == []


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A folder from which an agent reads its thermometer, as it does from the root of a board."""
    zone = tmp_path / "board" / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("soc-thermal\n")
    (zone / "temp").write_text("85000\n")
    return tmp_path / "board"


@pytest.fixture
def address(system: Path) -> Iterator[str]:
    """Where a real agent listens, which reads that thermometer."""
    words = ["--store", str(system / "store"), "--system-root", str(system), "--exit-with-stdin"]
    command = [sys.executable, "-m", "edgeflare_agent", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        yield f"127.0.0.1:{json.loads(agent.stdout.readline())['port']}"
        agent.terminate()


def test_a_real_agent_tells_its_temperature_and_is_waited_for(
    system: Path, address: str, journal: RunJournal
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        (system / "sys/class/thermal/thermal_zone0/temp").write_text(f"{85 - 4 * len(slept)}000\n")

    profile = Profile(name="board", transport="address", address=address, pause_above_celsius=80.0)
    with connect(profile) as device:
        sink = RecordingSink()
        record = HealthRecord((device,), journal, sink)
        Thermometer(record, lambda: False, sleep=sleep).wait_until_cool()
    assert len(slept) == 3  # 81, 77, 73
    assert sink.told == [
        "board is at 85 °C (soc-thermal), above the 80 of its profile: waiting until it is at 75"
    ]
    (seen,) = journal.about()["health"]["devices"]
    assert seen["temperatures_celsius"] == {
        "soc-thermal": {"first": 85, "min": 73, "max": 85, "last": 73}
    }
