"""The options of an operator that decide its numbers and are not those of the original's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.diagnose.activations_apart import NOT_APART, activation_apart
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

_NEVER_ALIKE: Final = (
    frozenset({"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"}),
    frozenset({"MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"}),
    frozenset({"MAXIMUM", "MINIMUM"}),
    frozenset({"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}),
    frozenset({"ELU", "HARD_SWISH", "LOGISTIC", "RELU", "TANH"}),
)
"""Operators of which none does what another one of its row does. Others may: a MEAN over height and
width is an AVERAGE_POOL_2D."""

_PADDING: Final = frozenset(
    {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "L2_POOL_2D", "MAX_POOL_2D"}
)
"""Operators of windows that slide over height and width, which are the dimensions 1 and 2. Where
input and output have the same sizes with and without padding, there is none to be put in."""

_SIDES: Final = {"strideH": 1, "strideW": 2, "dilationHFactor": 1, "dilationWFactor": 2}
"""The dimension along which an option of theirs counts."""

_COUNTED_FROM_THE_END: Final = frozenset({"CONCATENATION", "GATHER", "PACK", "UNPACK"})
"""Operators whose axis may be counted from the end, by numbers below 0."""


@dataclass(frozen=True, slots=True)
class OptionDifference:
    """An option of a layer that is not as in the original.

    Attributes:
        name: name in the schema of `.tflite` files, such as "half_pixel_centers"; "operator" where
            that itself is another one.
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

    None are those that two converters write differently and that change no number: an activation
    that one of the two applies in the next operator, an axis that is counted from the end, and
    padding, strides or dilations where the sizes leave no place for any.

    Args:
        compressed: a graph.
        op: the position of its operator.
        original: another graph.
        original_op: the position of the operator that the first was made from.

    """
    mine, its = compressed.options(op), original.options(original_op)
    kinds = compressed.operators[op].name, original.operators[original_op].name
    if kinds[0] != kinds[1] and any(row.issuperset(kinds) for row in _NEVER_ALIKE):
        return (OptionDifference("operator", *kinds),)
    found = []
    for name in sorted((mine.keys() & its.keys()) - _FREE):
        one = OptionDifference(_snake(name), _plain(name, mine[name]), _plain(name, its[name]))
        if one.compressed == one.original or _is_no_difference(
            name, (compressed, op), (original, original_op)
        ):
            continue
        found.append(one)
    return tuple(found)


_Side = tuple[Graph, int]
"""A graph, and the position of one of its operators."""


def _is_no_difference(name: str, mine: _Side, its: _Side) -> bool:
    """Whether an option that is written differently changes no number."""
    kinds = {graph.operators[op].name for graph, op in (mine, its)}
    if name == "fusedActivationFunction":
        return activation_apart(*mine, *its) != NOT_APART
    if name == "axis" and kinds <= _COUNTED_FROM_THE_END:
        return _axis_from_the_start(*mine) == _axis_from_the_start(*its)
    sizes = _sizes(*mine)
    return kinds <= _PADDING and sizes == _sizes(*its) and _has_no_place(name, *sizes[1:])


def _has_no_place(name: str, made: tuple[int, ...], weights: tuple[int, ...]) -> bool:
    """Whether an option does nothing in an operator of windows, both of which have equal sizes."""
    if name == "padding":
        return True
    side = _SIDES.get(name)
    if side is None:
        return False
    return (made if name.startswith("stride") else weights)[side : side + 1] == (1,)


def _sizes(graph: Graph, op: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of what an operator of windows reads and makes, and of its weights.

    Of pooling, whose windows are options, there are no weights.
    """
    operator = graph.operators[op]
    given, *others = operator.inputs
    shapes = [graph.tensors[at].shape for at in (given, operator.outputs[0], *others[:1])]
    return shapes[0], shapes[1], shapes[2] if others else ()


def _axis_from_the_start(graph: Graph, op: int) -> int:
    operator = graph.operators[op]
    counted = operator.inputs if operator.name in ("GATHER", "UNPACK") else operator.outputs
    return int(graph.options(op)["axis"]) % max(1, len(graph.tensors[counted[0]].shape))


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
