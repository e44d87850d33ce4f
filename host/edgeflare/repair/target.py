"""The compressed model that a repairer is for: what it answers with, and which file it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from edgeflare.errors import UserError
from edgeflare.models.decode import detect_outputs
from edgeflare.models.evaluation import Tensor
from edgeflare.models.graph import Graph, GraphTensor
from edgeflare.models.signature import class_count
from edgeflare.models.writing import notes

STEPS = 256
"""Steps in which a repairer sees an output: of an 8-bit type, or between 0 and 1."""

NOTE = "edgeflare.repair"
"""The entry of a repaired file's metadata, JSON: name and sha256 of the model as it was before."""


@dataclass(frozen=True)
class Target:
    """A model that can be repaired.

    Attributes:
        name: what the user calls it.
        sha256: of its file, in hexadecimal.
        output: its one output, (1, classes) or (1, 1, 1, classes): int8, uint8 or float32.
        inputs: all its inputs.
        summing: the outputs of one input sum to 1, since they come from a softmax, and are
            float32 or `in_steps`.

    """

    name: str
    sha256: str
    output: Tensor
    inputs: tuple[Tensor, ...]
    summing: bool

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.output.shape[-1]

    @property
    def in_steps(self) -> bool:
        """Whether an output is the number of steps of 1/256 above the least raw output."""
        return _in_steps(self.output)

    @property
    def lowest(self) -> int:
        """The least raw output; 0 for float32."""
        return _lowest(self.output.dtype)

    @property
    def most(self) -> int:
        """The most that the outputs of one input sum to, in steps above the lowest."""
        # Each output is rounded by at most one step.
        return STEPS + self.classes if self.summing else STEPS * self.classes


def read_target(content: bytes, name: str = "the model") -> Target:
    """Read a model that is to be repaired.

    Args:
        content: the compressed model's file.
        name: what the user calls it.

    Raises:
        UserError: it cannot be read, has several outputs, is repaired already, or answers with
            something that a repairer cannot mend.

    """
    graph = Graph(content, name)
    before = repaired(content)
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
    output = _tensor(graph.tensors[graph.outputs[0]])
    class_count(output, name)
    operators = [one.name for one in graph.operators]
    _check(name, output, operators)
    summing = "SOFTMAX" in _last(operators) and (output.dtype == "float32" or _in_steps(output))
    inputs = tuple(_tensor(graph.tensors[index]) for index in graph.inputs)
    return Target(name, hashlib.sha256(content).hexdigest(), output, inputs, summing)


@dataclass(frozen=True)
class Before:
    """Which model a repaired one was made from."""

    name: str
    sha256: str


def repaired(content: bytes) -> Before | None:
    """Return which model a repaired one was made from; None for one that is not repaired."""
    note = notes(content).get(NOTE)
    if note is None:
        return None
    said = json.loads(note)
    return Before(str(said["name"]), str(said["sha256"]))


def note_of(target: Target) -> bytes:
    """Return what a repaired file says of the model that it was made from."""
    return json.dumps({"name": target.name, "sha256": target.sha256}, sort_keys=True).encode()


def _check(name: str, output: Tensor, operators: list[str]) -> None:
    if output.dtype not in ("int8", "uint8", "float32"):
        raise UserError(
            f"{name}: output {output.name!r} is {output.dtype or 'of an unknown type'}, but a "
            "repairer takes int8, uint8 or float32: convert the model so"
        )
    if output.dtype == "float32" and detect_outputs(output, operators) != "probabilities":
        raise UserError(
            f"{name} answers with float32 logits, which a repairer cannot mend: export it with a "
            "softmax as its last layer, or quantize its output to int8"
        )


def _tensor(tensor: GraphTensor) -> Tensor:
    scale, zero_point = (*tensor.scales, 0.0)[0], (*tensor.zero_points, 0)[0]
    return Tensor(tensor.name, tensor.shape, tensor.dtype, scale, zero_point)


def _in_steps(output: Tensor) -> bool:
    quantization = (output.scale, output.zero_point)
    return output.dtype != "float32" and quantization == (1 / STEPS, _lowest(output.dtype))


def _last(operators: list[str]) -> list[str]:
    """Return the name of the operator that gives the output, whatever only converts it apart."""
    converting = ("DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE")
    return [name for name in operators if name not in converting][-1:]


def _lowest(dtype: str) -> int:
    return int(np.iinfo(dtype).min) if dtype in ("int8", "uint8") else 0
