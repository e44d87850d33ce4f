"""The built-in hypotheses, on inputs of which the answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.inspect.built_in_hypotheses import (
    BUILT_IN_NAMES,
    built_in_hypotheses,
    commonest_pair,
    high_frequencies,
    top_pair,
)
from edgeflare.hypothesis import InspectedInput


def test_each_says_what_its_name_says() -> None:
    image = np.array([[0, 255], [255, 0]], np.uint8)[:, :, None].repeat(2, 0).repeat(2, 1)
    one = InspectedInput(image, np.array([0.1, 0.5, 0.4]), np.array([0.1, 0.4, 0.5]), 1, 2, True)
    said = {made.name: made(one) for made in built_in_hypotheses((1, 2))}
    assert tuple(said) == BUILT_IN_NAMES
    assert said["deviates"] is True
    assert said["class pair"] is True
    tied = replace(one, deviates=False)  # as by a tie, where labels differ too
    assert built_in_hypotheses((1, 2))[0](tied) is False
    assert said["brightness"] == said["contrast"] == 127.5
    assert said["high frequencies"] == pytest.approx(2 / 3)  # of three neighbours one differs


def test_the_commonest_pair_has_no_order_and_ties_go_to_the_least() -> None:
    scores = [np.array(one) for one in ([3, 2, 1], [2, 3, 1], [1, 2, 3], [0, 2, 1])]
    assert top_pair(scores[1].astype(float)) == (0, 1)
    assert commonest_pair(scores) == (0, 1)
    assert top_pair(np.zeros(3)) == (0, 1)


def test_high_frequencies_order_inputs_by_roughness() -> None:
    rng = np.random.default_rng(0)
    smooth = np.linspace(0, 1, 400)
    assert high_frequencies(smooth) < 0.01
    assert high_frequencies(rng.normal(size=4000)) == pytest.approx(1.0, abs=0.1)
    assert high_frequencies(np.tile([0, 1], 200)) == pytest.approx(2.0, abs=0.02)
    assert high_frequencies(np.ones((8, 8, 3), np.uint8)) == 0.0
    assert high_frequencies(np.float32(3.0)) == 0.0


@given(st.integers(0, 2**32), st.floats(0.1, 10), st.floats(-5, 5))
def test_brightness_and_contrast_leave_high_frequencies(seed: int, by: float, add: float) -> None:
    image = np.random.default_rng(seed).random((6, 5, 3))
    assert high_frequencies(image * by + add) == pytest.approx(high_frequencies(image))
