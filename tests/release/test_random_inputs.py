"""A compressed model alone: inputs that are drawn for it, and what a device makes of them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from called_commands import EXAMPLES
from edgeflare.core.tensor import Tensor
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.random_inputs import PICTURES, drawn_inputs, own_samples, sample_picture
from public_cases import CASES

PICTURE = Tensor("picture", (1, 16, 16, 3), "int8", 0.1, -3)


def test_whole_numbers_with_a_scale_reach_over_all_of_their_type() -> None:
    (drawn,) = drawn_inputs(None, [PICTURE], 20)
    assert drawn.shape == (20, 1, 16, 16, 3)
    assert drawn.dtype == np.int8
    assert drawn.min() == -128
    assert drawn.max() == 127
    (again,) = drawn_inputs(None, [PICTURE], 20)
    assert np.array_equal(drawn, again)


def test_every_second_picture_is_smooth() -> None:
    (drawn,) = drawn_inputs(None, [PICTURE], 20)
    rough = np.abs(np.diff(drawn.astype(float), axis=2)).mean(axis=(1, 2, 3, 4))
    assert rough[::2].max() < 0.5 * rough[1::2].min()


def test_pictures_begin_with_samples_and_then_are_smooth() -> None:
    (drawn,) = drawn_inputs(None, [PICTURE], 2 * PICTURES + 4)
    real = (drawn[:, 0].astype(float) + 128) / 255
    for at in range(PICTURES):
        assert real[2 * at] == pytest.approx(sample_picture(at, 16, 16, 3), abs=0.5 / 255)
    seeds = np.load(EXAMPLES / "face_detection" / "seeds.npz")
    place = list(seeds["names"]).index("chelsea")
    small = cv2.resize(seeds["images"][place], (16, 16), interpolation=cv2.INTER_AREA) / 255
    assert np.abs(sample_picture(0, 16, 16, 3) - small).mean() < 0.1
    assert own_samples([PICTURE], 64) == PICTURES


@pytest.mark.parametrize("channels", [1, 4])
def test_samples_have_as_many_channels_as_are_asked_for(channels: int) -> None:
    one = sample_picture(1, 20, 30, channels)
    assert one.shape == (20, 30, channels)
    assert 0.0 <= one.min() < one.max() <= 1.0


def test_every_second_sound_is_a_sample() -> None:
    wave = Tensor("wave", (1, 16000), "float32")
    (drawn,) = drawn_inputs(None, [wave], 8)
    rough = np.abs(np.diff(drawn[:, 0], axis=1)).mean(axis=1) / drawn[:, 0].std(axis=1)
    assert rough[::2].max() < 0.7 * rough[1::2].min()
    assert drawn.min() >= -1.0
    assert own_samples([wave], 8) == 4
    assert own_samples([Tensor("table", (1, 40), "float32")], 8) == 0


@pytest.mark.parametrize(
    ("tensor", "low", "high"),
    [
        (Tensor("tokens", (1, 8), "int32"), 0, 100),
        (Tensor("flags", (1, 8), "bool"), 0, 1),
        (Tensor("values", (1, 8), "float32"), -1, 1),
    ],
)
def test_other_inputs_are_drawn_by_their_type(tensor: Tensor, low: float, high: float) -> None:
    (drawn,) = drawn_inputs(None, [tensor], 50)
    assert drawn.dtype == tensor.dtype
    assert low <= drawn.min() < drawn.max() <= high


def test_floats_are_drawn_within_what_the_graph_quantizes_them_to() -> None:
    graph = Graph((CASES / "odd_inputs/argmax_inside/compressed.tflite").read_bytes())
    known = graph.tensors[graph.inputs[0]]
    assert known.dtype == "float32"
    (drawn,) = drawn_inputs(graph, [Tensor(known.name, known.shape, known.dtype)], 20)
    assert drawn.min() == pytest.approx(0.0, abs=0.01)
    assert drawn.max() == pytest.approx(1.0, abs=0.01)
