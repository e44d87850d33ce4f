"""Shifts of the boundaries between classes: the repairer, and its exact arithmetic.

Compression moves the boundary between each two classes by another amount. A table of shifts moves
them back: it turns the probability vector p into

    p' = p · (1 + S p),    S antisymmetric,

so that the margin between classes a and b changes by about 2 S[a, b] p[a] p[b]: most where both
have a probability of one half, not at all where one of them has all of it. The sum of the
probabilities is unchanged, since p · S p = 0.

The result is the same on every machine: 8-bit probabilities are multiples of 1/256 and shifts are
multiples of `STEP`, so that every partial sum of S p, including `_OFF_HALVES`, is a whole number of
2**-22 and below 4: float32 represents it exactly, in any order, with or without fused multiply-
adds. The product is rounded once, as IEEE 754 defines. `_OFF_HALVES` is larger than that rounding,
so that no value lies halfway between two steps of the output, where one kernel rounds to even and
another away from zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.shift_details import MOST_STEPS, NOTE
from edgeflare.repair.shifts.model_to_repair import (
    ModelToRepair,
    note_of,
    read_model_to_repair,
)

STEP = 1 / 64
"""Shifts are multiples of this."""

_OFF_HALVES = 2.0**-22


@dataclass(frozen=True, eq=False)
class Shifts:
    """Shifts of the boundaries between each two classes.

    Attributes:
        steps: (classes, classes) int8, antisymmetric, in units of `STEP`. `steps[a, b]` above 0
            moves the boundary between the two in favour of a.

    """

    steps: NDArray[np.int8]

    def __post_init__(self) -> None:
        steps = self.steps
        if steps.dtype != np.int8 or steps.ndim != 2 or not np.array_equal(steps, -steps.T):
            raise ValueError("shifts are a square of int8, antisymmetric")
        if np.abs(steps).max(initial=0) > MOST_STEPS:
            raise ValueError(f"shifts are of {MOST_STEPS} steps at most")

    @property
    def table(self) -> NDArray[np.float32]:
        """S: (classes, classes)."""
        table: NDArray[np.float32] = self.steps.astype(np.float32) * np.float32(STEP)
        return table

    def apply(self, raw: NDArray[np.generic], output: Tensor) -> NDArray[np.generic]:
        """Return the repaired model's raw outputs, bit for bit where they are 8-bit.

        Float outputs that are no multiples of 1/256 may differ by a rounding of float32.

        Args:
            raw: (batch, classes), the raw outputs of the model before repair.
            output: output tensor of the model; the scale is 1/256, or there is none.

        """
        p = raw.astype(np.float32)
        if output.scale:
            p = (p - np.float32(output.zero_point)) * np.float32(output.scale)
        factors = 1.0 + _OFF_HALVES + p.astype(np.float64) @ self.table.T.astype(np.float64)
        shifted: NDArray[np.float32] = p * factors.astype(np.float32)
        if not output.scale:
            return shifted
        limits = np.iinfo(output.dtype)
        steps = np.rint(shifted / np.float32(output.scale)) + output.zero_point
        rounded: NDArray[np.generic] = np.clip(steps, limits.min, limits.max).astype(output.dtype)
        return rounded


def append(content: bytes, shifts: Shifts, model: ModelToRepair, name: str = "the model") -> bytes:
    """Return the model with the shifts appended behind its last operator.

    Its inputs and outputs stay as they were: the same inputs, and an output of the same shape, type
    and quantization, so that an app needs no change.

    Args:
        content: the compressed model's file.
        shifts: the shifts that were fitted to this very file.
        model: the model that they were fitted to.
        name: what the user calls the file.

    Raises:
        UserError: the shifts are for another model, or this one cannot be repaired.

    """
    found = read_model_to_repair(content, name)
    if found.sha256 != model.sha256 or found.classes != len(shifts.steps):
        raise UserError(
            f"{name} is not the model that this repairer is for (sha256 {found.sha256[:12]}…, but "
            f"{model.sha256[:12]}… is wanted): give {model.name}, or repair a run of this one"
        )
    output = Graph(content, name).outputs[0]
    writer = Writer(content)
    writer.replace_output(output, _write(writer, shifts, model.output, output))
    writer.note(NOTE, note_of(model))
    return writer.content()


def standalone(shifts: Shifts, model: ModelToRepair) -> bytes:
    """Return the shifts alone, to run after a model that cannot be edited: raw vector to vector."""
    writer = Writer()
    vector = writer.tensor(model.output)
    writer.begin_and_end([vector], [_write(writer, shifts, model.output, vector)])
    writer.note(NOTE, note_of(model))
    return writer.content()


def _write(writer: Writer, shifts: Shifts, output: Tensor, vector: int) -> int:
    """Write the operators that read the tensor `vector`, and return the tensor that they write."""
    shape, classes = output.shape, len(shifts.steps)
    version = 2 if output.dtype == "int8" else 1  # of the operators that know the type

    def real(name: str, shape: tuple[int, ...]) -> int:
        return writer.tensor(Tensor(f"repair/{name}", shape, "float32"))

    p = vector
    if output.scale:
        p = writer.operator("DEQUANTIZE", [vector], real("p", shape), version=version)
    bias = np.full(classes, 1.0 + _OFF_HALVES, np.float32)
    factors = writer.operator(
        "FULLY_CONNECTED",
        [p, writer.constant("repair/shifts", shifts.table), writer.constant("repair/one", bias)],
        real("factors", (1, classes)),
    )
    shifted = writer.operator("MUL", [p, factors], real("shifted", shape))
    if not output.scale:
        return shifted
    return writer.operator("QUANTIZE", [shifted], writer.tensor(output))
