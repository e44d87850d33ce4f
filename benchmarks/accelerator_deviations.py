"""How far kernel sets and the dequantized model are from one kernel set, on noise.

    python benchmarks/accelerator_deviations.py MODEL.tflite ... [--inputs 50] [--base builtin]

For each quantized model and each kernel set that runs here: on how many inputs the largest value of
the first output is another one, and by how many raw steps outputs differ at most and on average.
`gpu` needs a Vulkan driver; `edgeflare doctor` says whether there is one.
"""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.transports.emulated import driver_variables
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import DEQUANTIZED, dequantized
from edgeflare_agent.runtime import Acceleration, IsolatedModel, ModelRejected, Options
from edgeflare_agent.runtime.model_runtime import offered_kernel_sets
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels

SEED = 0


def main() -> None:
    """Compare all models that are named."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("models", nargs="+", type=Path)
    options.add_argument("--inputs", type=int, default=50)
    options.add_argument("--base", choices=KERNEL_SETS, default="builtin")
    asked = options.parse_args()
    os.environ.update(driver_variables(os.environ))
    for path in asked.models:
        print(f"{path.parent.name}/{path.name}, {asked.inputs} inputs of noise")
        with TemporaryDirectory() as folder:
            compare(path, Path(folder), asked.inputs, asked.base)


def compare(path: Path, folder: Path, count: int, base_kernels: Kernels) -> None:
    """Print a line for each kernel set, and one for the dequantized model."""
    with closing(IsolatedModel.open(path, Options(base_kernels))) as base:
        rng = np.random.default_rng(SEED)
        noise = rng.integers(0, 256, count * base.input_bytes, np.uint8).tobytes()
        expected = answers(base, noise, count)
        if base.arena_bytes:
            print(f"  an arena of {base.arena_bytes:,} bytes")
    for kernels in offered_kernel_sets():
        if kernels != base_kernels:
            print_line(kernels, path, kernels, noise, expected)
    float_file = folder / "dequantized.tflite"
    try:
        float_file.write_bytes(dequantized(path.read_bytes()))
    except UserError as none:
        print(f"  {DEQUANTIZED:12} {none}")
        return
    print_line(DEQUANTIZED, float_file, "xnnpack", noise, expected)


def print_line(
    name: str, path: Path, kernels: Kernels, noise: bytes, expected: NDArray[Any]
) -> None:
    options = Options(kernels, acceleration=Acceleration(float32=True))
    try:
        with closing(IsolatedModel.open(path, options)) as model:
            found = answers(model, noise, len(expected))
    except ModelRejected as rejected:
        print(f"  {name:12} {rejected}")
        return
    differences = np.abs(found - expected)
    others = int(np.sum(found.argmax(axis=1) != expected.argmax(axis=1)))
    print(
        f"  {name:12} other label {others:3} of {len(expected)}, largest difference"
        f" {differences.max():.4g}, mean {differences.mean():.3g}"
    )


def answers(model: IsolatedModel, noise: bytes, count: int) -> NDArray[Any]:
    """Return the first output for each input: (inputs, values), float64."""
    batch = model.run(noise, count)
    first = model.outputs[0]
    width = int(np.prod(first.shape)) * np.dtype(first.dtype).itemsize
    rows = np.frombuffer(batch.outputs, np.uint8).reshape(count, -1)[:, :width]
    return np.ascontiguousarray(rows).view(first.dtype).astype(np.float64)


if __name__ == "__main__":
    main()
