"""Activations that one of two files fuses into a layer, and the other applies in the next operator.

The outputs of such a layer are not alike in the two files. They are once the activation is applied
to those of the file that has it behind, which changes nothing there: to apply a rectifier twice is
to apply it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph

Real = NDArray[np.float64]

_RECTIFIERS: Final[Mapping[str, Callable[[Real], Real]]] = {
    "RELU": lambda values: np.maximum(values, 0.0),
    "RELU6": lambda values: np.clip(values, 0.0, 6.0),
    "RELU_N1_TO_1": lambda values: np.clip(values, -1.0, 1.0),
}
"""Fused activations that kernels compute and that stand as operators of their own, too."""

_NUMBERS: Final = {
    getattr(schema.ActivationFunctionType, name): name for name in ("NONE", *_RECTIFIERS)
}


@dataclass(frozen=True, slots=True)
class ActivationApart:
    """An activation of a layer that stands in an operator of its own in one of two files.

    Attributes:
        compressed: its name, where it is the compressed model that has it apart; else empty.
        original: likewise of the original; one of both is empty, or both are.

    """

    compressed: str = ""
    original: str = ""

    def of_compressed(self, values: Real) -> Real:
        """Return the compressed model's outputs with the activation, wherever it is applied."""
        return _RECTIFIERS[self.compressed](values) if self.compressed else values

    def of_original(self, values: Real) -> Real:
        """Return the original's outputs likewise."""
        return _RECTIFIERS[self.original](values) if self.original else values


NOT_APART: Final = ActivationApart()


def activation_apart(
    compressed: Graph, op: int, original: Graph, original_op: int
) -> ActivationApart:
    """Return the activation that one of two operators fuses, and the other has behind it.

    Args:
        compressed: a graph.
        op: the position of its operator.
        original: another graph.
        original_op: the position of the operator that the first was made from.

    """
    mine, its = _fused(compressed, op), _fused(original, original_op)
    if mine == "NONE" and its in _RECTIFIERS and _behind(compressed, op) == {its}:
        return ActivationApart(compressed=its)
    if its == "NONE" and mine in _RECTIFIERS and _behind(original, original_op) == {mine}:
        return ActivationApart(original=mine)
    return NOT_APART


def activations_behind(
    compressed: Graph, original: Graph, matched: Mapping[int, int]
) -> frozenset[int]:
    """Return the compressed model's operators that apply what the original fuses into a layer.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        matched: position of the original's operator, by that of the compressed model's.

    """
    made = {
        compressed.operators[op].outputs[0]
        for op, original_op in matched.items()
        if activation_apart(compressed, op, original, original_op).compressed
    }
    return frozenset(
        operator.index
        for operator in compressed.operators
        if operator.index not in matched and not made.isdisjoint(operator.inputs)
    )


def _fused(graph: Graph, op: int) -> str:
    """Return the activation that an operator fuses; empty of one that fuses none that is known."""
    return _NUMBERS.get(graph.options(op).get("fusedActivationFunction"), "")


def _behind(graph: Graph, op: int) -> set[str]:
    """Return the rectifier that follows an operator, where nothing else reads its output."""
    made = graph.operators[op].outputs[0]
    readers = {operator.name for operator in graph.operators if made in operator.inputs}
    return readers if readers <= _RECTIFIERS.keys() and made not in graph.outputs else set()
