from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core import answer
from edgeflare.core.answer import Failure
from edgeflare.core.answer_view import ClassesView
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.tensor_rows import pack_rows
from edgeflare.tasks.classification import (
    ClassDecoder,
    Classification,
    Outputs,
    detect_outputs,
    softmax,
)
from edgeflare.tasks.heads_decoder import HeadsDecoder

FLOAT = Tensor("out", (1, 4), "float32")
SOFTMAX8 = Tensor("out", (1, 4), "int8", 1 / 256, -128)
LOGITS8 = Tensor("out", (1, 4), "int8", 0.1, 5)

floats = arrays(np.float32, (5, 4), elements=st.floats(-50, 50, width=32))
bytes8 = arrays(np.int8, (5, 4))


@given(floats)
def test_logits_become_probabilities(raw: NDArray[np.float32]) -> None:
    decoded = ClassDecoder(FLOAT, "logits").decode(RawBatch(raw))
    np.testing.assert_allclose(decoded.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(decoded.scores, raw.astype(np.float64))
    np.testing.assert_array_equal(decoded.labels, raw.argmax(axis=1))
    np.testing.assert_allclose(softmax(decoded.scores + 7.0), decoded.probabilities, atol=1e-12)
    assert decoded.failures == (None,) * 5


@given(bytes8, st.sampled_from([SOFTMAX8, LOGITS8]), st.sampled_from(get_args(Outputs)))
def test_labels_and_ties_are_those_of_the_raw_outputs(
    raw: NDArray[np.int8], tensor: Tensor, outputs: Outputs
) -> None:
    decoded = ClassDecoder(tensor, outputs).decode(RawBatch(raw))
    for row, label, tied in zip(raw.tolist(), decoded.labels, decoded.tied, strict=True):
        first, second = sorted(row, reverse=True)[:2]
        assert label == row.index(first)
        assert tied == (first == second)


@given(bytes8)
def test_probabilities_stay_as_they_are_and_scores_follow_their_order(
    raw: NDArray[np.int8],
) -> None:
    decoded = ClassDecoder(SOFTMAX8, "probabilities").decode(RawBatch(raw))
    np.testing.assert_array_equal(decoded.probabilities, (raw.astype(np.float64) + 128) / 256)
    assert np.isfinite(decoded.scores).all()
    for row, scores in zip(raw, decoded.scores, strict=True):
        order = np.argsort(row, kind="stable")
        rises = np.diff(scores[order])
        np.testing.assert_array_equal(rises > 0, np.diff(row[order].astype(int)) > 0)


def test_a_saturated_float_softmax_still_has_different_scores() -> None:
    raw = np.array([[1.0, 1e-20, 1e-30, 0.0]], np.float32)
    scores = ClassDecoder(FLOAT, "probabilities").decode(RawBatch(raw)).scores[0]
    assert (np.diff(scores) < -5).all()


@pytest.mark.parametrize("shape", [(1, 4), (1, 1, 1, 4)])
def test_failures_of_every_kind(shape: tuple[int, ...]) -> None:
    raw = np.array([[0, 1, 2, 3]] * 6, np.float32)
    raw[1, 2], raw[2, 0] = np.nan, np.inf
    failures = {3: "crash", 4: "hang", 5: "error"}
    decoder = ClassDecoder(Tensor("out", shape, "float32"), "logits")
    decoded = decoder.decode(RawBatch(raw.reshape(6, *shape[1:]), failures))
    invalid = "invalid-output"
    assert decoded.failures == (None, invalid, invalid, "crash", "hang", invalid)
    assert decoded.labels.tolist() == [3, -1, -1, -1, -1, -1]
    assert not decoded.tied.any()
    assert not decoded.probabilities[1:].any()
    assert not decoded.scores[1:].any()
    assert np.isnan(raw[1, 2]), "the raw outputs belong to the evaluator"


def test_outputs_of_another_shape_are_invalid() -> None:
    decoded = ClassDecoder(FLOAT, "logits").decode(
        RawBatch(np.ones((2, 7), np.float32), {0: "crash"})
    )
    assert decoded.failures == ("crash", "invalid-output")


def test_an_empty_batch() -> None:
    assert (
        len(ClassDecoder(FLOAT, "logits").decode(RawBatch(np.zeros((0, 4), np.float32))).labels)
        == 0
    )


def test_kinds_of_failure_are_those_of_the_search() -> None:
    assert set(get_args(Failure)) == set(get_args(answer.Failure))


def test_detection_by_operators() -> None:
    assert detect_outputs(FLOAT, ("CONV_2D", "SOFTMAX")) == "probabilities"
    assert detect_outputs(FLOAT, ("SOFTMAX", "DEQUANTIZE")) == "probabilities"
    assert detect_outputs(FLOAT, ("SOFTMAX", "FULLY_CONNECTED")) == "logits"


def test_detection_by_quantization() -> None:
    assert detect_outputs(SOFTMAX8) == "probabilities"
    assert detect_outputs(Tensor("out", (1, 4), "uint8", 1 / 256, 0)) == "probabilities"
    assert detect_outputs(LOGITS8) == "logits"
    assert detect_outputs(Tensor("out", (1, 4), "int8", 1 / 256, 0)) == "logits"


@given(floats)
def test_detection_by_numbers(raw: NDArray[np.float32]) -> None:
    probabilities = softmax(raw.astype(np.float64))
    eight_bit = (probabilities * 256).round() / 256
    for seen in (probabilities.astype(np.float32), eight_bit.astype(np.float32)):
        assert detect_outputs(FLOAT, (), seen) == "probabilities"
    assert detect_outputs(FLOAT, (), np.abs(raw) + 1) == "logits"
    assert detect_outputs(FLOAT, (), probabilities - 0.2) == "logits"
    assert detect_outputs(FLOAT) == "logits"


def test_a_decoder_of_one_output_is_described_as_in_older_journals() -> None:
    fields = {
        "tensor": {
            "name": "out",
            "shape": [1, 4],
            "dtype": "int8",
            "scale": 1 / 256,
            "zero_point": -128,
        },
        "outputs": "probabilities",
    }
    decoder = Classification.decoder_from_json(fields)
    assert (decoder.tensor, decoder.outputs) == (SOFTMAX8, (SOFTMAX8,))
    assert json.dumps(decoder.to_json()) == json.dumps(fields)


def test_each_head_is_shown_under_the_name_of_its_output() -> None:
    kind, size = Tensor("kind", (1, 2), "float32"), Tensor("size", (1, 3), "float32")
    both = (kind, size)
    decoder = HeadsDecoder([ClassDecoder(one, "probabilities", both) for one in both])
    kinds = np.array([[0.9, 0.1], [0.1, 0.9]], np.float32)
    sizes = np.array([[0.2, 0.3, 0.5]] * 2, np.float32)
    one, other = decoder.read(RawBatch(pack_rows(both, [kinds, sizes])))
    views = decoder.views({"original": one, "device": other}, ("original", "device"))
    assert [view.head for view in views] == ["kind", "size"]
    assert all(isinstance(view, ClassesView) for view in views)
    assert [view.decisions for view in views if isinstance(view, ClassesView)] == [
        {"original": 0, "device": 1},
        {"original": 2, "device": 2},
    ]
