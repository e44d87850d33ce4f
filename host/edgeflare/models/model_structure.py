"""The structure of a `.tflite` file, checked before anything relies on it.

A file may be a stranger's: indexes may lead anywhere, and shapes may claim terabytes. Runtimes
refuse such files when they load them. What runtimes ignore, such as the options of another
operator, is taken as absent.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

_MOST_VALUES: Final = 2**29
"""Most values of a tensor: 2 GiB of float32, as much as a flatbuffer holds."""

_MOST_DIMENSIONS: Final = 32
"""Most dimensions of a tensor; runtimes have kernels for six, and numpy 1 has arrays of no more
than these."""

_ABSENT: Final = -1
"""The index of a tensor that an operator does without."""

_FEW_NUMBERS: Final = 32
"""Length of a vector below which a list is faster than what numpy does."""

CALLED: Final = (
    *("thenSubgraphIndex", "elseSubgraphIndex", "condSubgraphIndex", "bodySubgraphIndex"),
)
"""Options that name a graph which an inference runs; what CALL_ONCE runs is not among them."""

_CALLED_TOO: Final = ("subgraph", "initSubgraphIndex", "decompositionSubgraphIndex")

_OPERANDS: Final = {
    (0, 0): "CALL CALL_ONCE CUSTOM DELEGATE PLACEHOLDER_FOR_GREATER_OP_CODES WHILE",
    (0, 1): "HASHTABLE VAR_HANDLE",
    (1, 0): "IF",
    (2, 0): "ASSIGN_VARIABLE NUMERIC_VERIFY",
    (3, 0): "HASHTABLE_IMPORT",
    (2, 1): (
        "ADD ARG_MAX ARG_MIN ATAN2 BATCH_MATMUL BITWISE_XOR BROADCAST_TO CONV_2D CONV_3D CUMSUM"
        " DEPTHWISE_CONV_2D DIV EMBEDDING_LOOKUP EQUAL EXPAND_DIMS FILL FLOOR_DIV FLOOR_MOD"
        " FULLY_CONNECTED GATHER GATHER_ND GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND"
        " LOGICAL_OR MATRIX_SET_DIAG MAXIMUM MEAN MINIMUM MIRROR_PAD MUL NOT_EQUAL PAD POW PRELU"
        " REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RESIZE_BILINEAR"
        " RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 RIGHT_SHIFT SEGMENT_SUM SPLIT"
        " SQUARED_DIFFERENCE SUB SUM TILE TOPK_V2 TRANSPOSE"
    ),
    (3, 1): (
        "BATCH_TO_SPACE_ND CONV_3D_TRANSPOSE DYNAMIC_UPDATE_SLICE PADV2 RANGE SCATTER_ND SELECT"
        " SELECT_V2 SLICE SPACE_TO_BATCH_ND SPLIT_V TRANSPOSE_CONV UNSORTED_SEGMENT_MAX"
        " UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM"
    ),
    (4, 1): "ONE_HOT SPARSE_TO_DENSE STRIDED_SLICE",
}
_OPERANDS_OF: Final = {name: least for least, names in _OPERANDS.items() for name in names.split()}
"""How many tensors an operator reads, none of them absent, and how many it writes, at least."""

_OTHER: Final = (1, 1)
"""Tensors read and written at least by built-in operators that are not listed; nothing is known of
custom ones and of StableHLO's."""

_NAMES: Final = {
    number: name
    for name, number in vars(schema.BuiltinOperator).items()
    if not name.startswith("_")
}
_BUILT_IN: Final = frozenset(_NAMES.values())


_SHARED_OPTIONS: Final = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
}
"""Options whose class is not called as the operator is."""

_OPTION_CLASSES: Final = {
    name.lower(): name for name in vars(schema.BuiltinOptions) if name[0] != "_"
}


def operator_name(code: Any) -> str:
    """Return what an entry of a file's table of operators is called."""
    if code.customCode:
        name = str(code.customCode.decode(errors="replace"))
        return f"custom {name}" if name in _BUILT_IN else name  # and no built-in one
    number = int(max(code.builtinCode, code.deprecatedBuiltinCode))
    return str(_NAMES.get(number, f"operator {number}"))


def options_class(operator: str) -> str | None:
    """Return the name of the schema's class of an operator's options, None where it has none."""
    by_name = operator.replace("_", "").lower() + "options"
    return _SHARED_OPTIONS.get(operator) or _OPTION_CLASSES.get(by_name)


def require_structure(model: Any) -> None:
    """Refuse a model in which an index leads nowhere, or a size or number is that of no model.

    What is absent becomes an empty list or text, so that nothing has to ask for it. Options of
    another operator, and an open shape of another rank than the shape, become absent: runtimes
    ignore them.

    Args:
        model: a `ModelT` of the schema.

    Raises:
        ValueError: says where.

    """
    for table, keys in ((model, ("subgraphs", "operatorCodes", "buffers")), *_parts(model)):
        for key in keys:
            if getattr(table, key) is None:
                setattr(table, key, [])
    if not model.subgraphs:
        _refuse("it has no graph")
    model.buffers = model.buffers or [schema.BufferT()]
    kinds = [
        _kind("CUSTOM" if code.customCode else operator_name(code)) for code in model.operatorCodes
    ]
    for at, graph in enumerate(model.subgraphs):
        _require_graph(model, graph, kinds, f" of graph {at}" if at else "")
    for entry in model.metadata or []:
        _require_within([entry.buffer], len(model.buffers), "an entry of its metadata")
    for signature in model.signatureDefs or []:
        _require_signature(signature, model.subgraphs)


class _Kind(NamedTuple):
    """What operators of one name are held to.

    Attributes:
        name: name of the operator.
        read: how many tensors it reads at least, none of them absent.
        written: how many it writes at least.
        options: the name of the class of its options, None where it has none.

    """

    name: str
    read: int
    written: int
    options: str | None


@functools.lru_cache(maxsize=256)
def _kind(name: str) -> _Kind:
    known = name in _BUILT_IN and not name.startswith("STABLEHLO_")
    read, written = _OPERANDS_OF.get(name, _OTHER) if known else (0, 0)
    options = options_class(name)
    return _Kind(name, read, written, options and f"{options}T")


def _parts(model: Any) -> Iterable[tuple[Any, tuple[str, ...]]]:
    """Yield the graphs of a model and what has tensors in them, each with its vectors' names."""
    for graph in model.subgraphs or []:
        yield graph, ("tensors", "operators", "inputs", "outputs")
        for operator in graph.operators or []:
            yield operator, ("inputs", "outputs")
    for signature in model.signatureDefs or []:
        yield signature, ("inputs", "outputs")


def _require_graph(model: Any, graph: Any, kinds: Sequence[_Kind], of: str) -> None:
    for number, tensor in enumerate(graph.tensors):
        _require_tensor(tensor, f"tensor {number}{of}", len(model.buffers))
    for ends in (graph.inputs, graph.outputs):
        _require_within(ends, len(graph.tensors), f"an input or output{of}")
    for number, operator in enumerate(graph.operators):
        if not 0 <= operator.opcodeIndex < len(kinds):
            _refuse(f"operator {number}{of} is none of its table")
        kind = kinds[operator.opcodeIndex]
        called = f"{kind.name} (operator {number}{of})"
        _require_operator(operator, kind, called, len(graph.tensors))
        if None not in (operator.builtinOptions, kind.options) and (
            type(operator.builtinOptions).__name__ != kind.options
        ):
            operator.builtinOptions, operator.builtinOptionsType = None, schema.BuiltinOptions.NONE
        for options in (operator.builtinOptions, getattr(operator, "builtinOptions2", None)):
            if options is not None:
                _require_called(options, called, len(model.subgraphs))


def _require_tensor(tensor: Any, called: str, buffers: int) -> None:
    if not 0 <= tensor.buffer < buffers:
        _refuse(f"{called} has its values in a buffer that is not there")
    shape = [] if tensor.shape is None else tensor.shape[: _MOST_DIMENSIONS + 1].tolist()
    if len(shape) > _MOST_DIMENSIONS:
        _refuse(
            f"{called} has {len(tensor.shape)} dimensions, and at most {_MOST_DIMENSIONS} are read"
        )
    if min(shape, default=0) < 0 or prod(max(1, size) for size in shape) > _MOST_VALUES:
        _refuse(f"{called} claims the shape {tuple(shape[:8])}")
    if tensor.shapeSignature is not None and len(tensor.shapeSignature) != len(shape):
        tensor.shapeSignature = None
    steps = tensor.quantization
    scales = 0 if steps is None or steps.scale is None else len(steps.scale)
    if not scales:
        return
    points = 0 if steps.zeroPoint is None else len(steps.zeroPoint)
    axis = int(steps.quantizedDimension)
    if scales > 1 and not (0 <= axis < len(shape) and shape[axis] == scales):
        _refuse(f"{called} has {scales} scales along dimension {axis}, and shape {tuple(shape)}")
    if points not in (0, scales):
        _refuse(f"{called} has {scales} scales and {points} zero points")


def _require_operator(operator: Any, kind: _Kind, called: str, tensors: int) -> None:
    _require_within(
        () if operator.intermediates is None else operator.intermediates,
        tensors,
        called,
        least=_ABSENT,
    )
    lacking = _require_within(operator.inputs, tensors, called, least=_ABSENT) == _ABSENT
    lacking = lacking and _ABSENT in operator.inputs[: kind.read]
    outputs = len(operator.outputs)
    if _require_within(operator.outputs, tensors, called, least=_ABSENT) == _ABSENT:
        outputs -= int(np.count_nonzero(np.asarray(operator.outputs) == _ABSENT))
    if lacking or len(operator.inputs) < kind.read or outputs < kind.written:
        _refuse(
            f"{called} reads {len(operator.inputs)} tensors and writes {outputs}, and needs"
            f" {kind.read} and {kind.written}"
        )


@functools.cache
def _calls(options: type) -> tuple[str, ...]:
    """Return what names a graph in options of a class of the schema."""
    keys = vars(options())
    return tuple(key for key in (*CALLED, *_CALLED_TOO) if key in keys)


def _require_called(options: Any, called: str, graphs: int) -> None:
    kind: Any = type(options)
    for key in _calls(kind):
        _require_within([getattr(options, key)], graphs, f"{called} calls a graph")


def _require_signature(signature: Any, graphs: Sequence[Any]) -> None:
    signature.signatureKey = signature.signatureKey or b""
    _require_within([signature.subgraphIndex], len(graphs), "a signature")
    tensors = len(graphs[signature.subgraphIndex].tensors)
    for entry in (*signature.inputs, *signature.outputs):
        entry.name = entry.name or b""
        _require_within([entry.tensorIndex], tensors, "a signature")


def _require_within(
    indexes: Sequence[int] | NDArray[Any], count: int, called: str, least: int = 0
) -> int:
    """Refuse an index that leads nowhere; return the lowest, 0 of none."""
    if not len(indexes):
        return 0
    if len(indexes) < _FEW_NUMBERS:
        indexes = indexes.tolist() if isinstance(indexes, np.ndarray) else indexes
        lowest, highest = min(indexes), max(indexes)
    else:
        lowest, highest = int(np.min(indexes)), int(np.max(indexes))
    if lowest < least or highest >= count:
        _refuse(f"{called} names number {lowest if lowest < least else highest} of {count}")
    return lowest


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)
