"""Which output a task reads, what is in it, and which tasks there are."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.raw_output_rows import batch_from_bytes
from edgeflare.core.task import ModelOutputs, OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.errors import UserError
from edgeflare.tasks.classification import ClassDecoder, Classification
from edgeflare.tasks.output_choice import chosen_output, output_values
from edgeflare.tasks.regression import Regression
from edgeflare.tasks.task_registry import TASKS, find_task
from kept_decoders import kept_again

AREA = Tensor("Identity", (1, 1), "float32")
LOGITS = Tensor("Identity_1", (1, 2), "float32")
STATE = Tensor("next", (1, 64), "float32")
MASK = Tensor("mask", (1, 8, 8), "float32")


def model(*outputs: Tensor, state: str = "", frames: int = 0) -> ModelOutputs:
    def no_sample(_seeds: int) -> RawBatch:
        raise AssertionError("choosing an output needs no answers")

    return ModelOutputs("compressed.tflite", outputs, frozenset({state}), frames, (), no_sample)


@pytest.mark.parametrize("outputs", [(AREA, LOGITS), (LOGITS, AREA), (MASK, LOGITS)])
def test_the_only_output_that_fits_is_read_wherever_it_is(outputs: tuple[Tensor, ...]) -> None:
    assert outputs[chosen_output(Classification, model(*outputs))] == LOGITS


def test_an_output_that_only_feeds_a_state_is_left_out() -> None:
    outputs = model(STATE, LOGITS, state="next")
    assert chosen_output(Classification, outputs) == 1


def test_an_output_over_frames_fits_as_that_of_one_frame() -> None:
    of_clip = Tensor("scores", (49, 1, 10), "float32")
    assert chosen_output(Classification, model(of_clip, frames=49)) == 0
    with pytest.raises(UserError, match=re.escape("'scores' (49, 1, 10)")):
        chosen_output(Classification, model(of_clip))


def test_outputs_that_do_not_fit_are_named_with_the_tasks_that_would() -> None:
    said = "compressed.tflite: the task classification reads one score for each of at least two"
    with pytest.raises(UserError, match=said) as refused:
        chosen_output(Classification, model(AREA, MASK))
    assert "'Identity' (1, 1) (fits " in str(refused.value)
    assert "'mask' (1, 8, 8) (fits " in str(refused.value)


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        (("CONV_2D", "ARG_MAX"), "the model ends in ARG_MAX (operator 1), which leaves no scores"),
        (("CONV_2D", "TOPK_V2", "CAST"), "the model ends in TOPK_V2 (operator 1)"),
        (("ARG_MAX", "CONV_2D"), "name another task under [task]"),
        ((), "name another task under [task]"),
    ],
)
def test_a_model_that_chooses_itself_is_to_be_cut_where_its_scores_are(
    operators: tuple[str, ...], said: str
) -> None:
    label = model(Tensor("label", (1,), "int64"), Tensor("sure", (1,), "bool"))
    with pytest.raises(UserError, match=re.escape(said)) as refused:
        chosen_output(Classification, replace(label, operators=operators))
    assert "'sure' (1,) (bool, fits no task)" in str(refused.value)
    maker = OutputMaker(1, "TOPK_V2", 1, reads="scores")
    named = replace(label, operators=("CONV_2D", "TOPK_V2"), makers=lambda: (maker, None))
    with pytest.raises(UserError, match="the output is what TOPK_V2 reads, 'scores', and convert"):
        chosen_output(Classification, named)


def test_several_outputs_that_fit_have_to_be_told_apart() -> None:
    said = "fits 2 outputs, 'Identity_1' (1, 2), 'next' (1, 64): choose one"
    with pytest.raises(UserError, match=re.escape(said)):
        chosen_output(Classification, model(LOGITS, AREA, STATE))


def test_a_classifier_of_several_outputs_detects_what_its_scores_are() -> None:
    probabilities = np.array([[0.2, 0.8], [0.9, 0.1]], np.float32)
    row = np.concatenate([np.zeros((2, 1), np.float32), probabilities], axis=1)

    def sample(seeds: int) -> RawBatch:
        assert seeds == 32
        return RawBatch(row.view(np.uint8))

    outputs = ModelOutputs("a", (AREA, LOGITS), frozenset(), 0, (), sample)
    decoder = Classification().decoder(outputs)
    assert (decoder.tensor, decoder.outputs) == (LOGITS, (AREA, LOGITS))
    assert decoder.meaning == "probabilities"
    assert Classification(outputs="logits").decoder(outputs).meaning == "logits"
    again = kept_again(Classification, decoder)
    assert [one.decision for one in again.read(sample(32))] == [1, 0]


COLOR, SIZE = Tensor("color", (1, 3), "int8", 0.5, 1), Tensor("size", (1, 2), "float32")


@pytest.mark.parametrize("output", ["color", "1x3", "(1, 3)", "[1, 3]", "other|color", "3x3|1x3"])
def test_an_output_is_chosen_by_name_or_shape(output: str) -> None:
    assert chosen_output(Classification, model(SIZE, COLOR), output) == 1


def test_an_output_that_is_not_there_or_does_not_fit_says_what_to_write() -> None:
    said = "no output 'hue': its outputs are 'size' (1, 2), 'color' (1, 3); where the two models"
    with pytest.raises(UserError, match=re.escape(said)) as refused:
        chosen_output(Classification, model(SIZE, COLOR), "hue")
    assert str(refused.value).endswith('such as output = "1x2"')
    with pytest.raises(UserError, match=re.escape("2 outputs are 1x2: 'size' (1, 2), 'again'")):
        chosen_output(Regression, model(SIZE, Tensor("again", (1, 2), "int8")), "1x2")
    twins = [Tensor("size", shape, "float32") for shape in ((1, 2), (1, 3), (1, 3))]
    with pytest.raises(UserError, match=r"'size' \(1, 3\); choose one by its shape"):
        chosen_output(Regression, model(*twins[:2]), "size")
    with pytest.raises(UserError, match="; convert the model with a name of its own for each"):
        chosen_output(Regression, model(*twins[1:]), "size")
    area = Tensor("area", (1, 1), "float32")
    with pytest.raises(UserError, match=re.escape("'area' (1, 1) (fits regression or threshold)")):
        chosen_output(Classification, model(area, SIZE), "area")


SCORES8 = Tensor("scores", (1, 4), "int8", 0.1, 5)
AREA_VALUE = Tensor("area", (1, 1), "float32")
STATE_VALUES = Tensor("state", (1, 3), "float32")


@given(arrays(np.int8, (5, 4)), st.permutations([AREA_VALUE, SCORES8, STATE_VALUES]))
def test_one_output_is_read_alike_alone_and_among_others(
    raw: NDArray[np.int8], row: list[Tensor]
) -> None:
    others = {
        one: np.full((5, *one.shape), np.nan, np.float32) for one in (AREA_VALUE, STATE_VALUES)
    }
    packed = pack_rows(row, [raw if one == SCORES8 else others[one] for one in row])
    alone = ClassDecoder((SCORES8,), 0, "logits")
    among = ClassDecoder(tuple(row), tuple(row).index(SCORES8), "logits")
    blobs = [one.tobytes() for one in packed]
    for batch in (RawBatch(packed), batch_from_bytes(among, blobs, {})):
        for one, other in zip(alone.read(RawBatch(raw)), among.read(batch), strict=True):
            assert (one.decision, one.tied) == (other.decision, other.tied)
            np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("outputs", [(SCORES8,), (AREA_VALUE, SCORES8)])
def test_rows_of_another_size_are_invalid(outputs: tuple[Tensor, ...]) -> None:
    values = output_values(RawBatch(np.ones((2, 7), np.int8), {1: "hang"}), outputs, -1)
    assert values.failures == {0: "invalid-output", 1: "hang"}
    assert values.real.shape == (2, 1, 4)


def test_values_that_are_not_finite_are_invalid_and_zero() -> None:
    raw = np.array([[0.5], [np.nan], [np.inf]], np.float32)
    values = output_values(RawBatch(raw, {2: "crash"}), (AREA_VALUE,), 0)
    assert values.failures == {1: "invalid-output", 2: "crash"}
    assert values.real.ravel().tolist() == [0.5, 0.0, 0.0]


def test_tasks_are_found_by_name() -> None:
    assert TASKS.names() == (
        *("classification", "detection", "regression", "segmentation", "threshold", "transcript"),
    )
    for name in TASKS.names():
        assert TASKS.find(name).name == name
    assert find_task("classification").name == "classification"


def test_a_task_is_constructed_with_its_keys() -> None:
    assert isinstance(find_task("regression", {"tolerance": 0.5}), Regression)
    with pytest.raises(UserError, match=r"tolerance is 0\.0; expected"):
        find_task("regression", {"tolerance": 0})
