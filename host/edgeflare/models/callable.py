"""Python callables as originals: `module:function` or `path/to/file.py:function`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.python_callable import load_callable, reason


def open_callable(source: str, shape: tuple[int, ...]) -> InProcessModel:
    """Import a function that is the original model, and call it on zeros to check its output.

    The function takes a float32 array, preprocessed but not quantized, such as (1, H, W, C) of an
    image, and returns one output, such as (1, classes) or (classes,), as anything that numpy can
    read. It is always called on one input.

    Args:
        source: `module:function`, importable from the working directory too, or
            `path/to/file.py:function`.
        shape: of the array, whose first dimension is 1.

    Raises:
        UserError: the function cannot be imported, or its answer is no array of numbers.

    """
    function = load_callable(source, "inputs")

    def invoke(one: NDArray[np.generic]) -> NDArray[np.generic]:
        return _output(function(one))

    try:
        answer = invoke(np.zeros(shape, np.float32))
    except Exception as error:  # whatever the user's code raises is the user's to correct
        raise UserError(
            f"{source}: calling it on a float32 array of zeros {shape} failed: {reason(error)}"
        ) from error
    given, made = Tensor("input", shape, "float32"), Tensor("output", answer.shape, "float32")
    return InProcessModel(Signature((given,), (made,)), invoke)


def _output(answer: object) -> NDArray[np.float32]:
    output = np.asarray(answer)
    if not np.issubdtype(output.dtype, np.floating):
        raise TypeError(f"it returned {output.dtype}, but scores are floating-point numbers")
    return np.atleast_2d(output).astype(np.float32)
