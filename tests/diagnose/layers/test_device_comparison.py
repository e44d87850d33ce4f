"""How far two states of a model are apart."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.diagnose.layers.device_comparison import WHOLE_DB, far_apart
from edgeflare.models.tflite_graph import Graph
from tampering import ORIGINAL


@pytest.mark.parametrize(
    ("got", "far"), [(1.0, False), (1.1, False), (2.0, True), (np.nan, True), (np.inf, True)]
)
def test_what_is_far_apart_is_noisy_or_not_finite_in_one_alone(got: float, far: bool) -> None:
    graph = Graph(ORIGINAL.read_bytes())
    (output,) = graph.layers[-1].outputs
    wanted = np.ones((1, 10), np.float32)
    state = {output: wanted}
    assert far_apart(graph, state, {output: wanted * np.float32(got)}, WHOLE_DB) == far
