"""The time that models are given grows with their multiplications."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from edgeflare.conform.execution.culprit_search import CulpritSearch
from edgeflare.conform.execution.failure_history import FailureHistory
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.execution.model_pack import ModelPack
from edgeflare.conform.execution.model_work import row_seconds, work_seconds
from edgeflare.conform.execution.pack_groups import PackLimits
from edgeflare.conform.execution.pack_runner import Outcome, PackRunner
from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph
from posed_models import mixed_models


def _convolution(size: int, channels: int) -> PosedModel:
    """Return a 3 × 3 convolution of a square image."""
    weights = np.zeros((channels, 3, 3, channels), np.float32)
    shape = (1, size, size, channels)
    operands = [
        GraphValue("float32", shape),
        GraphValue("float32", weights.shape, values=weights),
        GraphValue("float32", (channels,), values=np.zeros(channels, np.float32)),
    ]
    graph = OperatorGraph.of_operator("CONV_2D", operands, [GraphValue("float32", shape)])
    return PosedModel(graph, (np.zeros((1, *shape), np.float32),))


def test_small_models_are_given_next_to_nothing() -> None:
    assert max(work_seconds(one) for one in mixed_models(40)) < 0.01


@pytest.mark.parametrize(("size", "channels"), [(16, 8), (112, 32), (56, 64)])
def test_a_convolution_is_given_time_for_its_multiplications(size: int, channels: int) -> None:
    multiplications = size * size * 9 * channels * channels
    assert work_seconds(_convolution(size, channels)) == pytest.approx(multiplications / 10e6)


class SeenSeconds:
    """What runs packs: remembers how long each may take, and answers."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def run(self, pack: ModelPack, seconds: float) -> Outcome:
        self.seconds.append(seconds)
        return tuple(ModelAnswer() for _ in pack.models)


def test_models_are_waited_for_as_long_as_their_work_takes() -> None:
    runner, large = SeenSeconds(), _convolution(56, 64)
    search = CulpritSearch(
        cast("PackRunner", runner), FailureHistory(), [large], PackLimits(), patience_seconds=4.0
    )
    search.answers()
    assert runner.seconds == [4.0 + row_seconds([large])]
    assert row_seconds([large]) > work_seconds(large) > 10
