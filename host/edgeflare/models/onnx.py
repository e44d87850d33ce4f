"""ONNX models as originals, on onnxruntime's CPU kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.in_process import InProcessModel, reason
from edgeflare.models.signature import CHANNELS, classifier_signature
from edgeflare.models.tflite import check_model_file

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

_DTYPES = {"tensor(float)": "float32", "tensor(int8)": "int8", "tensor(uint8)": "uint8"}
_QUIET = 4


def open_onnx(path: Path) -> InProcessModel:
    """Load an ONNX model with one image input, NHWC or NCHW, and one output.

    An input is NCHW when its second dimension is a number of channels and its last is not; the
    signature is NHWC all the same. Symbolic dimensions count as 1, so a model with a dynamic
    batch dimension is invoked on one input at a time; threads: one.

    Raises:
        UserError: onnxruntime is not installed, the file is missing or refused, or it is no image
            classifier with one input and one output.

    """
    check_model_file(path)
    session = _session(path)
    inputs, outputs = _tensors(session.get_inputs()), _tensors(session.get_outputs())
    planar = len(inputs) == 1 and is_planar(inputs[0].shape)
    if planar:
        inputs = [_interleaved(inputs[0])]
    signature = classifier_signature(str(path), inputs, outputs)
    name = signature.input.name

    def invoke(image: NDArray[np.generic]) -> NDArray[np.generic]:
        if planar:
            image = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
        output: NDArray[np.generic] = session.run(None, {name: image})[0]
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
