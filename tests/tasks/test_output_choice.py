from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from edgeflare.core.task import ModelOutputs, OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.classification import Classification
from edgeflare.tasks.output_choice import chosen_output

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
    again = Classification.decoder_from_json(decoder.to_json())
    assert again.to_json() == decoder.to_json()
    assert [one.decision for one in again.read(sample(32))] == [1, 0]
