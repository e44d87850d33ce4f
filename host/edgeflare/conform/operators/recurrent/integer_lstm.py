"""The tensors of an LSTM of int8 activations, as converters write them.

These have no peepholes, projection or normalization, and always the activation tanh. Weights have
one scale each and no zero point, biases the scale of the products, and the result's state the
quantization of the result. The scale of the cells is a power of 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log2
from typing import Final

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Quantization
from edgeflare.conform.operators.recurrent.lstm_step import LstmDirection, LstmPlaces, LstmSteps
from edgeflare.conform.operators.recurrent.recurrent_operator import (
    MOST_RAW,
    RecurrentTensors,
    int8_weights,
    weight_size,
)
from edgeflare.conform.specification.activation_tensors import UnknownOperatorForm
from edgeflare.conform.specification.model_parts import ModelParts
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Setting,
    Settings,
    number,
    whole,
)

CELL_EXPONENT: Final = Choice("cell_exponent", (-11, -9, -10, -12, -13, -14, -15), "quantization")
"""The scale of the cells as a power of 2, that of the usual clip of 10 first."""

PLAIN: Final[Mapping[str, Setting]] = {
    "peephole": False,
    "projection": "none",
    "normalized": False,
    "activation": "TANH",
    "projection_clip": 0.0,
    "outputs": 0,
}
"""Settings that no parameter stands for: there are as many outputs as units."""

PLAIN_OPTIONS: Final[Mapping[str, Option]] = {
    "fusedActivationFunction": "TANH",
    "projClip": 0.0,
}
"""Likewise options."""


def integer_direction(
    direction: LstmDirection, cell: GraphValue, result: GraphValue
) -> LstmDirection:
    """Return a direction whose states are rounded as those of some tensors."""
    known, shown = cell.quantization, result.quantization
    if known is None or shown is None:
        raise ValueError("cells or a result without a scale")
    steps = LstmSteps(known.scales[0], shown.scales[0], shown.zero_point)
    return replace(direction, steps_of=steps, rounds=False)


def integer_settings(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return drawn settings with a scale by which the result can be seen."""
    found = dict(settings)
    # A result is from -1 to 1.
    found["output_scale"] = float(np.float32(rng.uniform(0.3, 1.2) / MOST_RAW))
    if rng.random() < 3 / 4:
        found["output_zero_point"] = int(rng.integers(-30, 31))
    return found


def read_exponent(cell: GraphValue) -> int:
    """Return the scale of cells as a power of 2; UnknownOperatorForm if it is none."""
    known = cell.quantization
    if cell.dtype != "int16" or known is None or len(known.scales) != 1 or known.zero_point:
        raise UnknownOperatorForm("its cells are no int16 with one scale")
    exponent = log2(known.scales[0])
    if exponent != round(exponent):
        raise UnknownOperatorForm(f"the scale of its cells is {known.scales[0]}, no power of 2")
    return int(exponent)


def integer_values(
    configuration: Configuration,
    at: LstmPlaces,
    tensors: RecurrentTensors,
    rng: np.random.Generator,
) -> Mapping[int, GraphValue]:
    """Return drawn weights and biases, and the states."""
    given, shown = (number(configuration, f"{role}_scale") for role in ("input", "output"))
    found: dict[int, GraphValue] = {}
    scales: dict[int, float] = {}
    for place, (kind, shape) in tensors.items():
        if kind == "weights":
            recurrent = at.recurrent <= place < at.recurrent + 4
            usual = (shown if recurrent else given) * MOST_RAW
            scale = float(np.float32(weight_size(shape, rng) / (usual * MOST_RAW)))
            scales[place] = scale
            found[place] = int8_weights(shape, scale, rng)
        elif kind == "float":
            scale = float(np.float32(given * scales[at.weights + place - at.bias]))
            raw = np.round(rng.uniform(-1, 1, shape) / scale)
            found[place] = GraphValue("int32", shape, Quantization((scale,))).constant(raw)
    hidden = Quantization((shown,), whole(configuration, "output_zero_point"))
    cell = Quantization((2.0 ** whole(configuration, "cell_exponent"),))
    found[at.hidden] = GraphValue("int8", tensors[at.hidden].shape, hidden).state()
    found[at.cell] = GraphValue("int16", tensors[at.cell].shape, cell).state()
    return found


def check_integer(at: LstmPlaces, tensors: RecurrentTensors, parts: ModelParts) -> None:
    """Raise UnknownOperatorForm unless tensors are as the converter writes them."""
    kinds = {"weights": "int8", "float": "int32"}
    for place, (kind, shape) in tensors.items():
        found = parts.tensors[place]
        wanted = "int16" if place == at.cell else kinds.get(kind, "int8")
        if (found.dtype, found.shape) != (wanted, shape):
            raise UnknownOperatorForm(f"its operand {place} is {found.dtype} {found.shape}")
        if found.values is None or found.variable != (kind == "state"):
            raise UnknownOperatorForm(f"its operand {place} is no {kind}")
        known = found.quantization
        if known is None or len(known.scales) != 1 or (known.zero_point and kind != "state"):
            raise UnknownOperatorForm(f"its operand {place} has not one scale, or a zero point")
    if parts.tensors[at.hidden].quantization != parts.results[0].quantization:
        raise UnknownOperatorForm("its state has another scale than its result")
    _check_biases(at, tensors, parts)


def _check_biases(at: LstmPlaces, tensors: RecurrentTensors, parts: ModelParts) -> None:
    """Raise UnknownOperatorForm unless biases have the scale of the products they are added to."""
    for gate in range(4):
        if at.bias + gate not in tensors:
            continue
        read, weights, bias = (
            parts.tensors[place].quantization for place in (0, at.weights + gate, at.bias + gate)
        )
        if read is None or weights is None or bias is None:
            raise UnknownOperatorForm("its tensors have no scales")
        product = read.scales[0] * weights.scales[0]
        if not np.isclose(bias.scales[0], product, rtol=1e-5, atol=0):
            raise UnknownOperatorForm("a bias has another scale than the products")
