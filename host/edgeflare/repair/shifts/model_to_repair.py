"""The compressed model that is to be repaired: its file, inputs and output."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import msgspec

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import notes
from edgeflare.outside_text import json_value
from edgeflare.repair.shift_details import NOTE
from edgeflare.tasks.classification import ClassDecoder, class_count


@dataclass(frozen=True)
class ModelToRepair:
    """A model that can be repaired.

    Attributes:
        name: what the user calls it.
        sha256: digest of its file, in hexadecimal.
        output: sole output, (1, classes) or (1, 1, 1, classes): int8, uint8 or float32.
        inputs: all its inputs.

    """

    name: str
    sha256: str
    output: Tensor
    inputs: tuple[Tensor, ...]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.output.shape[-1]


def read_model_to_repair(content: bytes, name: str = "the model") -> ModelToRepair:
    """Read a model that is to be repaired.

    Args:
        content: the compressed model's file.
        name: what the user calls it.

    Raises:
        UserError: it cannot be read, has several outputs, is repaired already, or its output is of
            a type that cannot be repaired.

    """
    graph = Graph(content, name)
    before = earlier_repair(content)
    if before is not None:
        raise UserError(
            f"{name} has been repaired already (before that its sha256 was {before.sha256[:12]}…): "
            f"repair the model that it was made from, {before.name}"
        )
    if len(graph.outputs) != 1:
        raise UserError(
            f"{name} has {len(graph.outputs)} outputs, but only models with one can be repaired: "
            "export it with its class scores as its only output"
        )
    output = graph.tensors[graph.outputs[0]].as_interface
    class_count(output, name)
    if output.dtype not in ("int8", "uint8", "float32"):
        raise UserError(
            f"{name}: output {output.name!r} is {output.dtype or 'of an unknown type'}, but a "
            "repairer takes int8, uint8 or float32: convert the model so"
        )
    inputs = tuple(graph.tensors[index].as_interface for index in graph.inputs)
    return ModelToRepair(name, hashlib.sha256(content).hexdigest(), output, inputs)


@dataclass(frozen=True)
class EarlierRepair:
    """Which model a repaired one was made from."""

    name: str
    sha256: str


def earlier_repair(content: bytes) -> EarlierRepair | None:
    """Return which model a repaired one was made from; None for one that is not repaired.

    A note that says anything else, as only somebody else writes it, says nothing.
    """
    note = notes(content).get(NOTE)
    if note is None:
        return None
    try:
        return msgspec.convert(json_value(note), EarlierRepair)
    except ValueError:
        return None


def note_of(model: ModelToRepair) -> bytes:
    """Return the metadata entry that names the model a repaired file was made from."""
    return json.dumps({"name": model.name, "sha256": model.sha256}, sort_keys=True).encode()


def require_probabilities(decoder: ClassDecoder, name: str) -> None:
    """Refuse a model that gives logits.

    Args:
        decoder: how its raw outputs are read.
        name: what the user calls the model.

    """
    if decoder.meaning != "probabilities":
        raise UserError(
            f"{name} gives logits, and shifts are made of probabilities: convert it with a softmax"
            " as its last layer"
        )
