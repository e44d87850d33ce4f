"""Several devices: the seeds that each has, what its answers cost, and who waits for whom."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from documents import Document
from edgeflare.campaign import device_readings
from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.core.query import Arm, Query
from edgeflare.core.tensor import RawBatch
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.in_process import InProcessModel
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.tasks.classification import ClassDecoder
from laboratory import CLASSES, SIDE, SIGNATURE, Invoke, Laboratory, linear, untimed
from scripted_health import scripted_device
from wrapped_evaluators import Altered, Late, WrappedEvaluator


@pytest.fixture
def other_device() -> Invoke:
    rng = np.random.default_rng(8)
    return linear(rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32), 0.5)


def findings(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    entries = (*document["findings"], *document["deviating_seeds"])
    left_out = ("seconds", "device", "file", "seed_file")
    return {
        entry["seed_id"]: {key: entry[key] for key in entry if key not in left_out}
        for entry in entries
    }


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 256])
def test_each_seed_is_searched_as_if_its_device_were_alone(
    laboratory: Laboratory, other_device: Invoke, chains: int
) -> None:
    first = laboratory.run("first")
    other = replace(laboratory, models={**laboratory.models, Arm.DEVICE: other_device})
    second = other.run("second")

    shared = replace(laboratory, more_devices=(other_device,))
    both = shared.run("both", chains=chains, wrap_device=Late)

    expected = {
        **{i: entry for i, entry in findings(first).items() if i % 2 == 0},
        **{i: entry for i, entry in findings(second).items() if i % 2 == 1},
    }
    assert findings(both) == expected
    assert findings(first) != findings(second)  # else nothing was told apart
    for entry in (*both["findings"], *both["deviating_seeds"]):
        assert entry["device"] == f"laboratory {entry['seed_id'] % 2}"


class Timed(WrappedEvaluator):
    """A model that says how long it took, so many seconds for each input."""

    def __init__(self, inner: Evaluator, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds
        self.sizes: list[int] = []

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        self.sizes.append(len(inputs))
        answer = super().submit(inputs).result()
        future: Future[RawBatch] = Future()
        future.set_result(replace(answer, busy_seconds=self._seconds * len(inputs)))
        return future


def timed(invoke: Invoke, seconds: float) -> ArmModel:
    evaluator = Timed(InProcessModel(SIGNATURE, invoke), seconds)
    encoder = ImageEncoder(Preprocess(), SIGNATURE.input)
    return ArmModel(evaluator, encoder, ClassDecoder((SIGNATURE.output,), 0, "logits"))


def test_each_query_costs_what_its_own_arms_and_its_own_device_took() -> None:
    model = linear(np.ones((SIDE * SIDE, CLASSES), np.float32))
    twin, quick, slow = (timed(model, seconds) for seconds in (1.0, 10.0, 100.0))
    panel = Panel({Arm.TWIN: twin}, [quick, slow])
    image = np.zeros((SIDE, SIDE, 1), np.uint8)
    both, alone = Query(image, (Arm.TWIN, Arm.DEVICE)), Query(image, (Arm.TWIN,))
    pipeline: Pipeline[None] = Pipeline(panel, lambda _: None, lambda: None)
    with closing(twin.evaluator), closing(quick.evaluator), closing(slow.evaluator):
        pipeline.put(None, [alone, both, both, both], [0, 0, 1, 3])
        landed = pipeline.take()
    assert [one.seconds for one in landed.evaluated] == pytest.approx([1.0, 11.0, 101.0, 101.0])
    assert landed.mean_seconds == pytest.approx(53.5)
    assert landed.device_busy_seconds == pytest.approx(210.0)


@pytest.mark.parametrize("devices", [1, 3])
def test_a_batch_grows_with_the_devices_that_share_it(laboratory: Laboratory, devices: int) -> None:
    laboratory.images = np.concatenate([laboratory.images] * 6)
    laboratory.more_devices = (laboratory.models[Arm.DEVICE],) * (devices - 1)
    made: list[Timed] = []

    def wrap(inner: Evaluator) -> Evaluator:
        made.append(Timed(inner, 0.04))
        return made[-1]

    laboratory.run("run", chains=128, wrap_device=wrap, max_queries=40)
    # Six of them fit into the quarter of a second that a batch takes on a device.
    assert 5 <= median(made[0].sizes[len(made[0].sizes) // 3 : -20]) <= 6


CALLS_BEFORE = 15
"""Batches that the second device answers before something happens to it: the search has begun."""

PATIENCE_SECONDS = 60.0
"""After which what is waited for will not happen any more."""


@pytest.fixture
def two_devices(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    monkeypatch.setattr(device_readings, "READ_INTERVAL_SECONDS", 0.01)
    plan = replace(laboratory.plan, max_queries=60)
    return replace(laboratory, more_devices=(laboratory.models[Arm.DEVICE],), plan=plan)


def chains_of_the_first(run: Path) -> int:
    """Return how many chains of the first device the journal says have ended."""
    with closing(sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM chains WHERE seed_id % 2 = 0").fetchone()[0])


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

    first: OtherDevice
    profile: Profile = scripted_device(pause_above_celsius=80.0, canary_every=0).profile
    counted: WrappedEvaluator | None = None

    def telemetry(self) -> Telemetry:
        begun = self.counted is not None and self.counted.calls >= CALLS_BEFORE
        return Telemetry(temperatures={"cpu": 90.0 if begun and not self.first.done() else 40.0})

    def wrap(self, inner: Evaluator) -> WrappedEvaluator:
        """Have the device that answers so."""
        self.counted = WrappedEvaluator(inner)
        return self.counted


def undisturbed(two_devices: Laboratory, disturbed: str) -> tuple[Document, OtherDevice]:
    document = two_devices.run("undisturbed")
    folder = two_devices.folder
    return document, OtherDevice(folder / disturbed, chains_of_the_first(folder / "undisturbed"))


@pytest.mark.slow
def test_a_device_cools_down_while_the_other_ends_its_chains(two_devices: Laboratory) -> None:
    whole, first = undisturbed(two_devices, "hot")
    hot = HotUntilDone(first)
    two_devices.monitored = (scripted_device(canary_every=0), hot)
    document = two_devices.run("hot", wrap_device=second(hot.wrap))

    assert first.seen
    assert document["health"][1]["pauses"] == 1
    assert untimed(document) == untimed(whole)


def test_a_canary_is_asked_again_while_the_other_device_cools_down(two_devices: Laboratory) -> None:
    whole, first = undisturbed(two_devices, "hot")
    hot = HotUntilDone(first)
    (canary,) = ImageEncoder(Preprocess(), SIGNATURE.input).encode(two_devices.images[:1])
    made: list[WrappedEvaluator] = []
    wrong: list[int] = []

    def wrong_once(one: NDArray[np.generic], scores: NDArray[np.generic]) -> NDArray[np.generic]:
        if not np.array_equal(one, canary) or wrong or made[0].calls < CALLS_BEFORE:
            return scores
        wrong.append(made[0].calls)
        return np.roll(scores, 1)

    def wrap(inner: Evaluator) -> Evaluator:
        made.append(hot.wrap(inner) if made else Altered(inner, wrong_once))
        return made[-1]

    two_devices.monitored = (scripted_device(canary_every=20), hot)
    document = two_devices.run("hot", wrap_device=wrap)

    assert wrong
    assert document["health"][0]["canaries"]["changed"] == 1
    assert first.seen
    assert untimed(document)["findings"] == untimed(whole)["findings"]


@pytest.mark.slow
def test_a_search_is_stopped_while_one_of_two_devices_cools_down(two_devices: Laboratory) -> None:
    whole = two_devices.run("undisturbed")
    hot = HotUntilDone(OtherDevice(two_devices.folder / "stopped", chains=-1))
    cool = scripted_device(canary_every=0)
    two_devices.monitored = (cool, hot)
    half = whole["totals"]["queries"] // 2
    two_devices.run("stopped", wrap_device=second(hot.wrap), stop_after=half)
    assert two_devices.stopped == "interrupt"
    stopped = load_document(RunDirectory(two_devices.folder / "stopped"))
    assert [one.pauses for one in stopped.health or ()] == [0, 1]

    two_devices.monitored = (cool, cool)
    assert untimed(two_devices.run("stopped", resume=True)) == untimed(whole)


def lost(inner: Evaluator) -> Evaluator:
    return WrappedEvaluator(inner, {CALLS_BEFORE})


@pytest.mark.slow
def test_a_device_is_brought_back_while_the_other_ends_its_chains(two_devices: Laboratory) -> None:
    whole, first = undisturbed(two_devices, "lost")
    two_devices.bring_back = first.wait

    document = two_devices.run("lost", wrap_device=second(lost))

    assert first.seen
    assert two_devices.recovered == [1]
    assert untimed(document) == untimed(whole)


@pytest.mark.slow
def test_what_the_other_was_asked_is_kept_when_a_device_is_lost_for_good(
    two_devices: Laboratory,
) -> None:
    whole, first = undisturbed(two_devices, "run")

    def give_up() -> None:
        first.wait()
        raise InfrastructureError("board: lost, and not back")

    two_devices.bring_back = give_up
    with pytest.raises(InfrastructureError, match="lost, and not back"):
        two_devices.run("run", wrap_device=second(lost))
    assert first.seen
    stopped = load_document(RunDirectory(two_devices.folder / "run"))
    assert stopped.stopped_by == "infrastructure"

    two_devices.bring_back = lambda: None
    assert untimed(two_devices.run("run", resume=True)) == untimed(whole)
