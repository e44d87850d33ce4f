"""A compression of an original that is made on the spot, to have a measure for figures of another.

It is litert-quantizer's int8, with one scale for each channel and ranges from some inputs. Needs
the extra `repair`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from edgeflare.stderr_diversion import diverted_stderr

_SIGNATURE = "serving_default"


def reference_int8(content: bytes, rows: NDArray[np.generic]) -> bytes:
    """Return a float model quantized to int8.

    Args:
        content: the `.tflite` of the original, of one input, in float32.
        rows: (n, *shape) inputs as it takes them, from which ranges are taken.

    Raises:
        UserError: the extra is not installed, or the library does not quantize the model.

    """
    graph = Graph(content)
    if len(graph.inputs) > 1 or graph.tensors[graph.inputs[0]].dtype != "float32":
        raise UserError("only originals with one input of float32 are quantized to compare with")
    try:
        from litert_quantizer import quantizer, recipe  # noqa: PLC0415 - needs an extra
        from litert_quantizer.calibrator import Calibrator  # noqa: PLC0415
        from litert_quantizer.recipe_manager import RecipeManager  # noqa: PLC0415
        from litert_quantizer.utils import qsv_utils  # noqa: PLC0415
    except ImportError:
        raise UserError(
            "a reference compression needs litert-quantizer: pip install 'edgeflare[repair]'"
        ) from None
    signed, key, name = _with_signature(content)
    shape = graph.tensors[graph.inputs[0]].shape
    samples = [{name: np.ascontiguousarray(row.reshape(shape))} for row in rows]
    rules, manager = recipe.static_wi8_ai8(), RecipeManager()
    manager.load_quantization_recipe(rules)
    try:
        with _silence():
            calibrator = Calibrator(bytearray(signed), qsv_update_func=qsv_utils.min_max_update)
            calibrator.calibrate({key: samples}, manager)
            made = quantizer.Quantizer(bytearray(signed), rules)
            result = made.quantize(calibrator.get_model_qsvs(), enable_progress_report=False)
    except Exception as error:  # whatever the library raises of a model that it does not take
        raise UserError(
            f"litert-quantizer does not quantize the original ({type(error).__name__}:"
            f" {str(error)[:200]})"
        ) from error
    return bytes(result.quantized_model)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what the library and the runtime behind it say of their progress off the terminal."""
    with diverted_stderr(), redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _with_signature(content: bytes) -> tuple[bytes, str, str]:
    """Return a file with a signature, its key, and the name that it has for the only input."""
    model: Any = read_model(content)
    if model.signatureDefs:
        known = model.signatureDefs[0]
        return content, known.signatureKey.decode(), known.inputs[0].name.decode()
    graph = model.subgraphs[0]
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = _SIGNATURE, 0
    made.inputs = [_named(f"input_{at}", tensor) for at, tensor in enumerate(graph.inputs)]
    made.outputs = [_named(f"output_{at}", tensor) for at, tensor in enumerate(graph.outputs)]
    model.signatureDefs = [made]
    return written(model), _SIGNATURE, "input_0"


def _named(name: str, tensor: int) -> Any:
    entry = schema.TensorMapT()
    entry.name, entry.tensorIndex = name, int(tensor)
    return entry
