from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare_agent.runtime import Invocation, IsolatedModel, ModelRejected, Options
from edgeflare_agent.runtime.tflite.model_tensors import tensor_spec

# What TFLite calls a type, and what numpy does.
TYPES = {
    "BOOL": "bool",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT16": "int16",
    "UINT16": "uint16",
    "INT32": "int32",
    "UINT32": "uint32",
    "INT64": "int64",
    "FLOAT16": "float16",
    "FLOAT32": "float32",
    "FLOAT64": "float64",
    "COMPLEX64": "complex64",
}


def opened(path: Path, invocation: Invocation | None = None) -> IsolatedModel:
    return IsolatedModel.open(path, Options("builtin", invocation=invocation or Invocation()))


def refusal(path: Path, invocation: Invocation | None = None) -> str:
    with pytest.raises(ModelRejected) as caught:
        opened(path, invocation)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_any_type_go_in_and_come_out(
    dtype: str, cast_model: Callable[[str, str], Path]
) -> None:
    values = np.array([[0, 1, 1, 0]])
    for given, made in ((dtype, "FLOAT32"), ("FLOAT32", dtype)):
        with opened(cast_model(given, made)) as model:
            assert [spec.dtype for spec in model.inputs] == [TYPES[given]]
            assert [spec.dtype for spec in model.outputs] == [TYPES[made]]
            batch = model.run(values.astype(TYPES[given]).tobytes(), 1)
        assert batch.failures == ()
        assert batch.outputs == values.astype(TYPES[made]).tobytes()


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("STRING", "tensor other holds strings, which are not supported"),
        ("RESOURCE", "tensor other holds a resource or variant, which are not supported"),
        ("VARIANT", "tensor other holds a resource or variant, which are not supported"),
    ],
)
def test_what_is_no_number_is_refused(
    dtype: str, words: str, textual_model: Callable[[str], Path]
) -> None:
    assert words in refusal(textual_model(dtype))


@pytest.mark.parametrize(("signature", "size", "factor"), [("negate", 2, -1), ("double", 3, 2)])
def test_a_signature_by_name(
    signature: str, size: int, factor: int, two_signature_model: Path
) -> None:
    inputs = np.random.default_rng(1).normal(size=(5, size)).astype(np.float32)
    with opened(two_signature_model, Invocation(signature)) as model:
        assert [(spec.name, spec.shape) for spec in model.inputs] == [("v", (1, size))]
        assert [(spec.name, spec.shape) for spec in model.outputs] == [("w", (1, size))]
        batch = model.run(inputs.tobytes(), 5)
    assert batch.failures == ()
    assert batch.outputs == (factor * inputs).tobytes()


def test_an_unknown_signature_is_refused(two_signature_model: Path, float_model: Path) -> None:
    words = refusal(two_signature_model, Invocation("neglect"))
    assert words == "there is no signature 'neglect': its signatures are double, negate"
    assert "it has no signatures" in refusal(float_model, Invocation("negate"))


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_dynamic_dimensions_are_given_a_size(rows: int, dynamic_model: Path) -> None:
    inputs = np.random.default_rng(rows).normal(size=(3, rows, 3)).astype(np.float32)
    with opened(dynamic_model, Invocation(shapes={"x": (rows, 3)})) as model:
        assert [spec.shape for spec in (*model.inputs, *model.outputs)] == [(rows, 3)] * 3
        batch = model.run(inputs.tobytes(), 3)
    assert batch.failures == ()
    sevens = np.full((rows, 3), 7, np.float32).tobytes()
    assert batch.outputs == b"".join((2 * one).tobytes() + sevens for one in inputs)


def test_a_shape_that_does_not_fit_is_refused(dynamic_model: Path) -> None:
    for shape in ((4, 5), (4,), (4, 3, 1)):
        words = refusal(dynamic_model, Invocation(shapes={"x": shape}))
        assert f"input 'x' has shape (-1, 3), which {shape} does not fit" in words
    assert "there is no input 'z': its inputs are x" in refusal(
        dynamic_model, Invocation(shapes={"z": (4, 3)})
    )


@pytest.mark.parametrize("shape", [(1 << 30, 1 << 30), (3, -7), (0, 1 << 30, 1 << 30, 1 << 30)])
def test_a_shape_that_no_tensor_has_is_refused(shape: tuple[int, ...]) -> None:
    """Kernels compute such shapes from memory that nothing wrote; no file has them by itself."""
    details = {"dtype": np.float32, "shape": np.array(shape), "quantization": (0.0, 0), "index": 1}
    with pytest.raises(ModelRejected, match=r"tensor y has shape .* which no memory holds"):
        tensor_spec("y", details)
