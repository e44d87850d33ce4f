"""The options of an operator that decide its numbers and are not those of the original's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.tflite_graph import Graph

_FREE: Final = frozenset(
    {
        # How numbers are stored and quantized.
        "asymmetricQuantizeInputs",
        "potScaleInt16",
        "quantSpec",
        "quantizedBiasType",
        "weightsFormat",
        # Types, and shapes, which a match of layers compares itself.
        "idxOutType",
        "inDataType",
        "keepNumDims",
        "keyDtype",
        "newShape",
        "outDataType",
        "outType",
        "outputType",
        "squeezeDims",
        "valueDtype",
        # Ranges of operators that stand for quantization.
        "max",
        "min",
        "narrowRange",
        "numBits",
        # Names and numbers of what lies elsewhere in the file, and hints to kernels.
        "apiVersion",
        "bodySubgraphIndex",
        "branchSubgraphIndices",
        "calledComputations",
        "comparatorSubgraphIndex",
        "compositeAttributesFormat",
        "condSubgraphIndex",
        "container",
        "decompositionSubgraphIndex",
        "elseSubgraphIndex",
        "hasSideEffect",
        "indicesAreSorted",
        "initSubgraphIndex",
        "precisionConfig",
        "sharedName",
        "subgraph",
        "tableId",
        "thenSubgraphIndex",
        "uniqueIndices",
        "updateComputationSubgraphIndex",
        "validateIndices",
        "version",
    }
)
"""Options that compression may change. All others decide numbers."""

_NAMES: Final = {
    "fusedActivationFunction": schema.ActivationFunctionType,
    "mode": schema.MirrorPadMode,
    "padding": schema.Padding,
}
"""Options whose values have names."""

_OWN_OPERATORS: Final = {"RELU", "RELU6", "RELU_N1_TO_1", "TANH"}
"""Activations that stand as operators of their own too."""


@dataclass(frozen=True, slots=True)
class OptionDifference:
    """An option of a layer that is not as in the original.

    Attributes:
        name: name in the schema of `.tflite` files, such as "half_pixel_centers".
        compressed: value in the compressed model, plain JSON.
        original: value in the original.

    """

    name: str
    compressed: Any
    original: Any

    def __str__(self) -> str:
        return f"{self.name} {_said(self.compressed)}, the original {_said(self.original)}"


def option_differences(
    compressed: Graph, op: int, original: Graph, original_op: int
) -> tuple[OptionDifference, ...]:
    """Return the options that differ, of those that both operators have.

    An activation that the original applies in the next operator is none.

    Args:
        compressed: a graph.
        op: the position of its operator.
        original: another graph.
        original_op: the position of the operator that the first was made from.

    """
    mine, its = compressed.options(op), original.options(original_op)
    found = []
    for name in sorted((mine.keys() & its.keys()) - _FREE):
        one = OptionDifference(_snake(name), _plain(name, mine[name]), _plain(name, its[name]))
        apart = one.compressed != one.original
        if apart and not (
            name == "fusedActivationFunction"
            and _applied_behind(original, original_op) == {one.compressed}
        ):
            found.append(one)
    return tuple(found)


def _applied_behind(graph: Graph, op: int) -> set[str]:
    """Return the activation that follows an operator, where nothing else reads its output."""
    made = graph.operators[op].outputs[0]
    readers = {operator.name for operator in graph.operators if made in operator.inputs}
    return readers if readers <= _OWN_OPERATORS and made not in graph.outputs else set()


def _plain(name: str, value: Any) -> Any:
    """Return a value of an option as a plain JSON value, by its name where it has one."""
    if (names := _NAMES.get(name)) is not None:
        known = {number: key for key, number in vars(names).items() if not key.startswith("_")}
        return known.get(value, value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else value


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _snake(name: str) -> str:
    """Return the name of an option in the schema: stride_w for strideW."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
