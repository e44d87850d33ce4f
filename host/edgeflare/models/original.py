"""The original model, whatever it is: a TFLite file, an ONNX file, or a Python callable."""

from __future__ import annotations

from pathlib import Path

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.callable import open_callable
from edgeflare.models.evaluator import HostModel
from edgeflare.models.onnx import open_onnx
from edgeflare.models.tflite import open_tflite
from edgeflare.suggestion import path_suggestion


def open_original(source: str, compressed: Tensor) -> HostModel:
    """Open an original model.

    Args:
        source: a path that ends in .tflite or .onnx, or a callable (`module:function`,
            `path/to/file.py:function`).
        compressed: the compressed model's input, which tells a callable its input's size.

    Raises:
        UserError: the source is none of these, or cannot be opened.
        InfrastructureError: no worker process can be started.

    """
    suffix = Path(source).suffix.lower()
    if suffix == ".tflite":
        return open_tflite(Path(source))
    if suffix == ".onnx":
        return open_onnx(Path(source))
    if is_callable(source):
        return open_callable(source, compressed)
    if Path(source).exists():
        wrong = f"{source!r} is no original model"
    else:
        wrong = f"there is no original model {source}{path_suggestion(Path(source), Path.is_file)}"
    raise UserError(
        f"{wrong}: give a .tflite file, an .onnx file, or a Python callable as module:function"
    )


def is_callable(source: str) -> bool:
    """Tell whether a source names a Python callable rather than a file."""
    module, _, function = source.rpartition(":")
    return bool(module) and function.isidentifier()
