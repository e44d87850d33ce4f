"""While one of several devices cools down or is brought back, the others go on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from documents import Document
from edgeflare.campaign.health import thermometer
from edgeflare.core.arm import Arm
from edgeflare.core.tensor import RawBatch
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from laboratory import SIGNATURE, Laboratory, untimed
from scripted_health import scripted_device
from wrapped_evaluators import WrappedEvaluator, with_outputs

pytestmark = pytest.mark.slow

CALLS_BEFORE = 15
"""Batches that the second device answers before something happens to it: the search has begun."""

PATIENCE_SECONDS = 60.0
"""After which what is waited for will not happen any more."""


@pytest.fixture
def two_devices(laboratory: Laboratory) -> Laboratory:
    plan = replace(laboratory.plan, max_queries=60)
    return replace(laboratory, more_devices=(laboratory.models[Arm.DEVICE],), plan=plan)


def chains_of_the_first(run: Path) -> int:
    """Return how many chains of the first device the journal says have ended."""
    db = sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM chains WHERE seed_id % 2 = 0").fetchone()[0])
    finally:
        db.close()


@dataclass
class OtherDevice:
    """Tells whether the first device has ended all its chains."""

    run: Path
    chains: int
    waited_since: float | None = None
    seen: bool = False
    over: bool = False

    def done(self) -> bool:
        """Whether it has, or will not any more."""
        if self.waited_since is None:
            self.waited_since = time.monotonic()
        if not self.over:
            self.seen = chains_of_the_first(self.run) == self.chains
            self.over = self.seen or time.monotonic() > self.waited_since + PATIENCE_SECONDS
        return self.over

    def wait(self) -> None:
        while not self.done():
            time.sleep(0.01)


def second(wrap: Callable[[Evaluator], Evaluator]) -> Callable[[Evaluator], Evaluator]:
    """Wrap the second device that is made, and leave the first as it is."""
    made: list[Evaluator] = []

    def wrap_device(inner: Evaluator) -> Evaluator:
        made.append(inner)
        return wrap(inner) if len(made) == 2 else inner

    return wrap_device


@dataclass
class HotUntilDone:
    """A device that is hot from some batch on, until the first has ended its chains."""

    profile: Profile
    first: OtherDevice
    counted: WrappedEvaluator | None = None

    def telemetry(self) -> Telemetry:
        begun = self.counted is not None and self.counted.calls >= CALLS_BEFORE
        return Telemetry(temperatures={"cpu": 90.0 if begun and not self.first.done() else 40.0})


def undisturbed(two_devices: Laboratory, disturbed: str) -> tuple[Document, OtherDevice]:
    document = two_devices.run("undisturbed")
    folder = two_devices.folder
    return document, OtherDevice(folder / disturbed, chains_of_the_first(folder / "undisturbed"))


def test_a_device_cools_down_while_the_other_ends_its_chains(
    two_devices: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thermometer, "READ_INTERVAL_SECONDS", 0.01)
    whole, first = undisturbed(two_devices, "hot")
    profile = scripted_device(pause_above_celsius=80.0, canary_every=0).profile
    hot = HotUntilDone(profile, first)

    def wrap(inner: Evaluator) -> Evaluator:
        hot.counted = WrappedEvaluator(inner)
        return hot.counted

    two_devices.monitored = (scripted_device(canary_every=0), hot)
    document = two_devices.run("hot", wrap_device=second(wrap))

    assert first.seen
    assert document["health"][1]["pauses"] == 1
    expected, actual = untimed(whole), untimed(document)
    assert actual == expected


class CanaryWrongOnce(WrappedEvaluator):
    """A device that answers its canary wrongly, once."""

    def __init__(self, inner: Evaluator, canary: NDArray[np.generic]) -> None:
        super().__init__(inner)
        self._canary, self.wrong = canary, 0

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        asked = [row for row, one in enumerate(inputs) if np.array_equal(one, self._canary)]
        answer = super().submit(inputs)
        if not asked or self.wrong or self.calls < CALLS_BEFORE:
            return answer
        self.wrong += 1
        truth = answer.result()
        outputs = truth.outputs.copy()
        outputs[asked] = np.roll(outputs[asked], 1, axis=1)
        return with_outputs(truth, outputs)


def test_a_canary_is_asked_again_while_the_other_device_cools_down(
    two_devices: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thermometer, "READ_INTERVAL_SECONDS", 0.01)
    whole, first = undisturbed(two_devices, "hot")
    hot = HotUntilDone(scripted_device(pause_above_celsius=80.0, canary_every=0).profile, first)
    (canary,) = ImageEncoder(Preprocess(), SIGNATURE.input).encode(two_devices.images[:1])
    made: list[CanaryWrongOnce] = []

    def wrap(inner: Evaluator) -> Evaluator:
        if not made:
            made.append(CanaryWrongOnce(inner, canary))
            return made[0]
        hot.counted = WrappedEvaluator(inner)
        return hot.counted

    two_devices.monitored = (scripted_device(canary_every=20), hot)
    document = two_devices.run("hot", wrap_device=wrap)

    assert made[0].wrong == 1
    assert document["health"][0]["canaries"]["changed"] == 1
    assert first.seen
    assert untimed(document)["findings"] == untimed(whole)["findings"]


def test_a_search_is_stopped_while_one_of_two_devices_cools_down(
    two_devices: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thermometer, "READ_INTERVAL_SECONDS", 0.01)
    whole = two_devices.run("undisturbed")
    hot = HotUntilDone(
        scripted_device(pause_above_celsius=80.0, canary_every=0).profile,
        OtherDevice(two_devices.folder / "stopped", chains=-1),
    )

    def wrap(inner: Evaluator) -> Evaluator:
        hot.counted = WrappedEvaluator(inner)
        return hot.counted

    cool = scripted_device(canary_every=0)
    two_devices.monitored = (cool, hot)
    two_devices.run("stopped", wrap_device=second(wrap), stop_after=whole["totals"]["queries"] // 2)
    assert two_devices.stopped == "interrupt"
    stopped = load_document(RunDirectory(two_devices.folder / "stopped"))
    assert [one.pauses for one in stopped.health or ()] == [0, 1]

    two_devices.monitored = (cool, cool)
    assert untimed(two_devices.run("stopped", resume=True)) == untimed(whole)


def test_a_device_is_brought_back_while_the_other_ends_its_chains(two_devices: Laboratory) -> None:
    whole, first = undisturbed(two_devices, "lost")
    two_devices.bring_back = first.wait

    document = two_devices.run(
        "lost", wrap_device=second(lambda inner: WrappedEvaluator(inner, {CALLS_BEFORE}))
    )

    assert first.seen
    assert two_devices.recovered == [1]
    assert untimed(document) == untimed(whole)


def test_what_the_other_was_asked_is_kept_when_a_device_is_lost_for_good(
    two_devices: Laboratory,
) -> None:
    whole, first = undisturbed(two_devices, "run")

    def give_up() -> None:
        first.wait()
        raise InfrastructureError("board: lost, and not back")

    two_devices.bring_back = give_up
    with pytest.raises(InfrastructureError, match="lost, and not back"):
        two_devices.run(
            "run", wrap_device=second(lambda inner: WrappedEvaluator(inner, {CALLS_BEFORE}))
        )
    assert first.seen
    stopped = load_document(RunDirectory(two_devices.folder / "run"))
    assert stopped.stopped_by == "infrastructure"

    two_devices.bring_back = lambda: None
    assert untimed(two_devices.run("run", resume=True)) == untimed(whole)
