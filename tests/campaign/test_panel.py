"""What a query costs: the time of its own arms and its own device."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.core.arm import Arm
from edgeflare.core.query import Query
from edgeflare.core.tensor import RawBatch
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess
from edgeflare.models.evaluator import Evaluator, Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.tasks.classification import ClassDecoder
from laboratory import CLASSES, SIDE, SIGNATURE, Invoke, Laboratory, linear


class Timed:
    """A model that says how long it took, so many seconds for each input."""

    def __init__(self, inner: Evaluator, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds
        self.sizes: list[int] = []

    @property
    def signature(self) -> Signature:
        return SIGNATURE

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        self.sizes.append(len(inputs))
        answer = self._inner.submit(inputs).result()
        future: Future[RawBatch] = Future()
        future.set_result(replace(answer, busy_seconds=self._seconds * len(inputs)))
        return future

    def close(self) -> None:
        self._inner.close()


def timed(invoke: Invoke, seconds: float) -> ArmModel:
    evaluator = Timed(InProcessModel(SIGNATURE, invoke), seconds)
    return ArmModel(
        evaluator,
        ImageEncoder(Preprocess(), SIGNATURE.input),
        ClassDecoder(SIGNATURE.output, "logits"),
    )


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
