from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome, same_decisions
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.regression import Regression

TENSOR = Tensor("out", (1, 2), "float32")


def classes(*raw: list[float]) -> list[Answer]:
    return list(ClassDecoder(TENSOR, "logits").read(RawBatch(np.array(raw, np.float32))))


def values(*raw: list[float]) -> list[Answer]:
    model = ModelOutputs("m", (TENSOR,), frozenset(), 0, (), lambda _: RawBatch(np.zeros(0)))
    return list(Regression(tolerance=0.5).decoder(model).read(RawBatch(np.array(raw, np.float32))))


def test_decisions_are_the_same_where_no_arm_decides_differently() -> None:
    a, b, c = classes([0, 1], [0, 2], [3, 2])
    assert same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.DEVICE: b}))
    assert not same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.DEVICE: c}))
    assert not same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.TWIN: a}))


@pytest.mark.parametrize(("change", "same"), [(0.25, True), (0.75, False)])
def test_values_are_the_same_within_the_tolerance(change: float, same: bool) -> None:
    a, b = values([0, 1], [0, 1 + change])
    assert same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.DEVICE: b})) == same
