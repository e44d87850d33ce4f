"""The requirements on an image classifier's inputs and outputs: shapes, types, numbers."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Signature
from edgeflare.tasks.classification import class_count

DTYPES = ("float32", "int8", "uint8")
"""Types that an input or output may have."""

CHANNELS = (1, 3, 4)
"""Numbers of channels that an image may have."""


def classifier_signature(
    model: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> Signature:
    """Return the signature of a model that has one input and one output.

    Args:
        model: what the user calls the model, for the messages.
        inputs: all its inputs.
        outputs: all its outputs.

    Raises:
        UserError: there are several inputs or outputs, or one of them is not what an image
            classifier has.

    """
    signature = Signature((_only(model, "input", inputs),), (_only(model, "output", outputs),))
    image_shape(signature.input, model)
    class_count(signature.output, model)
    return signature


def image_shape(tensor: Tensor, model: str = "the model") -> tuple[int, int, int]:
    """Return (height, width, channels) of the images that an input takes.

    Raises:
        UserError: the input is neither (1, H, W, C) with 1, 3 or 4 channels, nor (1, H, W).

    """
    shape = tensor.shape
    if len(shape) == 3:
        shape = (*shape, 1)
    if len(shape) != 4 or shape[0] != 1 or shape[3] not in CHANNELS or min(shape) < 1:
        raise UserError(
            f"{model}: input {tensor.name!r} has shape {tensor.shape}; an image model takes one "
            "image at a time, (1, height, width, channels) with 1, 3 or 4 channels: convert it "
            "with a fixed batch size of 1"
        )
    return shape[1], shape[2], shape[3]


_CURE = {
    "input": "export the model with the image as its only input",
    "output": "export the model with its class scores as its only output",
}


def _only(model: str, role: str, tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) != 1:
        names = ", ".join(repr(tensor.name) for tensor in tensors) or "none"
        raise UserError(
            f"{model} has {len(tensors)} {role}s ({names}), but exactly one is needed: "
            f"{_CURE[role]}"
        )
    tensor = tensors[0]
    if tensor.dtype not in DTYPES:
        raise UserError(
            f"{model}: {role} {tensor.name!r} is {tensor.dtype}, but {', '.join(DTYPES)} are "
            f"what an {role} may be: convert the model so"
        )
    return tensor
