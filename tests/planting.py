"""Faults to plant: in a `.tflite` file, or in whatever runs it on a device.

As a program it is a launcher for the agent's workers, `python planting.py SPEC -m MODULE …`:
it runs the module as Python would, with the fault of the file SPEC in the runtime.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.graph import Graph
from edgeflare_agent.runtime import interpreter
from edgeflare_agent.runtime.interpreter import LoadedModel
from edgeflare_agent.runtime.options import Options
from tampering import edited, with_constant


def _one_weight(values: Any) -> Any:
    """Change the largest weight to its opposite."""
    changed = values.copy()
    changed.flat[np.abs(values.astype(float)).argmax()] *= -1
    return changed


CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "weights negated": lambda values: -values,
    "one weight": _one_weight,
    "bias shifted": lambda values: values + (np.abs(values).max() // 2 + 100),
    "rounded down to even": lambda values: values // 2 * 2,
    "padding shifted by a row": lambda values: np.roll(values, 1, axis=1),
    "filters in another order": lambda values: np.roll(values, 1, axis=0),
    "zero point off by one": lambda values: values + 1,
}
"""Faults in a constant. A weight's zero point that is off by one adds one to each weight."""


def broken_constant(content: bytes, name: str, fault: str) -> bytes:
    """Return a model with a fault in the constant of that name; unchanged where it has none."""

    def change(values: NDArray[Any]) -> NDArray[Any]:
        wrong = np.asarray(CONSTANTS[fault](values))
        return np.clip(wrong, -127, 127) if values.dtype == np.int8 else wrong

    return with_constant(content, name, change)


def broken_scale(content: bytes, name: str) -> bytes:
    """Return a model with the scales of one constant a quarter too large."""
    found = [tensor.index for tensor in Graph(content).tensors if tensor.name == name]

    def change(model: Any) -> None:
        for index in found:
            quantization = model.subgraphs[0].tensors[index].quantization
            quantization.scale = [float(scale) * 1.25 for scale in quantization.scale]

    return edited(content, change)


def plant(spec: dict[str, Any]) -> None:
    """Put a fault into this process's runtime."""
    fault = spec["fault"]
    if "tensor" in spec:
        _plant_in_loading(spec)
    elif fault == "half precision":
        _plant_half_precision()
    else:
        _plant_in_invoking(fault, spec["input"])


def _plant_in_loading(spec: dict[str, Any]) -> None:
    load = interpreter._load

    def broken(content: bytes, options: Options) -> Any:
        if spec["fault"] == "scale off":
            content = broken_scale(content, spec["tensor"])
        elif spec.get("threads", 1) <= options.threads:
            content = broken_constant(content, spec["tensor"], spec["fault"])
        return load(content, options)

    setattr(interpreter, "_load", broken)  # noqa: B010


def _plant_half_precision() -> None:
    """Keep all float constants in 16 bits, as accelerators do."""
    load = interpreter._load

    def broken(content: bytes, options: Options) -> Any:
        graph = Graph(content)
        floats = [one for one in graph.tensors if one.constant and one.dtype == "float32"]

        def change(model: Any) -> None:
            for one in floats:
                halved = graph.values(one.index).astype(np.float16).astype(np.float32)
                buffer = model.subgraphs[0].tensors[one.index].buffer
                model.buffers[buffer].data = np.frombuffer(halved.tobytes(), np.uint8)

        return load(edited(content, change), options)

    setattr(interpreter, "_load", broken)  # noqa: B010


def _plant_in_invoking(fault: str, name: str) -> None:
    invoke = LoadedModel.invoke
    before: list[Any] = []
    rng = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))

    def broken(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        # A part that was cut out does not begin with the model's own input.
        own = [spec.name for spec in model.inputs] == [name]
        if own and fault == "channels swapped":
            inputs = [np.ascontiguousarray(inputs[0][..., ::-1])]
        if own and fault == "rows from below":
            inputs = [np.ascontiguousarray(inputs[0][:, ::-1])]
        invoke(model, inputs, outputs)
        last = outputs[-1]
        if fault == "constant output" and model.outputs[-1].shape[-1:] == (10,):
            last[...] = np.arange(last.size, dtype=last.dtype).reshape(last.shape)
        elif fault == "flaky" and own and rng.random() < 0.5:
            last[...] = np.roll(last, 1)
        elif fault == "stale output" and own:
            now = last.copy()
            last[...] = before.pop() if before else now
            before.append(now)

    setattr(LoadedModel, "invoke", broken)  # noqa: B010


if __name__ == "__main__":
    plant(json.loads(Path(sys.argv[1]).read_text()))
    module = sys.argv[3]
    sys.argv = [module, *sys.argv[4:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
