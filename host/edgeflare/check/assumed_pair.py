"""What is assumed of two models and some inputs that come without a `pair.toml`.

The range of a quantized input tells how pixels were scaled when the model was calibrated: what
calibration saw reaches over all of it. Of a model that takes floats nothing tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final

from edgeflare.core.tensor import Tensor
from edgeflare.domains.image.image_tensor import image_tensor
from edgeflare.domains.image.preprocess import PRESETS
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_toml import pair_toml
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_file import is_flatbuffer
from edgeflare.models.tflite_graph import Graph, GraphTensor

_NEAR: Final = 0.12
"""Share of a range by which its ends may be off those of a preprocessing: calibration need not have
seen a white pixel."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of a pair.

    Attributes:
        settings: for what the user did not say.
        notes: the same, a sentence each without its full stop.
        guessed: that of them that may well be wrong; empty where nothing is.

    """

    settings: Settings
    notes: tuple[str, ...]
    guessed: str = ""


def assumed_of(compressed: Path, given: Settings) -> Assumed:
    """Return what is assumed of a pair whose compressed model is known.

    Args:
        compressed: its file.
        given: what the user says.

    Raises:
        UserError: the file cannot be read.

    """
    content = read_model_file(compressed)
    if not is_flatbuffer(content):
        return Assumed(Settings(), ())  # whoever opens it says what is wrong
    graph = Graph(content, str(compressed))
    tensor = graph.tensors[graph.inputs[0]]
    if len(graph.inputs) > 1 or not _is_picture(tensor):
        return Assumed(Settings(), ())
    notes, guessed = [], ""
    resize = preset = None
    if given.resize is None:
        resize = "stretch"
        notes.append("pictures of another size are stretched to the model's (--resize)")
    if (given.preset, given.scale, given.mean, given.std) == (None,) * 4:
        preset, why, known = _preset(graph, tensor)
        notes.append(f'pixels are prepared as by the preset "{preset}" (--preset): {why}')
        guessed = "" if known else notes[-1]
    return Assumed(Settings(resize=resize, preset=preset), tuple(notes), guessed)


def _is_picture(tensor: GraphTensor) -> bool:
    try:
        image_tensor(Tensor(tensor.name, tensor.shape, tensor.dtype))
    except UserError:
        return False
    return prod(tensor.shape) > 1


def _preset(graph: Graph, tensor: GraphTensor) -> tuple[str, str, bool]:
    """Return the preset whose values fill the range of the input best, why, and whether any do."""
    readers = [one for one in graph.layers if tensor.index in one.inputs]
    quantized = [one.outputs[0] for one in readers if one.name == "QUANTIZE"]
    known = range_of(tensor) or (range_of(graph.tensors[quantized[0]]) if quantized else None)
    if known is None:
        return "unit", "the compressed model takes floats, so nothing tells", False
    held = f"its input holds {known.low:.3g} to {known.high:.3g}"
    wide = known.high - known.low
    off = {
        name: max(abs(known.low - low), abs(known.high - high)) / wide
        for name in ("unit", "signed", "raw", "imagenet")
        for low, high in [_ends(name, tensor.shape[-1])]
    }
    best = min(off, key=lambda name: off[name])
    if off[best] > _NEAR:
        return "unit", f"{held}, which is that of no preset", False
    return best, held, True


def _ends(name: str, channels: int) -> tuple[float, float]:
    values = PRESETS[name].table(3 if channels not in (1, 3) or name == "imagenet" else channels)
    return float(values.min()), float(values.max())


def assumed_toml(pair: Pair, notes: tuple[str, ...]) -> str:
    """Return a `pair.toml` of a pair, with what was assumed as comments.

    Args:
        pair: of images.
        notes: what was assumed.

    """
    return "\n".join(
        [
            "# Written by edgeflare check. What was assumed, and may have to be corrected:",
            *(f"# - {one}" for one in notes),
            pair_toml(pair, pair.name, str(pair.compressed.absolute())),
            *_COMMENTS,
        ]
    )


_COMMENTS: Final = (
    "# model input = (pixel / scale - mean) / std",
    "",
    "# [task]",
    '# name = "classification"  # or regression, threshold, detection, segmentation, transcript',
    "# Their keys are in docs/tasks.md. Arrays in place of pictures: remove [preprocess], and say",
    "# [inputs.input]",
    '# domain = "array"  # and tensor = "its name in the model"; see docs/pairs.md',
    "",
    "# [gates]",
    "# accuracy-drop = 0.01",
    "",
)
