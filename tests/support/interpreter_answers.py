"""What TFLite's interpreter itself answers in this process, without an agent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

RESOLVERS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}
"""By the names of kernel sets."""


def opened_interpreter(path: Path, kernels: str) -> Interpreter:
    """Return an interpreter of the model with its tensors allocated, in one thread."""
    interpreter = Interpreter(
        str(path), experimental_op_resolver_type=RESOLVERS[kernels], num_threads=1
    )
    interpreter.allocate_tensors()
    return interpreter


def interpreter_answers(path: Path, kernels: str, inputs: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return the raw outputs to raw inputs of a model with one of each: a row an input."""
    interpreter = opened_interpreter(path, kernels)
    (given,), (asked,) = interpreter.get_input_details(), interpreter.get_output_details()
    rows = []
    for one in inputs:
        interpreter.set_tensor(given["index"], one.reshape(given["shape"]))
        interpreter.invoke()
        rows.append(interpreter.get_tensor(asked["index"])[0])
    return np.stack(rows)
