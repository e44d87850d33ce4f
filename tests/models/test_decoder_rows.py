from __future__ import annotations

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.core.tensor_rows import GivenRows, unpack_rows
from edgeflare.models.decoder_rows import as_read_by, submit
from edgeflare.models.evaluator import Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.models.pair_interface import PairInterface

SIGNATURE = Signature((Tensor("x", (1, 3), "int8", 0.5),), (Tensor("y", (1, 2), "float32"),))
RECONSTRUCTION = {"threshold": 0.5, "score": "reconstruction", "against": "dequantized"}


def test_each_row_has_what_the_model_was_given() -> None:
    def invoke(one: NDArray[np.generic]) -> NDArray[np.generic]:
        if (one == 9).all():
            raise ValueError("nines")
        return np.array([[one.min(), one.max()]], np.float32)

    task = PairInterface(task="threshold", task_settings=RECONSTRUCTION)
    with closing(as_read_by(task, InProcessModel(SIGNATURE, invoke))) as model:
        inputs = np.array([[1, 2, 3], [9, 9, 9], [-4, 0, 4]], np.int8)
        batch = model.submit(inputs).result()
        given, made = unpack_rows(model.signature.outputs, batch.outputs)
    np.testing.assert_array_equal(given.reshape(3, 3), inputs)
    np.testing.assert_array_equal(made.reshape(3, 2), [[1, 3], [0, 0], [-4, 4]])
    assert batch.failures == {1: "error"}


def test_a_row_may_have_what_the_input_was_before_it_was_quantized() -> None:
    """Of an input that is known as the model takes it only, that is what it stands for."""
    task = PairInterface(task="threshold", task_settings=RECONSTRUCTION | {"against": "features"})

    def invoke(one: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.array([[one.min(), one.max()]], np.float32)

    with closing(as_read_by(task, InProcessModel(SIGNATURE, invoke))) as model:
        inputs = np.array([[1, 2, 3]], np.int8)
        features = np.array([[0.6, 1.1, 1.4]], np.float32)
        known = submit(model, GivenRows(inputs, features)).result()
        unknown = model.submit(inputs).result()
        tensors = model.signature.outputs
    assert [tensor.dtype for tensor in tensors] == ["float32", "float32"]
    for batch, expected in ((known, features), (unknown, np.array([[0.5, 1.0, 1.5]], np.float32))):
        given, made = unpack_rows(tensors, batch.outputs)
        np.testing.assert_array_equal(given.reshape(1, 3), expected)
        np.testing.assert_array_equal(made.reshape(1, 2), [[1, 3]])
