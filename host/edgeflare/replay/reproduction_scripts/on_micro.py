"""Answers of TensorFlow Lite Micro, for the script beside this file: pip install tflite-micro."""

from typing import Any

import numpy as np
from tflite_micro.python.tflite_micro import runtime

ARENA_BYTES = 1 << 28


def answers(model: str, rows: Any, outputs: int, precision: str) -> Any:
    """Return so many outputs for each row of inputs, in the order of the model's graph."""
    del precision  # there is but one
    interpreter = runtime.Interpreter.from_file(model, arena_size=ARENA_BYTES)
    found = []
    for row in rows:
        interpreter.reset()
        for n, values in enumerate(row):
            interpreter.set_input(np.asarray(values), n)
        interpreter.invoke()
        found.append([interpreter.get_output(n) for n in range(outputs)])
    return found
