"""A quantizer's own modes beside repairs: files of int8, all calibrated on the seeds of a pair.

    python benchmarks/repair_quantizer_modes.py PAIRS_FOLDER --images NAME=NPZ … --out runs/modes

For each pair that --images names, litert-quantizer makes a file of its original by each mode: int8
weights and activations with the least and largest values, with its default calibration, which is a
moving average, and with weights clipped by OCTAV and by MSE, which leaves a softmax in float; the
last layer and the softmax in float ("selective"). They are judged by repair_methods.py, to which
other options are passed on, such as --files NAME=FILE for repairs. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from litert_quantizer import quantizer, recipe
from litert_quantizer.algorithm_manager import AlgorithmName
from litert_quantizer.calibrator import Calibrator
from litert_quantizer.recipe_manager import RecipeManager
from litert_quantizer.utils import qsv_utils
from numpy.typing import NDArray

from edgeflare.errors import EdgeFlareError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph

Update = Callable[[Any, Any], Any]
"""How the range of a tensor is updated with that on one more input."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode of the library.

    Attributes:
        algorithm: its name, which rounds and clips weights.
        update: how ranges of activations are calibrated.
        selective: the last layer and what follows stay in float.

    """

    algorithm: AlgorithmName
    update: Update = qsv_utils.min_max_update
    selective: bool = False


MODES = {
    "min-max": Mode(AlgorithmName.MIN_MAX_UNIFORM_QUANT),
    "default-calibration": Mode(
        AlgorithmName.MIN_MAX_UNIFORM_QUANT, qsv_utils.moving_average_update
    ),
    "octav": Mode(AlgorithmName.OCTAV),
    "mse": Mode(AlgorithmName.MSE),
    "selective": Mode(AlgorithmName.MIN_MAX_UNIFORM_QUANT, selective=True),
}


def main() -> int:
    arguments, others = parse()
    files = []
    for setting in arguments.images:
        name, _, _ = setting.partition("=")
        for file in made(load_pair(arguments.folder / name), arguments.out / name):
            files.append(f"{name}={file}")
    judge = [sys.executable, str(Path(__file__).with_name("repair_methods.py"))]
    judge += [str(arguments.folder), "--images", *arguments.images]
    judge += ["--files", *files, *arguments.files, *others]
    return subprocess.run(judge, check=False).returncode


def parse() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--images", nargs="+", required=True, help="NAME=NPZ, images of a pair")
    parser.add_argument("--files", nargs="+", default=[], help="NAME=FILE, of a pair to judge")
    parser.add_argument("--out", type=Path, default=Path("runs/modes"))
    return parser.parse_known_args()


def made(pair: Pair, out: Path) -> Iterator[Path]:
    """Make the files of a pair; yield their paths."""
    out.mkdir(parents=True, exist_ok=True)
    original = Path(str(pair.original))
    rows = encoded_seeds(pair, original)
    for name, mode in MODES.items():
        file = out / f"{name}.tflite"
        file.write_bytes(quantized(original.read_bytes(), rows, mode))
        yield file


def encoded_seeds(pair: Pair, original: Path) -> NDArray[Any]:
    """Return the seeds as the original takes them, (n, ...)."""
    with closing(open_tflite(original)) as model:
        inputs = ModelInputs(pair.interface, model.signature.inputs, original.name)
        return inputs.encoder().encode(inputs.load(pair.seeds).inputs)


def quantized(original: bytes, rows: NDArray[Any], mode: Mode) -> bytes:
    """Return the file that the library makes of a float model."""
    rules = recipe.static_wi8_ai8(mode.algorithm)
    if mode.selective:
        rules += float_head(original)
    manager = RecipeManager()
    manager.load_quantization_recipe(rules)
    ((key, signature),) = Interpreter(model_content=original).get_signature_list().items()
    (name,) = signature["inputs"]
    shape = Graph(original).tensors[Graph(original).inputs[0]].shape
    samples = [{name: np.ascontiguousarray(row.reshape(shape))} for row in rows]
    calibrator = Calibrator(bytearray(original), qsv_update_func=mode.update)
    calibrator.calibrate({key: samples}, manager)
    made = quantizer.Quantizer(bytearray(original), rules)
    result = made.quantize(calibrator.get_model_qsvs(), enable_progress_report=False)
    return bytes(result.quantized_model)


def float_head(original: bytes) -> list[dict[str, Any]]:
    """Return the rules that leave the last layer with weights and what follows in float."""
    graph = Graph(original)
    last = max(one.index for one in graph.layers if one.name == "FULLY_CONNECTED")
    names = {one.name for one in graph.layers if one.index >= last}
    outputs = [graph.tensors[one.outputs[0]].name for one in graph.layers if one.index >= last]
    unchanged = {"algorithm_key": AlgorithmName.NO_QUANTIZE.value, "op_config": {}}
    return [
        {"regex": f"^{name};?$", "operation": operation, **unchanged}
        for name in outputs
        for operation in sorted(names)
    ] + [{"regex": ".*", "operation": "OUTPUT", **unchanged}]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
