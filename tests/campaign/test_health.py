"""What a campaign does about a device that changes its mind, or gets hot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.campaign import health
from edgeflare.campaign.health import Health
from edgeflare.campaign.journal import Journal
from edgeflare.campaign.run_directory import RunDirectory
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluation import Evaluator, RawBatch, Signature
from edgeflare.models.preprocess import Encoder, Preprocess
from edgeflare.report.document import load_document
from laboratory import SIGNATURE, Laboratory, untimed


@dataclass
class Patient:
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


def patient(
    readings: list[float | None] | None = None,
    error: InfrastructureError | None = None,
    **profile: Any,
) -> Patient:
    return Patient(
        Profile(name="board", transport="address", **{"canary_every": 100, **profile}),
        readings or [],
        error=error or DeviceLost("pulled the plug"),
    )


class Forger:
    """A device that answers the canary as it is told from its n-th canary on, and else truly."""

    def __init__(
        self,
        inner: Evaluator,
        canary: NDArray[np.generic],
        changes: dict[int, float],
        before: int,
    ) -> None:
        self._inner, self._canary, self._changes = inner, canary, changes
        self.canaries = before  # -1 where it is asked as a seed first

    @property
    def signature(self) -> Signature:
        return SIGNATURE

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        truth = self._inner.submit(inputs).result()
        outputs = truth.outputs.copy()
        for row, image in enumerate(inputs):
            if np.array_equal(image, self._canary):
                self.canaries += 1
                outputs[row] = self._forged(outputs[row])
        answer: Future[RawBatch] = Future()
        answer.set_result(RawBatch(outputs, truth.failures))
        return answer

    def close(self) -> None:
        self._inner.close()

    def _forged(self, scores: NDArray[np.generic]) -> NDArray[np.generic]:
        amount = self._changes.get(self.canaries, self._changes.get(-1, 0.0))
        if self.canaries < 1 or not amount:
            return scores
        moved: NDArray[np.generic] = scores.astype(np.float32) + np.float32(amount)
        return moved if amount < 1 else np.roll(scores, 1)


def forger(laboratory: Laboratory, changes: dict[int, float], *, screened: bool = True) -> Any:
    """Wrap devices so that the canary's answer changes: below 1 its scores, from 1 on its label.

    Keys are the how-manieth canary; -1 stands for all others.
    """
    (first,) = Encoder(Preprocess(), SIGNATURE.input).encode(laboratory.images[:1])
    return lambda inner: Forger(inner, first, changes, -1 if screened else 0)


@pytest.mark.parametrize("chains", [1, 16, 512])
def test_canaries_are_asked_as_often_as_the_profile_says_and_change_nothing(
    laboratory: Laboratory, chains: int
) -> None:
    without = laboratory.run("without", chains=chains)
    laboratory.patients = (patient(),)
    document = laboratory.run("with", chains=chains)
    asked = document["totals"]["device_queries"] // 100
    assert asked > 10
    assert document["health"][0]["canaries"] == {"same": asked}
    for key in ("overhead_queries", "overhead_device_queries"):
        assert document["totals"][key] == without["totals"][key] + asked
        document["totals"][key] = without["totals"][key]
    assert untimed(document) == untimed(without)


def test_a_run_that_was_stopped_asks_no_canary_twice(laboratory: Laboratory) -> None:
    laboratory.patients = (patient(),)
    whole = laboratory.run("whole")
    for stop_after in (150, 420, 777, None):
        parts = laboratory.run("parts", resume=stop_after != 150, stop_after=stop_after)
    assert untimed(parts) == untimed(whole)
    assert parts["health"][0]["canaries"] == whole["health"][0]["canaries"]


def test_refining_asks_canaries_too(laboratory: Laboratory) -> None:
    laboratory.patients = (patient(canary_every=20),)
    whole = laboratory.run("whole", shrink=60)
    refined = sum(one["refined"]["device_queries"] for one in whole["findings"])
    assert refined > 3 * 20
    asked = (whole["totals"]["device_queries"] + refined) // 20
    assert whole["health"][0]["canaries"] == {"same": asked}

    laboratory.run("parts", stop_after=500, shrink=60)
    parts = laboratory.run("parts", resume=True, shrink=60)
    assert untimed(parts) == untimed(whole)
    assert parts["health"][0]["canaries"] == {"same": asked}


def test_a_device_that_changes_its_mind_while_findings_are_refined_ends_the_run(
    laboratory: Laboratory,
) -> None:
    laboratory.patients = (patient(canary_every=20),)
    searched = laboratory.run("searched")["totals"]["device_queries"] // 20
    changed = forger(laboratory, dict.fromkeys(range(searched + 2, 10**4), 1.0))
    with pytest.raises(InfrastructureError, match="its answer to seed 0 has changed"):
        laboratory.run("run", shrink=60, wrap_device=changed)


def test_none_are_asked_where_the_profile_says_0(laboratory: Laboratory) -> None:
    laboratory.patients = (patient(canary_every=0),)
    assert laboratory.run("run")["health"][0]["canaries"] == {}


def test_an_answer_that_has_changed_for_good_ends_the_run_and_is_looked_at_on_resume(
    laboratory: Laboratory,
) -> None:
    laboratory.patients = (patient(),)
    whole = laboratory.run("whole")
    drifted = forger(laboratory, {**dict.fromkeys(range(1, 4), 0.0), -1: 1.0})
    with pytest.raises(
        InfrastructureError,
        match=r"^board: its answer to seed 0 has changed from class \d to class \d, somewhere after"
        r" 300 device queries: what it answered since then is not to be trusted",
    ):
        laboratory.run("run", wrap_device=drifted)
    document = load_document(RunDirectory(laboratory.folder / "run"))
    assert document["stopped_by"] == "infrastructure"
    assert document["health"][0]["failed"]
    assert document["findings"] == []  # nothing is verified on such a device
    assert any("is not to be trusted" in line for line in document["warnings"])

    with pytest.raises(InfrastructureError, match="after 300 device queries"):
        laboratory.run(
            "run", wrap_device=forger(laboratory, {-1: 1.0}, screened=False), resume=True
        )

    cured = laboratory.run("run", resume=True)
    assert not cured["health"][0]["failed"]
    assert untimed(cured)["findings"] == untimed(whole)["findings"]


def test_an_answer_that_changes_once_is_told_and_survived(laboratory: Laboratory) -> None:
    laboratory.patients = (patient(),)
    document = laboratory.run("run", wrap_device=forger(laboratory, {3: 1.0}))
    (warning,) = [line for line in document["warnings"] if "canary" in line]
    assert warning.startswith("board answered its canary, seed 0, with class ")
    assert warning.endswith(" once, and rightly when asked again")
    assert document["health"][0]["canaries"]["changed"] == 1
    assert document["stopped_by"] is None


def test_outputs_that_vary_under_the_same_label_are_told_once(laboratory: Laboratory) -> None:
    laboratory.patients = (patient(),)
    document = laboratory.run("run", wrap_device=forger(laboratory, {-1: 0.25}))
    assert [line for line in document["warnings"] if "to the bit" in line] == [
        "board does not repeat its answers to the bit: the label of its canary, seed 0, held, and"
        " its outputs varied"
    ]
    assert document["health"][0]["canaries"]["varied"] > 10


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
class Nurse:
    told: list[str] = field(default_factory=list)

    def warned(self, line: str) -> None:
        self.told.append(line)


@dataclass
class Ward:
    """One device under watch."""

    patient: Patient
    journal: Journal
    clock: Clock = field(default_factory=Clock)
    nurse: Nurse = field(default_factory=Nurse)
    stopped: bool = False

    def __post_init__(self) -> None:
        self.health = Health(
            (self.patient,),
            self.journal,
            self.nurse,
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
    journal = Journal.create(tmp_path / "run.db", {})
    yield journal
    journal.close()


def test_a_hot_device_rests_until_it_is_cool(journal: Journal) -> None:
    ward = Ward(patient([70.0, 81.0, 79.0, 76.0, 75.0, 74.0], pause_above_celsius=80.0), journal)
    ward.health.breathe()
    assert ward.clock.slept == []
    ward.health.breathe()  # too early to look again
    assert ward.patient.looks == 1
    ward.clock.now += health.LOOK_SECONDS
    ward.health.breathe()
    assert ward.clock.slept == [health.LOOK_SECONDS] * 3
    assert ward.nurse.told == [
        "board is at 81 °C (cpu), above the 80 of its profile: waiting until it is at 75"
    ]
    assert (ward.seen["pauses"], ward.seen["paused_seconds"]) == (1, 3 * health.LOOK_SECONDS)
    assert ward.seen["temperatures"]["cpu"] == {"first": 70, "min": 70, "max": 81, "last": 75}
    assert ward.seen["frequencies"] == {
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
    zones: dict[str, Any], hottest: str, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Jetson's PMIC-Die always tells 100 °C; a phone's soc is the charge of its battery."""
    told = {"cpu0-thermal": 81.0, "skin": 85.0, "PMIC-Die": 100.0, "soc": 99.0, "lmh-dcvs-00": 98.0}
    board = patient(pause_above_celsius=80.0, **zones)
    monkeypatch.setattr(board, "telemetry", lambda: Telemetry(temperatures=told))
    ward = Ward(board, journal, stopped=True)
    ward.health.breathe()
    (line,) = ward.nurse.told
    assert line.startswith(f"{hottest}, above the 80 of its profile")


def test_a_device_that_stays_hot_ends_the_run(journal: Journal) -> None:
    ward = Ward(patient([95.0], pause_above_celsius=80.0), journal)
    with pytest.raises(
        InfrastructureError,
        match=r"^board: still at 95 °C after 30 minutes of rest, where 75 were expected; cool it,"
        r" or raise pause_above_celsius in its profile$",
    ):
        ward.health.breathe()
    assert sum(ward.clock.slept) == health.COOLING_SECONDS


def test_a_pause_ends_when_the_user_stops_or_the_device_is_lost(journal: Journal) -> None:
    lost = Ward(patient([95.0, None], pause_above_celsius=80.0), journal)
    lost.health.breathe()
    assert len(lost.clock.slept) == 1
    stopped = Ward(patient([95.0], pause_above_celsius=80.0), journal, stopped=True)
    stopped.health.breathe()
    assert stopped.clock.slept == []


def test_a_limit_that_has_no_effect_is_told(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = patient(pause_above_celsius=80.0)
    monkeypatch.setattr(mute, "telemetry", Telemetry)
    ward = Ward(mute, journal)
    for _ in range(3):
        ward.clock.now += health.LOOK_SECONDS
        ward.health.breathe()
    assert ward.nurse.told == [
        "board does not tell its temperature, so that pause_above_celsius = 80 has no effect"
    ]


def test_a_device_that_does_not_answer_is_not_said_to_tell_nothing(journal: Journal) -> None:
    """It was lost, or its agent refuses; whoever asks it next finds out and gets it back."""
    for error in (DeviceLost("pulled the plug"), InfrastructureError("refuses")):
        ward = Ward(patient([None], pause_above_celsius=80.0, error=error), journal)
        ward.health.breathe()
        ward.health.look()
        assert ward.nurse.told == []


class Board:
    """A real agent that reads its thermometer from a folder of ours."""

    def __init__(self, folder: Path) -> None:
        zone = folder / "sys/class/thermal/thermal_zone0"
        zone.mkdir(parents=True)
        (zone / "type").write_text("soc-thermal\n")
        self._thermometer = zone / "temp"
        self.show(85.0)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "edgeflare_agent", "--store", str(folder / "store")),
                *("--system-root", str(folder), "--exit-with-stdin"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.address = f"127.0.0.1:{json.loads(self.process.stdout.readline())['port']}"

    def show(self, celsius: float) -> None:
        self._thermometer.write_text(f"{celsius * 1000:.0f}\n")


@pytest.fixture
def real_board(tmp_path: Path) -> Iterator[Board]:
    board = Board(tmp_path / "board")
    with board.process:
        yield board
        board.process.terminate()


def test_a_real_agent_tells_its_temperature_and_is_waited_for(
    real_board: Board, journal: Journal
) -> None:
    profile = Profile(
        name="board", transport="address", address=real_board.address, pause_above_celsius=80.0
    )
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        real_board.show(85.0 - 4 * len(slept))

    with connect(profile) as device:
        nurse = Nurse()
        Health((device,), journal, nurse, lambda: False, sleep=sleep).breathe()
    assert len(slept) == 3  # 81, 77, 73
    assert nurse.told == [
        "board is at 85 °C (soc-thermal), above the 80 of its profile: waiting until it is at 75"
    ]
    (seen,) = journal.about()["health"]["devices"]
    assert seen["temperatures"] == {"soc-thermal": {"first": 85, "min": 73, "max": 85, "last": 73}}
