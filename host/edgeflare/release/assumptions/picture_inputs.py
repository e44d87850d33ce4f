"""How pictures are assumed to become what a model takes.

The range of a quantized input tells how pixels were scaled when the model was calibrated: what
calibration saw reaches over all of it. In 16 bits a range is as wide below 0 as above, so that it
tells how large values are, and not whether some are below 0. Of a model that takes floats nothing
tells.
"""

from __future__ import annotations

from math import prod
from typing import Final

from edgeflare.core.tensor import Tensor
from edgeflare.domains.image.preprocess import PRESETS, image_tensor
from edgeflare.errors import UserError
from edgeflare.models.pair_file import Settings
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.pages.facts import significant
from edgeflare.release.assumptions.assumption import Assumption

_NEAR: Final = 0.12
"""Share of a range by which its ends may be off those of a preprocessing: calibration need not have
seen a white pixel."""


def assumed_pictures(graph: Graph, tensor: GraphTensor, given: Settings) -> Assumption:
    """Return how pictures are assumed to be resized and scaled.

    Args:
        graph: graph of the compressed model.
        tensor: input of the graph that takes pictures.
        given: what the user says.

    """
    notes, guessed = [], ""
    resize = preset = None
    if given.resize is None:
        resize = "stretch"
        notes.append("pictures of another size are stretched to the model's (--resize)")
    if not given.says_values:
        preset, why, known = _preset(graph, tensor)
        notes.append(f'pixels are prepared as by the preset "{preset}" (--preset): {why}')
        guessed = "" if known else notes[-1]
    return Assumption(Settings(resize=resize, preset=preset), tuple(notes), guessed)


def picture_size(tensor: GraphTensor) -> tuple[int, int] | None:
    """Return height and width of an input that may take pictures; None of others."""
    try:
        height, width, _ = image_tensor(Tensor(tensor.name, tensor.shape, tensor.dtype)).shape
    except UserError:
        return None
    return (height, width) if prod(tensor.shape) > 1 else None


def _preset(graph: Graph, tensor: GraphTensor) -> tuple[str, str, bool]:
    """Return the preset whose values fill the range of the input best, why, and whether any do."""
    readers = [layer for layer in graph.layers if tensor.index in layer.inputs]
    quantized = [reader.outputs[0] for reader in readers if reader.name == "QUANTIZE"]
    known = range_of(tensor) or (range_of(graph.tensors[quantized[0]]) if quantized else None)
    if known is None and tensor.dtype.startswith(("int", "uint")):
        why = f"the compressed model takes {tensor.dtype} without a scale"
        holds = tensor.limits[1] >= _WHITE
        return (
            "raw",
            f"{why}, pixels as they are" if holds else f"{why}, too small for white",
            holds,
        )
    if known is None:
        kind = "floats" if tensor.dtype.startswith("float") else tensor.type_name
        return "unit", f"the compressed model takes {kind}, so nothing tells", False
    held = f"its input holds {significant(known.low)} to {significant(known.high)}"
    wide, symmetric = known.high - known.low, known.steps == _STEPS_OF_16_BITS
    off = {
        name: max(abs(known.low - low), abs(known.high - high)) / wide
        for name in ("unit", "signed", "raw", "imagenet")
        for low, high in [_ends(name, symmetric=symmetric)]
    }
    best, *others = sorted(off, key=lambda name: off[name])
    if off[best] > _NEAR:
        return "unit", f"{held}, which is that of no preset", False
    if alike := [name for name in others if off[name] == off[best]]:
        also = " or ".join(f'"{name}"' for name in alike)
        return best, f"{held} in 16 bits, by which it may as well be {also}", False
    return best, held, True


_STEPS_OF_16_BITS: Final = 2**16 - 1

_WHITE: Final = 255
"""The largest value of a pixel."""


def _ends(name: str, *, symmetric: bool) -> tuple[float, float]:
    values = PRESETS[name].table(3)  # what has no mean of its own for a channel has one for all
    low, high = float(values.min()), float(values.max())
    most = max(-low, high)
    return (-most, most) if symmetric else (low, high)
