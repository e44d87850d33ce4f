"""The original model, whatever it is: a TFLite file, an ONNX file, or a Python callable."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import NoReturn

from edgeflare.errors import UserError
from edgeflare.models.evaluator import HostModel
from edgeflare.models.in_process import open_callable
from edgeflare.models.invocation import ONCE
from edgeflare.models.invocation_names import invocation_of
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.onnx import open_onnx
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import open_tflite
from edgeflare.python_callable import is_callable
from edgeflare.suggestion import path_suggestion


def open_original(pair: Pair, compressed: ModelInputs) -> HostModel:
    """Open the original model of a pair.

    Args:
        pair: names a path that ends in .tflite or .onnx, or a callable (`module:function`,
            `path/to/file.py:function`).
        compressed: the compressed model's inputs, which tell a callable its input's shape.

    Raises:
        UserError: the source is none of these, or cannot be opened.
        InfrastructureError: no worker process can be started.

    """
    source = str(pair.original)
    invocation = pair.interface.invocation
    suffix = Path(source).suffix.lower()
    if suffix == ".tflite":
        return open_tflite(
            Path(source), invocation=invocation_of(invocation, Path(source), pair.compressed)
        )
    if not is_callable(source) and suffix != ".onnx":
        _refuse(source)
    if invocation != ONCE or len(compressed.tensors) > 1:
        raise UserError(
            f"{source}: an original with several inputs, a state, fixed shapes or a signature has"
            " to be a .tflite file: convert it"
        )
    (tensor,) = compressed.tensors.values()
    if suffix == ".onnx":
        return open_onnx(Path(source), tensor.shape)
    # An image without a dimension for its channels has one for the function.
    as_image = (1, *compressed.shape)
    return open_callable(source, as_image if prod(as_image) == prod(tensor.shape) else tensor.shape)


def _refuse(source: str) -> NoReturn:
    if Path(source).exists():
        wrong = f"{source!r} is no original model"
    else:
        wrong = f"there is no original model {source}{path_suggestion(Path(source), Path.is_file)}"
    raise UserError(
        f"{wrong}: give a .tflite file, an .onnx file, or a Python callable as module:function"
    )
