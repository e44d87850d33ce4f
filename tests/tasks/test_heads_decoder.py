from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.tensor_rows import pack_rows
from edgeflare.errors import UserError
from edgeflare.tasks.classification import Classification
from edgeflare.tasks.output_choice import chosen_output
from edgeflare.tasks.regression import Regression

COLOR, SIZE = Tensor("color", (1, 3), "int8", 0.5, 1), Tensor("size", (1, 2), "float32")
ROW = (SIZE, COLOR)
HEADS = Classification(outputs="logits", heads=("color", "StatefulPartitionedCall:1|1x2"))


def model(*outputs: Tensor) -> ModelOutputs:
    def no_sample(_seeds: int) -> RawBatch:
        raise AssertionError("nothing has to be detected")

    return ModelOutputs("multi.tflite", outputs, frozenset(), 0, (), no_sample)


@given(arrays(np.int8, (4, 3)), arrays(np.float32, (4, 2), elements=st.floats(-9, 9, width=32)))
def test_the_decision_is_the_class_of_every_head(
    color: NDArray[np.int8], size: NDArray[np.float32]
) -> None:
    decoder = HEADS.decoder(model(*ROW))
    again = Classification.decoder_from_json(decoder.to_json())
    assert again.to_json() == decoder.to_json()
    assert (decoder.choices, decoder.tensor, decoder.outputs) == (6, COLOR, ROW)
    batch = RawBatch(pack_rows(ROW, [size, color]))
    for one, other, c, s in zip(
        decoder.read(batch), again.read(batch), color.argmax(1), size.argmax(1), strict=True
    ):
        assert one.decision == other.decision == 2 * c + s
        assert decoder.describe(int(2 * c + s)) == f"{c}, {s}"


def test_too_many_joint_decisions_are_refused() -> None:
    wide = [Tensor(name, (1, 200), "float32") for name in "ab"]
    with pytest.raises(UserError, match="heads have 200 × 200 decisions together; at most 10000"):
        Classification(outputs="logits", heads=("a", "b")).decoder(model(*wide))
    with pytest.raises(UserError, match='write output = "a"'):
        Classification(heads=("a",))
    with pytest.raises(UserError, match="output and heads are both given"):
        Classification(output="a", heads=("a", "b"))


@pytest.mark.parametrize("output", ["color", "1x3", "(1, 3)", "[1, 3]", "other|color", "3x3|1x3"])
def test_an_output_is_chosen_by_name_or_shape(output: str) -> None:
    assert chosen_output(Classification, model(*ROW), output) == 1


def test_an_output_that_is_not_there_or_does_not_fit_says_what_to_write() -> None:
    said = "no output 'hue': its outputs are 'size' (1, 2), 'color' (1, 3); where the two models"
    with pytest.raises(UserError, match=re.escape(said)) as refused:
        chosen_output(Classification, model(*ROW), "hue")
    assert str(refused.value).endswith('such as output = "1x2"')
    with pytest.raises(UserError, match=re.escape("2 outputs are 1x2: 'size' (1, 2), 'again'")):
        chosen_output(Regression, model(SIZE, Tensor("again", (1, 2), "int8")), "1x2")
    area = Tensor("area", (1, 1), "float32")
    with pytest.raises(UserError, match=re.escape("'area' (1, 1) (fits regression or threshold)")):
        chosen_output(Classification, model(area, SIZE), "area")


def test_a_target_has_the_class_of_each_head() -> None:
    decoder = HEADS.decoder(model(*ROW))
    truth = decoder.target(np.array([2, 1]))
    assert truth is not None
    assert truth == decoder.labelled(truth.decision or 0)
    assert decoder.target(np.array([2, 2])) is None
    with pytest.raises(UserError, match=r"\(3,\), expected an integer for each of 2 parts"):
        decoder.target(np.zeros(3, int))
