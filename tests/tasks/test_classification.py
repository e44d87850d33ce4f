"""The task classification: its outputs, heads, and what looks wrong on seeds."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import ModelOutputs, OutputMaker
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.errors import UserError
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.tasks.classification import (
    ClassDecoder,
    Classification,
    HeadsDecoder,
    Outputs,
    detect_outputs,
    softmax,
)
from edgeflare.tasks.classification_warnings import classification_warnings
from kept_decoders import kept_again

FLOAT = Tensor("out", (1, 4), "float32")
SOFTMAX8 = Tensor("out", (1, 4), "int8", 1 / 256, -128)
LOGITS8 = Tensor("out", (1, 4), "int8", 0.1, 5)

floats = arrays(np.float32, (5, 4), elements=st.floats(-50, 50, width=32))
bytes8 = arrays(np.int8, (5, 4))


@given(floats)
def test_logits_become_probabilities(raw: NDArray[np.float32]) -> None:
    decoded = ClassDecoder((FLOAT,), 0, "logits").decode(RawBatch(raw))
    np.testing.assert_allclose(decoded.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(decoded.scores, raw.astype(np.float64))
    np.testing.assert_array_equal(decoded.labels, raw.argmax(axis=1))
    np.testing.assert_allclose(softmax(decoded.scores + 7.0), decoded.probabilities, atol=1e-12)
    assert decoded.failures == (None,) * 5


@given(bytes8, st.sampled_from([SOFTMAX8, LOGITS8]), st.sampled_from(get_args(Outputs)))
def test_labels_and_ties_are_those_of_the_raw_outputs(
    raw: NDArray[np.int8], tensor: Tensor, outputs: Outputs
) -> None:
    decoded = ClassDecoder((tensor,), 0, outputs).decode(RawBatch(raw))
    for row, label, tied in zip(raw.tolist(), decoded.labels, decoded.tied, strict=True):
        first, second = sorted(row, reverse=True)[:2]
        assert label == row.index(first)
        assert tied == (first == second)


@given(bytes8)
def test_probabilities_stay_as_they_are_and_scores_follow_their_order(
    raw: NDArray[np.int8],
) -> None:
    decoded = ClassDecoder((SOFTMAX8,), 0, "probabilities").decode(RawBatch(raw))
    np.testing.assert_array_equal(decoded.probabilities, (raw.astype(np.float64) + 128) / 256)
    assert np.isfinite(decoded.scores).all()
    for row, scores in zip(raw, decoded.scores, strict=True):
        order = np.argsort(row, kind="stable")
        rises = np.diff(scores[order])
        np.testing.assert_array_equal(rises > 0, np.diff(row[order].astype(int)) > 0)


def test_a_saturated_float_softmax_still_has_different_scores() -> None:
    raw = np.array([[1.0, 1e-20, 1e-30, 0.0]], np.float32)
    scores = ClassDecoder((FLOAT,), 0, "probabilities").decode(RawBatch(raw)).scores[0]
    assert (np.diff(scores) < -5).all()


@pytest.mark.parametrize("shape", [(1, 4), (1, 1, 1, 4)])
def test_failures_of_every_kind(shape: tuple[int, ...]) -> None:
    raw = np.array([[0, 1, 2, 3]] * 6, np.float32)
    raw[1, 2], raw[2, 0] = np.nan, np.inf
    failures = {3: "crash", 4: "hang", 5: "error"}
    decoder = ClassDecoder((Tensor("out", shape, "float32"),), 0, "logits")
    decoded = decoder.decode(RawBatch(raw.reshape(6, *shape[1:]), failures))
    invalid = "invalid-output"
    assert decoded.failures == (None, invalid, invalid, "crash", "hang", invalid)
    assert decoded.labels.tolist() == [3, -1, -1, -1, -1, -1]
    assert not decoded.tied.any()
    assert not decoded.probabilities[1:].any()
    assert not decoded.scores[1:].any()
    assert np.isnan(raw[1, 2]), "the raw outputs belong to the evaluator"


def test_outputs_of_another_shape_are_invalid() -> None:
    assert not len(ClassDecoder((FLOAT,), 0, "logits").decode(RawBatch(np.zeros((0, 4)))).labels)
    decoded = ClassDecoder((FLOAT,), 0, "logits").decode(
        RawBatch(np.ones((2, 7), np.float32), {0: "crash"})
    )
    assert decoded.failures == ("crash", "invalid-output")


@pytest.mark.parametrize(
    ("tensor", "operators", "outputs"),
    [
        (FLOAT, ("CONV_2D", "SOFTMAX"), "probabilities"),
        (FLOAT, ("SOFTMAX", "DEQUANTIZE"), "probabilities"),
        (FLOAT, ("SOFTMAX", "FULLY_CONNECTED"), "logits"),
        (SOFTMAX8, (), "probabilities"),
        (Tensor("out", (1, 4), "uint8", 1 / 256, 0), (), "probabilities"),
        (LOGITS8, (), "logits"),
        (Tensor("out", (1, 4), "int8", 1 / 256, 0), (), "logits"),
    ],
)
def test_detection_by_operators_and_quantization(
    tensor: Tensor, operators: tuple[str, ...], outputs: Outputs
) -> None:
    assert detect_outputs(tensor, operators) == outputs


@given(floats)
def test_detection_by_numbers(raw: NDArray[np.float32]) -> None:
    probabilities = softmax(raw.astype(np.float64))
    eight_bit = (probabilities * 256).round() / 256
    for seen in (probabilities.astype(np.float32), eight_bit.astype(np.float32)):
        assert detect_outputs(FLOAT, (), seen) == "probabilities"
    assert detect_outputs(FLOAT, (), np.abs(raw) + 1) == "logits"
    assert detect_outputs(FLOAT, (), probabilities - 0.2) == "logits"
    assert detect_outputs(FLOAT) == "logits"


def test_each_head_is_shown_under_the_name_of_its_output() -> None:
    kind, size = Tensor("kind", (1, 2), "float32"), Tensor("size", (1, 3), "float32")
    both = (kind, size)
    decoder = HeadsDecoder(tuple(ClassDecoder(both, at, "probabilities") for at in (0, 1)))
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


TWO = ClassDecoder((Tensor("out", (1, 2), "float32"),), 0, "logits")
THREE = ClassDecoder((Tensor("out", (1, 3), "int8", 0.5, 0),), 0, "logits")


def test_models_of_as_many_classes_and_names_are_a_pair() -> None:
    Classification().require_pair(TWO, TWO, ())
    Classification().require_pair(None, THREE, ("a", "b", "c"))
    said = "the original tells 2 classes apart and the compressed model 3: they are no pair"
    with pytest.raises(UserError, match=said):
        Classification().require_pair(TWO, THREE, ())
    with pytest.raises(UserError, match="classes has 2 names, but the compressed model tells 3"):
        Classification().require_pair(None, THREE, ("a", "b"))


def test_each_of_several_outputs_is_read_by_the_operator_that_makes_it() -> None:
    """Independent probabilities do not sum to 1, so numbers do not tell them from logits."""
    outputs = tuple(Tensor(name, (1, 2), "float32") for name in ("tags", "scores"))
    some = np.array([[0.9, 0.8], [0.7, 0.1]], np.float32)
    batch = RawBatch(pack_rows(outputs, [some, some]))

    def meanings(*makers: OutputMaker) -> list[str]:
        model = ModelOutputs(
            "two.tflite",
            outputs,
            frozenset(),
            0,
            ("LOGISTIC",),
            lambda _: batch,
            makers=lambda: makers,
        )
        read = Classification(heads=("tags", "scores")).decoder(model)
        return [head.meaning for head in read.heads]

    makers = OutputMaker(3, "LOGISTIC", 0), OutputMaker(2, "FULLY_CONNECTED", 0)
    assert meanings(*makers) == ["probabilities", "logits"]
    assert meanings() == ["logits", "logits"]


def detected(rows: NDArray[np.float32], *makers: OutputMaker) -> str:
    """Return what a model of an unknown graph is read to hold, given the compressed model's."""
    model = ModelOutputs(
        "model.py:scores",
        (FLOAT,),
        frozenset(),
        0,
        (),
        lambda _: RawBatch(rows),
        compressed_makers=lambda: makers,
    )
    return Classification().decoder(model).meaning


def test_an_original_gives_independent_probabilities_where_the_compressed_model_does() -> None:
    """Nothing but the compressed file tells sigmoids of an ONNX or Python original from logits."""
    sigmoids = np.array([[0.9, 0.8, 0.1, 0.2], [0.7, 0.1, 0.3, 1.0]], np.float32)
    assert detected(sigmoids, OutputMaker(3, "LOGISTIC", 0)) == "probabilities"
    assert detected(4 * sigmoids, OutputMaker(3, "LOGISTIC", 0)) == "logits"
    assert detected(sigmoids, OutputMaker(3, "FULLY_CONNECTED", 0)) == "logits"


def test_a_seed_without_an_answer_tells_nothing_of_outputs() -> None:
    rows = softmax(np.random.default_rng(0).normal(size=(8, 4))).astype(np.float32)
    rows[3, 1] = np.nan
    assert detected(rows) == "probabilities"


COLOR, SIZE = Tensor("color", (1, 3), "int8", 0.5, 1), Tensor("size", (1, 2), "float32")
ROW = (SIZE, COLOR)
HEADS = Classification(outputs="logits", heads=("color", "StatefulPartitionedCall:1|1x2"))


def heads_outputs(*outputs: Tensor) -> ModelOutputs:
    return ModelOutputs(
        "multi.tflite", outputs, frozenset(), 0, (), lambda _: RawBatch(np.empty(0))
    )


@given(arrays(np.int8, (4, 3)), arrays(np.float32, (4, 2), elements=st.floats(-9, 9, width=32)))
def test_the_decision_is_the_class_of_every_head(
    color: NDArray[np.int8], size: NDArray[np.float32]
) -> None:
    decoder = HEADS.decoder(heads_outputs(*ROW))
    again = kept_again(Classification, decoder)
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
        Classification(outputs="logits", heads=("a", "b")).decoder(heads_outputs(*wide))
    with pytest.raises(UserError, match='write output = "a"'):
        Classification(heads=("a",))
    with pytest.raises(UserError, match="output and heads are both given"):
        Classification(output="a", heads=("a", "b"))


def test_a_target_has_the_class_of_each_head() -> None:
    decoder = HEADS.decoder(heads_outputs(*ROW))
    truth = decoder.target(np.array([2, 1]))
    assert truth is not None
    assert truth == decoder.labelled(truth.decision or 0)
    assert decoder.target(np.array([2, 2])) is None
    with pytest.raises(UserError, match=r"\(3,\), expected an integer for each of 2 parts"):
        decoder.target(np.zeros(3, int))


DECODER = ClassDecoder((Tensor("out", (1, 4), "float32"),), 0, "logits")


def decoded(logits: NDArray[np.float64]) -> list[Answer]:
    return list(DECODER.read(RawBatch(logits.astype(np.float32))))


def warn(logits: NDArray[np.float64], labels: list[int] | None = None) -> list[str]:
    """What is said of an original, beside a compressed model that works."""
    given = None if labels is None else np.array(labels, np.int64)
    return classification_warnings(decoded(logits), decoded(right_logits(len(logits))), given)


def right_logits(count: int) -> NDArray[np.float64]:
    logits: NDArray[np.float64] = np.eye(4)[np.arange(count) % 4] * 5
    return logits


def test_a_model_that_works_is_not_complained_of() -> None:
    assert warn(right_logits(40)) == []
    assert warn(right_logits(40), [i % 4 for i in range(40)]) == []


def test_outputs_that_hardly_vary() -> None:
    constant = 1 + np.random.default_rng(0).normal(scale=0.01, size=(40, 4))
    (line,) = warn(constant)
    assert "the original's outputs hardly vary" in line
    assert "scale" in line


def test_a_flat_softmax_that_is_right_by_the_labels_is_not_complained_of() -> None:
    labels = np.arange(40, dtype=np.int64) % 4
    flat, constant = decoded(right_logits(40) / 50), decoded(np.ones((40, 4)))
    assert classification_warnings(flat, flat, labels) == []
    assert len(classification_warnings(flat, flat, None)) == 2
    # A compressed model that answers one class is blamed, and the data for calibration with it.
    (line,) = classification_warnings(flat, constant, labels)
    assert "calibration" in line
    # One class for all is right on seeds of that class, which shows nothing.
    assert len(classification_warnings(constant, constant, np.zeros(40, np.int64))) == 2


def test_outputs_of_the_compressed_model_that_hardly_vary() -> None:
    constant = decoded(np.ones((40, 4)))
    (line,) = classification_warnings(decoded(right_logits(40)), constant, None)
    assert "the compressed model's outputs hardly vary" in line
    assert "calibration" in line
    # Where there is no original, or it is constant too, nothing speaks against preprocessing.
    (line,) = classification_warnings(None, constant, None)
    assert "scale" in line
    assert len(classification_warnings(constant, constant, None)) == 2


def test_accuracy_near_chance() -> None:
    (line,) = warn(right_logits(40), [(i + i // 4) % 4 for i in range(40)])
    assert "40 labelled seeds" in line
    assert "chance is 25%" in line


def test_labels_outside_the_classes_mean_unlabelled() -> None:
    assert warn(right_logits(40), [-1] * 20 + [4] * 20) == []


def test_too_few_seeds_tell_nothing() -> None:
    assert warn(np.ones((3, 4)), [1, 2, 3]) == []


def test_failed_seeds_are_left_out() -> None:
    logits = right_logits(40)
    logits[::2] = np.nan
    assert warn(logits, [i % 4 for i in range(40)]) == []
    assert warn(logits * np.nan, [0] * 40) == []
