"""Which values an operator's output can have."""

from __future__ import annotations

import numpy as np

from edgeflare.diagnose.explained_error import clipped
from edgeflare.models.tflite_graph import GraphTensor


def test_values_are_clipped_to_the_range_of_their_own_channel() -> None:
    tensor = GraphTensor(0, "", (1, 2), "int8", (0.01, 1.0), (0, -128), 1, constant=False)
    assert clipped(tensor, np.array([[9.0, 9.0]])).tolist() == [[1.27, 9.0]]
    assert clipped(tensor, np.array([[-9.0, -9.0]])).tolist() == [[-1.28, 0.0]]
