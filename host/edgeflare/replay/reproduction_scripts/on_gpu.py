"""Answers of LiteRT's GPU accelerator, for the script beside this file.

A GPU in software takes its driver by VK_DRIVER_FILES, the file that describes it.
"""

from typing import Any

import numpy as np
from ai_edge_litert import compiled_model as litert


def answers(model: str, rows: Any, outputs: int, precision: str) -> Any:
    """Return so many outputs for each row of inputs, both in the order of their tensors."""
    options = litert.Options(
        hardware_accelerators=litert.HardwareAccelerator.GPU,
        gpu_options=litert.GpuOptions(enforce_f32=precision == "fp32"),
    )
    compiled = litert.CompiledModel.from_file(model, options=options)
    names = compiled.get_signature_by_index(0)
    inputs, results = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    given = compiled.get_input_tensor_details(names["key"])
    made = compiled.get_output_tensor_details(names["key"])
    in_order = sorted(
        zip(names["outputs"], results, strict=True), key=lambda named: made[named[0]]["index"]
    )
    to_fill = sorted(
        zip(names["inputs"], inputs, strict=True), key=lambda named: given[named[0]]["index"]
    )
    found = []
    for row in rows:
        # As bytes, since the buffers take no values of 16 or 64 bits.
        for (_, buffer), values in zip(to_fill, row, strict=True):
            buffer.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        compiled.run_by_index(0, inputs, results)
        found.append([_values(buffer, made[name]) for name, buffer in in_order[:outputs]])
    return found


def _values(buffer: Any, details: Any) -> Any:
    shape, dtype = tuple(details["shape"]), np.dtype(details["dtype"])
    size = int(np.prod(shape)) * dtype.itemsize
    return buffer.read(size, np.uint8).view(dtype).reshape(shape)
