"""Which layers a device shows as something else than what it computes from."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from edgeflare.diagnose.hidden_layers import hidden_layers
from edgeflare.diagnose.layer_difference import Difference
from edgeflare.models.tflite_graph import Graph

MODEL = Path(__file__).parents[2] / "examples" / "fashion_lenet4" / "original.tflite"
ALIKE = Difference(
    max_error_steps=None, max_error=0.0, cosine=1.0, snr_db=None, rmse=0.0, parted=False
)
APART = Difference(
    max_error_steps=None, max_error=9.0, cosine=0.0, snr_db=-9.0, rmse=9.0, parted=True
)


@pytest.mark.parametrize(
    ("apart", "follows", "hidden"),
    [
        ((), (), ()),
        # What is shown is garbage, also of the layer behind it; those behind are as the twin's.
        ((0, 1), (1,), (0, 1)),
        ((1,), (), (1,)),
        # The layer behind takes the difference away, as a ReLU or a rounding does.
        ((1,), (2,), ()),
        ((1, 2, 3, 4), (2, 3, 4, 5), ()),
    ],
)
def test_a_layer_whose_readers_do_not_know_of_its_difference_is_hidden(
    apart: Collection[int], follows: Collection[int], hidden: tuple[int, ...]
) -> None:
    graph = Graph(MODEL.read_bytes())
    layers = [one.index for one in graph.layers]
    totals = {index: APART if at in apart else ALIKE for at, index in enumerate(layers)}
    own = dict.fromkeys(layers, ALIKE)
    found = hidden_layers(graph, totals, own, lambda: {layers[at] for at in follows})
    assert found == tuple(layers[at] for at in hidden)
