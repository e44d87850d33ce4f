"""Several devices share the seeds out by index, and each finding is its own device's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgeflare.core.arm import Arm
from edgeflare.models.evaluator import Evaluator
from laboratory import CLASSES, SIDE, Invoke, Laboratory, linear, untimed
from wrapped_evaluators import WrappedEvaluator

pytestmark = pytest.mark.slow


@pytest.fixture
def other_device() -> Invoke:
    rng = np.random.default_rng(8)
    return linear(rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32), 0.5)


def findings(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    entries = (*document["findings"], *document["deviating_seeds"])
    left_out = ("seconds", "device", "image", "seed_image")
    return {
        entry["seed_id"]: {key: entry[key] for key in entry if key not in left_out}
        for entry in entries
    }


@pytest.mark.parametrize("chains", [1, 5, 256])
def test_each_seed_is_searched_as_if_its_device_were_alone(
    laboratory: Laboratory, other_device: Invoke, chains: int
) -> None:
    first = laboratory.run("first")
    other = replace(laboratory, models={**laboratory.models, Arm.DEVICE: other_device})
    second = other.run("second")

    both = replace(laboratory, more_devices=(other_device,)).run("both", chains=chains)

    expected = {
        **{i: entry for i, entry in findings(first).items() if i % 2 == 0},
        **{i: entry for i, entry in findings(second).items() if i % 2 == 1},
    }
    assert findings(both) == expected
    assert findings(first) != findings(second)  # else nothing was told apart
    for entry in (*both["findings"], *both["deviating_seeds"]):
        assert entry["device"] == f"laboratory {entry['seed_id'] % 2}"


def test_only_the_device_that_was_lost_is_brought_back(
    laboratory: Laboratory, other_device: Invoke
) -> None:
    both = replace(laboratory, more_devices=(other_device,))
    whole = both.run("whole")
    made: list[WrappedEvaluator] = []

    def wrap(inner: Evaluator) -> Evaluator:
        made.append(WrappedEvaluator(inner, {3, 9} if made else set()))  # the second of them alone
        return made[-1]

    cut = both.run("cut", wrap_device=wrap)

    assert untimed(cut) == untimed(whole)
    assert both.recovered == [1, 1]
    assert min(device.calls for device in made) > 9
