from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.errors import UserError
from edgeflare.tasks.threshold import Threshold
from kept_decoders import kept_again

FLOAT = Tensor("score", (1, 1), "float32")
INT8 = Tensor("score", (1, 1), "int8", float(np.float32(0.1)), -5)
STATE = Tensor("state", (1, 2), "float32")


def model(
    *outputs: Tensor, sample: RawBatch | None = None, inputs: int = 0, frames: int = 0
) -> ModelOutputs:
    def of_seeds(_seeds: int) -> RawBatch:
        assert sample is not None
        return sample

    return ModelOutputs(
        "compressed.tflite", outputs, frozenset({"state"}), frames, (), of_seeds, inputs
    )


def read(decoder: Decoder, *raw: float) -> list[Answer]:
    return list(decoder.read(RawBatch(np.array(raw, decoder.tensor.dtype)[:, None])))


scores = st.floats(-10, 10, width=32)


@given(scores, scores, st.floats(0.1, 5))
def test_a_deviation_is_as_strong_as_the_nearer_score_is_far(
    first: float, second: float, spread: float
) -> None:
    decoder = Threshold(threshold=0.25, spread=spread).decoder(model(FLOAT))
    one, other = read(decoder, first, second)
    assert one.differs(other) == other.differs(one) == ((first >= 0.25) != (second >= 0.25))
    strength = one.strength_against(other)
    assert strength == other.strength_against(one)
    nearer = min(abs(first - 0.25), abs(second - 0.25)) / spread
    assert strength == pytest.approx(nearer if one.differs(other) else 0.0)
    above, below = read(decoder, 1.0, 0.0)
    assert (one.margin(above) > 0.0) == (first > 0.25)
    assert one.margin(above) == -one.margin(below)
    assert one.probabilities.sum() == pytest.approx(1.0)


@given(st.integers(-128, 127), st.integers(-127, 127))
def test_a_quantized_score_that_equals_the_threshold_is_a_tie(raw: int, at: int) -> None:
    threshold = round((at + 5) * 0.1, 1)  # as a user writes it; the scale is a float32
    decoder = Threshold(threshold=threshold, spread=1.0).decoder(model(INT8))
    (answer,) = read(decoder, raw)
    assert answer.tied == (raw == at)
    assert answer.decision == int(raw >= at)
    assert (answer.margin(answer) == 0.0) == answer.tied


def test_the_spread_is_the_interquartile_range_of_the_seeds() -> None:
    seeds = np.arange(101, dtype=np.float32)[:, None]
    decoder = Threshold(threshold=10.0).decoder(model(FLOAT, sample=RawBatch(seeds)))
    low, high = read(decoder, 0.0, 35.0)
    assert low.strength_against(high) == pytest.approx(10 / 50)
    again = kept_again(Threshold, decoder)
    assert [one.decision for one in read(again, 0.0, 35.0)] == [0, 1]
    assert (decoder.choices, decoder.names) == (2, ("below", "above"))
    assert decoder.describe(1) == "above"


def test_scores_without_any_spread_say_what_to_do() -> None:
    seeds = RawBatch(np.full((20, 1), 0.5, np.float32))
    with pytest.raises(UserError, match=r"first 20 seeds is 0.5 throughout, .* spread = 0.1"):
        Threshold(threshold=0.2).decoder(model(FLOAT, sample=seeds))
    Threshold(threshold=0.2, spread=0.1).decoder(model(FLOAT))


def test_the_score_is_found_among_outputs_and_state() -> None:
    outputs = (STATE, INT8)
    decoder = Threshold(threshold=0.0, spread=1.0).decoder(model(*outputs))
    assert decoder.tensor == INT8
    raw: list[NDArray[Any]] = [np.full((1, 2), np.nan, np.float32), np.array([[7]], np.int8)]
    (answer,) = decoder.read(RawBatch(pack_rows(outputs, raw)))
    assert answer.decision == 1


def test_failures_are_decisions_of_their_own() -> None:
    decoder = Threshold(threshold=0.0, spread=1.0).decoder(model(FLOAT))
    batch = RawBatch(np.array([[np.nan], [1.0], [0.0]], np.float32), {2: "crash"})
    bad, good, crashed = decoder.read(batch)
    assert (bad.failure, good.failure, crashed.failure) == ("invalid-output", None, "crash")
    assert bad.differs(good)
    assert bad.strength_against(good) is None


def test_reconstruction_is_the_mean_squared_difference_from_the_input() -> None:
    given_, made = Tensor("x", (1, 4), "int8", 0.5, 2), Tensor("y", (1, 4), "float32")
    task = Threshold(threshold=0.25, spread=1.0, score="reconstruction")
    assert task.reads_inputs
    assert not Threshold(threshold=0.25).reads_inputs
    row = (given_, STATE, made)
    decoder = task.decoder(model(*row, inputs=1))
    x = np.array([[2, 4, 6, 8]] * 2, np.int8)  # 0, 1, 2, 3
    y = np.array([[0, 1, 2, 3], [1, 2, 3, 3]], np.float32)
    state = np.zeros((2, 2), np.float32)
    same, off = decoder.read(RawBatch(pack_rows(row, [x, state, y])))
    assert (same.decision, off.decision) == (0, 1)
    assert off.margin(off) / same.margin(same) == pytest.approx((0.75 - 0.25) / 0.25)
    again = kept_again(task, decoder)
    assert [one.decision for one in again.read(RawBatch(pack_rows(row, [x, state, y])))] == [0, 1]
    with pytest.raises(UserError, match="0 outputs have the size of an input: inputs 'x'"):
        task.decoder(model(given_, replace(made, shape=(1, 5)), inputs=1))


def test_a_reconstruction_in_another_order_is_refused() -> None:
    task = Threshold(threshold=0.25, spread=1.0, score="reconstruction")
    first, last = Tensor("y", (1, 3, 4, 5), "float32"), Tensor("x", (1, 4, 5, 3), "float32")
    with pytest.raises(UserError, match="in another order, such as channels first and last"):
        task.decoder(model(last, first, inputs=1))
    assert task.decoder(model(last, replace(first, shape=(1, 60)), inputs=1)).at == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"threshold": float("nan")}, "threshold is nan; expected a finite number"),
        ({"above": "hit", "below": "hit"}, "are both 'hit'"),
        ({"spread": -1.0}, r"spread is -1\.0"),
        ({"score": "reconstruction", "against": "floats"}, "against is 'floats'; expected 'featu"),
        ({"against": "dequantized"}, "but nothing is reconstructed: say score"),
        ({"threshold": -0.5, "score": "reconstruction"}, "give a threshold above 0"),
        ({"threshold": 20, "spread": 1.0}, "threshold is 20, but output 'score' gives -12.3 to 13"),
    ],
)
def test_values_out_of_their_range_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        Threshold(**{"threshold": 0.5, **keys}).decoder(model(INT8))


def test_a_model_that_always_decides_the_same_is_warned_of() -> None:
    task = Threshold(threshold=0.5, spread=1.0)
    decoder = task.decoder(model(FLOAT))
    low, mixed = read(decoder, *[0.1] * 9), read(decoder, *[0.1, 0.9] * 5)
    said = task.warnings(low, mixed, None)
    assert said == [
        "the original decides the same of all 9 seeds, with the threshold 0.5: check the "
        "threshold, and the preprocessing"
    ]
    assert task.warnings(mixed, mixed, None) == []
    assert "near chance" not in str(task.warnings(mixed, mixed, np.array([0, 1] * 5)))
    assert "right on only" in str(task.warnings(mixed, mixed, np.array([1, 0] * 5)))


def test_scores_are_shown_with_their_sides() -> None:
    task = Threshold(threshold=0.25, spread=1.0, above="wake", below="quiet")
    decoder = task.decoder(model(FLOAT))
    original, device = read(decoder, 0.5, 0.125)
    (failed,) = decoder.read(RawBatch(np.zeros((1, 1), np.float32), {0: "crash"}))
    arms = {"original": original, "twin": failed, "device": device}
    (view,) = decoder.views(arms, ("original", "device"))
    assert (view.head, view.sides, view.threshold) == ("", ("quiet", "wake"), 0.25)
    assert view.scores == {"original": 0.5, "twin": None, "device": 0.125}
    assert view.decisions == {"original": 1, "twin": None, "device": 0}
