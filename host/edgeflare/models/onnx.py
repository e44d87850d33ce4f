"""ONNX models as originals, on onnxruntime's CPU kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgeflare.core.tensor import Tensor
from edgeflare.domains.image.image_tensor import CHANNELS
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.models.tflite import check_model_file
from edgeflare.python_callable import reason

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

_DTYPES = {"tensor(float)": "float32", "tensor(int8)": "int8", "tensor(uint8)": "uint8"}
_QUIET = 4


def open_onnx(path: Path) -> InProcessModel:
    """Load an ONNX model with one input and one output.

    An input is an image in NCHW when its second dimension is a number of channels and its last is
    not; the signature is NHWC all the same. Symbolic dimensions count as 1, so a model with a
    dynamic batch dimension is invoked on one input at a time; threads: one.

    Raises:
        UserError: onnxruntime is not installed, the file is missing or refused, or it has several
            inputs or outputs.

    """
    check_model_file(path)
    session = _session(path)
    inputs, outputs = _tensors(session.get_inputs()), _tensors(session.get_outputs())
    planar = len(inputs) == 1 and is_planar(inputs[0].shape)
    if planar:
        inputs = [_interleaved(inputs[0])]
    for role, tensors in (("input", inputs), ("output", outputs)):
        if len(tensors) != 1:
            names = ", ".join(repr(tensor.name) for tensor in tensors) or "none"
            raise UserError(
                f"{path} has {len(tensors)} {role}s ({names}), but of an ONNX model exactly one is"
                f" supported: export it with one {role}, or as .tflite"
            )
        if tensors[0].dtype not in _DTYPES.values():
            raise UserError(
                f"{path}: {role} {tensors[0].name!r} is {tensors[0].dtype}, but of an ONNX model"
                f" {', '.join(_DTYPES.values())} are supported: convert the model so"
            )
    signature = Signature(tuple(inputs), tuple(outputs))
    name = signature.input.name

    def invoke(one: NDArray[np.generic]) -> NDArray[np.generic]:
        if planar:
            one = np.ascontiguousarray(one.transpose(0, 3, 1, 2))
        output: NDArray[np.generic] = session.run(None, {name: one})[0]
        return output

    return InProcessModel(signature, invoke)


def is_planar(shape: Sequence[int]) -> bool:
    """Tell whether an image input is NCHW."""
    return len(shape) == 4 and shape[1] in CHANNELS and shape[3] not in CHANNELS


def _session(path: Path) -> onnxruntime.InferenceSession:
    try:
        import onnxruntime  # noqa: PLC0415  # an extra: absent unless asked for
    except ImportError as missing:
        raise UserError(
            f'{path}: ONNX models need onnxruntime: pip install "edgeflare[onnx]"'
        ) from missing
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _QUIET
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as refused:  # onnxruntime's errors share no base class
        raise UserError(
            f"{path}: onnxruntime {onnxruntime.__version__} refuses the file: {reason(refused)}"
        ) from refused


def _tensors(nodes: Sequence[onnxruntime.NodeArg]) -> list[Tensor]:
    return [
        Tensor(
            node.name,
            tuple(size if isinstance(size, int) else 1 for size in node.shape),
            _DTYPES.get(node.type, node.type),
        )
        for node in nodes
    ]


def _interleaved(tensor: Tensor) -> Tensor:
    batch, channels, height, width = tensor.shape
    return Tensor(tensor.name, (batch, height, width, channels), tensor.dtype)
