from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.domains.image.image_seeds import load_image_seeds
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare.tasks.classification import ClassDecoder, detect_outputs
from edgeflare.tasks.classification_warnings import classification_warnings
from image_interfaces import preprocess_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
DECODER = ClassDecoder(Tensor("out", (1, 4), "float32"), "logits")


def decoded(logits: NDArray[np.float64]) -> list[Answer]:
    return list(DECODER.read(RawBatch(logits.astype(np.float32))))


def warn(logits: NDArray[np.float64], labels: list[int] | None = None) -> list[str]:
    """What is said of an original, beside a compressed model that works."""
    given = None if labels is None else np.array(labels, np.int64)
    return classification_warnings(decoded(logits), decoded(right(len(logits))), given)


def right(count: int, classes: int = 4) -> NDArray[np.float64]:
    logits: NDArray[np.float64] = np.eye(classes)[np.arange(count) % classes] * 5
    return logits


def test_a_model_that_works_is_not_complained_of() -> None:
    assert warn(right(40)) == []
    assert warn(right(40), [i % 4 for i in range(40)]) == []


def test_outputs_that_hardly_vary() -> None:
    constant = 1 + np.random.default_rng(0).normal(scale=0.01, size=(40, 4))
    (line,) = warn(constant)
    assert "the original's outputs hardly vary" in line
    assert "scale" in line


def test_a_flat_softmax_that_is_right_by_the_labels_is_not_complained_of() -> None:
    labels = np.arange(40, dtype=np.int64) % 4
    flat, constant = decoded(right(40) / 50), decoded(np.ones((40, 4)))
    assert classification_warnings(flat, flat, labels) == []
    assert len(classification_warnings(flat, flat, None)) == 2
    # A compressed model that answers one class is blamed, and the data for calibration with it.
    (line,) = classification_warnings(flat, constant, labels)
    assert "calibration" in line
    # One class for all is right on seeds of that class, which shows nothing.
    assert len(classification_warnings(constant, constant, np.zeros(40, np.int64))) == 2


def test_outputs_of_the_compressed_model_that_hardly_vary() -> None:
    constant = decoded(np.ones((40, 4)))
    (line,) = classification_warnings(decoded(right(40)), constant, None)
    assert "the compressed model's outputs hardly vary" in line
    assert "calibration" in line
    # Where there is no original, or it is constant too, nothing speaks against preprocessing.
    (line,) = classification_warnings(None, constant, None)
    assert "scale" in line
    assert len(classification_warnings(constant, constant, None)) == 2


def test_accuracy_near_chance() -> None:
    (line,) = warn(right(40), [(i + i // 4) % 4 for i in range(40)])
    assert "40 labelled seeds" in line
    assert "chance is 25%" in line


def test_labels_outside_the_classes_mean_unlabelled() -> None:
    assert warn(right(40), [-1] * 20 + [4] * 20) == []


def test_too_few_seeds_tell_nothing() -> None:
    assert warn(np.ones((3, 4)), [1, 2, 3]) == []


def test_failed_seeds_are_left_out() -> None:
    logits = right(40)
    logits[::2] = np.nan
    assert warn(logits, [i % 4 for i in range(40)]) == []
    assert warn(logits * np.nan, [0] * 40) == []


@pytest.mark.parametrize(
    ("preprocess", "complains"), [(None, False), (Preprocess(scale=65025.0), True)]
)
def test_wrong_preprocessing_of_a_real_model_is_noticed(
    preprocess: Preprocess | None, complains: bool
) -> None:
    pair = load_pair(EXAMPLE)
    assert pair.original is not None
    seeds = load_image_seeds(pair.seeds, (28, 28, 1))
    model = open_tflite(Path(pair.original))
    try:
        encoder = ImageEncoder(preprocess or preprocess_of(pair), model.signature.input)
        raw = model.submit(encoder.encode(seeds.inputs)).result()
        outputs = detect_outputs(model.signature.output, model.operators, raw.outputs)
        answers = list(ClassDecoder(model.signature.output, outputs).read(raw))
    finally:
        model.close()
    assert bool(classification_warnings(answers, answers, None)) is complains
    assert bool(classification_warnings(answers, answers, seeds.labels)) is complains
