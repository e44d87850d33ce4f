"""Which activations of a graph have to have one quantization, and which may be given another.

The format demands of an operator that only moves or picks values that its inputs and outputs are
quantized alike, and prescribes the quantization of some outputs, such as a softmax's
(https://ai.google.dev/edge/litert/models/quantization_spec).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor

_RESCALING = WEIGHTED | {
    "ABS",
    "ADD",
    "BATCH_MATMUL",
    "DEQUANTIZE",
    "DIV",
    "ELU",
    "EXP",
    "GELU",
    "HARD_SWISH",
    "LEAKY_RELU",
    "MEAN",
    "MUL",
    "PRELU",
    "QUANTIZE",
    "RELU",
    "RELU6",
    "RSQRT",
    "SQUARED_DIFFERENCE",
    "SUB",
    "SUM",
}
"""Operators whose inputs and output may be quantized in any way."""

PRESCRIBED = frozenset({"L2_NORMALIZATION", "LOGISTIC", "LOG_SOFTMAX", "SOFTMAX", "TANH"})
"""Operators whose output has the quantization that the format prescribes, and their inputs any."""

_TYING = frozenset(
    {
        "AVERAGE_POOL_2D",
        "BATCH_TO_SPACE_ND",
        "BROADCAST_TO",
        "CONCATENATION",
        "DEPTH_TO_SPACE",
        "EXPAND_DIMS",
        "GATHER",
        "MAXIMUM",
        "MAX_POOL_2D",
        "MINIMUM",
        "MIRROR_PAD",
        "PACK",
        "PAD",
        "PADV2",
        "REDUCE_MAX",
        "REDUCE_MIN",
        "RESHAPE",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "REVERSE_V2",
        "SLICE",
        "SPACE_TO_BATCH_ND",
        "SPACE_TO_DEPTH",
        "SPLIT",
        "SPLIT_V",
        "SQUEEZE",
        "STRIDED_SLICE",
        "TILE",
        "TRANSPOSE",
        "UNPACK",
    }
)
"""Operators whose inputs and outputs have to have one quantization."""

JOINING = frozenset({"CONCATENATION", "PACK"})
"""Operators that put unlike things side by side in one tensor."""

_UNQUANTIZED_OUTPUT = frozenset({"ARG_MAX", "ARG_MIN", "SHAPE"})
"""Operators that read values of any quantization and give numbers without one."""


@dataclass(frozen=True, slots=True)
class TiedTensors:
    """Activations that have to have one quantization.

    Attributes:
        tensors: their indexes, ascending.
        sources: those of them that an operator computes, rather than moves.

    """

    tensors: tuple[int, ...]
    sources: tuple[int, ...]


def tied_tensors(graph: Graph) -> tuple[TiedTensors, ...]:
    """Return the activations in int8 that may be given another quantization, in order of execution.

    The model's inputs and outputs are none of them, nor what is tied to those or to a constant,
    nor what operators read or write whose demands are not known here.
    """
    tied = {tensor.index: tensor.index for tensor in filter(_has_a_range, graph.tensors)}
    fixed = {*graph.inputs, *graph.outputs}
    fixed |= {tensor for tensor in tied if tensor not in graph.made_by}
    for operator in graph.operators:
        touched = [tensor for tensor in (*operator.inputs, *operator.outputs) if tensor in tied]
        if operator.name in _TYING:
            for tensor in touched[1:]:
                tied[_root(tied, tensor)] = _root(tied, touched[0])
        elif operator.name in PRESCRIBED:
            fixed.update(operator.outputs)
        elif operator.name not in _RESCALING | _UNQUANTIZED_OUTPUT:
            fixed.update(touched)
    fixed |= {tensor for tensor in tied if graph.tensors[tensor].variable}
    kept = {_root(tied, tensor) for tensor in fixed if tensor in tied}
    groups: dict[int, list[int]] = {}
    for tensor in tied:
        groups.setdefault(_root(tied, tensor), []).append(tensor)
    found = (_group(graph, group) for root, group in groups.items() if root not in kept)
    return tuple(
        sorted(found, key=lambda tie: min(graph.made_by[tensor] for tensor in tie.tensors))
    )


def _has_a_range(tensor: GraphTensor) -> bool:
    return tensor.dtype == "int8" and range_of(tensor) is not None


def consumers(graph: Graph, tensor: int) -> tuple[GraphOp, ...]:
    """Return the operators that read a tensor."""
    return tuple(operator for operator in graph.operators if tensor in operator.inputs)


def joined_by(graph: Graph, tensor: int) -> Iterator[GraphOp]:
    """Yield the operators that put a tensor beside others, which have to have its quantization.

    Operators that only move values may lie between.
    """
    waiting = [tensor]
    while waiting:
        for consumer in consumers(graph, waiting.pop(0)):
            if consumer.name in JOINING:
                yield consumer
            waiting += consumer.outputs if moves_values(consumer) else ()


def moves_values(operator: GraphOp) -> bool:
    """Whether an operator's inputs and outputs have to have one quantization."""
    return operator.name in _TYING


_PICTURE = 4
"""Dimensions of what is pooled: batch, height, width, channels."""


def pools_all(graph: Graph, operator: GraphOp) -> bool:
    """Whether an operator that ties its tensors is the mean of a whole picture, of each channel."""
    if operator.name != "AVERAGE_POOL_2D":
        return False
    (given, *_), (made, *_) = operator.inputs, operator.outputs
    known, options = graph.tensors[given], graph.options(operator.index)
    if len(known.shape) != _PICTURE:
        return False
    whole = graph.tensors[made].shape[1:3] == (1, 1) and (
        options["filterHeight"] >= known.shape[1] and options["filterWidth"] >= known.shape[2]
    )
    return whole and not options["fusedActivationFunction"]


def _root(tied: Mapping[int, int], tensor: int) -> int:
    while tied[tensor] != tensor:
        tensor = tied[tensor]
    return tensor


def _group(graph: Graph, group: list[int]) -> TiedTensors:
    sources = (
        tensor for tensor in group if not moves_values(graph.operators[graph.made_by[tensor]])
    )
    return TiedTensors(tuple(group), tuple(sources))
