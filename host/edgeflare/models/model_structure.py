"""The structure of a `.tflite` file, checked before anything relies on it.

A file may be a stranger's. A flatbuffer's tables may be shared, so a small file can unpack to any
number of objects; indexes may lead anywhere, and shapes may claim terabytes. Runtimes refuse such
files when they load them. What runtimes ignore, such as the options of another operator, is taken
as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, NoReturn

import numpy as np
from ai_edge_litert import schema_py_generated as schema

_MOST_OBJECTS: Final = 2**17
"""Tensors, operators and the like of a file: those of forty thousand layers, and ten seconds."""

_LEAST_BYTES: Final = 32
"""Of a file for each of them: an entry in a vector, a table, and the vectors that it names."""

_LEAST_BYTES_OF_BUFFER: Final = 8
"""An entry in a vector, and a table: converters give each tensor a buffer, most of them empty."""

_BYTES_OF_NUMBER: Final = 4
"""In a shape, and in the list of the tensors that an operator reads."""

_FEW_OBJECTS: Final = 1000
_MOST_VALUES: Final = 2**29
"""Of a tensor: 2 GiB of float32, as much as a flatbuffer holds."""

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
"""Of built-in operators that are not listed; nothing is known of custom ones and of StableHLO's."""

_NAMES: Final = {
    number: name
    for name, number in vars(schema.BuiltinOperator).items()
    if not name.startswith("_")
}


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
}
"""Options whose class is not called as the operator is."""

_OPTION_CLASSES: Final = {
    name.lower(): name for name in vars(schema.BuiltinOptions) if name[0] != "_"
}


def operator_name(code: Any) -> str:
    """Return what an entry of a file's table of operators is called."""
    if code.customCode:
        name = str(code.customCode.decode(errors="replace"))
        return f"custom {name}" if name in _NAMES.values() else name  # and no built-in one
    number = int(max(code.builtinCode, code.deprecatedBuiltinCode))
    return str(_NAMES.get(number, f"operator {number}"))


def options_class(operator: str) -> str | None:
    """Return the name of the schema's class of an operator's options, None where it has none."""
    by_name = operator.replace("_", "").lower() + "options"
    return _SHARED_OPTIONS.get(operator) or _OPTION_CLASSES.get(by_name)


def require_countable(model: Any, size: int) -> None:
    """Refuse a file that has more tables than it has room for, before they are unpacked.

    Args:
        model: a `Model` of the schema, of which nothing is unpacked.
        size: of the file, in bytes.

    Raises:
        ValueError: says what it has.

    """
    buffers = model.BuffersLength()
    _spent(min(_MOST_OBJECTS, _FEW_OBJECTS + size // _LEAST_BYTES_OF_BUFFER), (buffers,))
    left = max(0, size - _LEAST_BYTES_OF_BUFFER * buffers)
    room = min(_MOST_OBJECTS, _FEW_OBJECTS + left // _LEAST_BYTES)
    counts = (
        *(model.SubgraphsLength(), model.OperatorCodesLength()),
        *(model.MetadataLength(), model.SignatureDefsLength()),
        *(_length(model, name) for name in ("ExternalBufferGroups", "ExternalBuffers")),
    )
    room = _spent(room, counts)
    for at in range(model.SignatureDefsLength()):
        signature = model.SignatureDefs(at)
        room = _spent(room, (signature.InputsLength(), signature.OutputsLength()))
    graphs = [model.Subgraphs(at) for at in range(model.SubgraphsLength())]
    for graph in graphs:
        room = _spent(room, (graph.TensorsLength(), graph.OperatorsLength()))
    numbers = _FEW_OBJECTS + size // _BYTES_OF_NUMBER
    for graph in graphs:
        for at in range(graph.OperatorsLength()):
            one = graph.Operators(at)
            lengths = (one.InputsLength(), one.OutputsLength(), one.IntermediatesLength())
            numbers = _spent(numbers, lengths)
        for at in range(graph.TensorsLength()):
            tensor = graph.Tensors(at)
            numbers = _spent(numbers, (tensor.ShapeLength(), tensor.ShapeSignatureLength()))
            sparsity = tensor.Sparsity()
            levels = 0 if sparsity is None else sparsity.DimMetadataLength()
            room = _spent(room, (tensor.VariantTensorsLength(), levels))


def _length(table: Any, name: str) -> int:
    """Return the length of a vector that not every version of the schema has."""
    return int(getattr(table, f"{name}Length", int)())


def _spent(room: int, counts: Sequence[int]) -> int:
    room -= sum(counts)
    if room < 0:
        raise ValueError("it claims more tables or numbers than it has room for")
    return room


class MeteredFile(np.ndarray[Any, np.dtype[np.uint8]]):
    """A file whose texts are copied no more often than a whole file has room for.

    It is a view of the file's bytes, `np.frombuffer(content, np.uint8).view(MeteredFile)`, since
    flatbuffers asks for a buffer, and a file of hundreds of megabytes is not to be copied for that.
    """

    _copied = 0

    def __getitem__(self, key: Any) -> Any:
        """Return a byte or a part as `bytes` does; flatbuffers takes a text as a part."""
        part = self.data[key]
        if not isinstance(part, memoryview):
            return part
        self._copied += len(part)
        if self._copied > _FEW_OBJECTS + 2 * len(self):
            raise ValueError("it repeats its texts")
        return part.tobytes()


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
    for one, keys in ((model, ("subgraphs", "operatorCodes", "buffers")), *_parts(model)):
        for key in keys:
            if getattr(one, key) is None:
                setattr(one, key, [])
    if not model.subgraphs:
        _refuse("it has no graph")
    model.buffers = model.buffers or [schema.BufferT()]
    for at, graph in enumerate(model.subgraphs):
        _require_graph(model, graph, f" of graph {at}" if at else "")
    for entry in model.metadata or []:
        _require_within([entry.buffer], len(model.buffers), "an entry of its metadata")
    for signature in model.signatureDefs or []:
        _require_signature(signature, model.subgraphs)


def _parts(model: Any) -> Iterable[tuple[Any, tuple[str, ...]]]:
    """Yield the graphs of a model and what has tensors in them, each with its vectors' names."""
    for graph in model.subgraphs or []:
        yield graph, ("tensors", "operators", "inputs", "outputs")
        for one in graph.operators or []:
            yield one, ("inputs", "outputs")
    for signature in model.signatureDefs or []:
        yield signature, ("inputs", "outputs")


def _require_graph(model: Any, graph: Any, of: str) -> None:
    names = ["CUSTOM" if one.customCode else operator_name(one) for one in model.operatorCodes]
    for number, tensor in enumerate(graph.tensors):
        _require_tensor(tensor, f"tensor {number}{of}", len(model.buffers))
    ends = (*graph.inputs, *graph.outputs)
    _require_within(ends, len(graph.tensors), f"an input or output{of}")
    for number, one in enumerate(graph.operators):
        if not 0 <= one.opcodeIndex < len(names):
            _refuse(f"operator {number}{of} is none of its table")
        called = f"{names[one.opcodeIndex]} (operator {number}{of})"
        _require_operator(one, names[one.opcodeIndex], called, len(graph.tensors))
        own = options_class(names[one.opcodeIndex])
        if None not in (one.builtinOptions, own) and type(one.builtinOptions).__name__ != f"{own}T":
            one.builtinOptions, one.builtinOptionsType = None, schema.BuiltinOptions.NONE
        for options in (one.builtinOptions, getattr(one, "builtinOptions2", None)):
            _require_called(options, called, len(model.subgraphs))


def _require_tensor(tensor: Any, called: str, buffers: int) -> None:
    if not 0 <= tensor.buffer < buffers:
        _refuse(f"{called} has its values in a buffer that is not there")
    shape = [] if tensor.shape is None else [int(size) for size in tensor.shape]
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


def _require_operator(one: Any, name: str, called: str, tensors: int) -> None:
    absent = -1
    for indexes in (one.inputs, one.outputs, one.intermediates):
        given = [] if indexes is None else [int(at) for at in indexes if at != absent]
        _require_within(given, tensors, called)
    known = name in _NAMES.values() and not name.startswith("STABLEHLO_")
    read, written = _OPERANDS_OF.get(name, _OTHER) if known else (0, 0)
    inputs, outputs = [*one.inputs[:read]], [at for at in one.outputs if at != absent]
    if len(inputs) < read or absent in inputs or len(outputs) < written:
        _refuse(
            f"{called} reads {len(one.inputs)} tensors and writes {len(outputs)}, and needs"
            f" {read} and {written}"
        )


def _require_called(options: Any, called: str, graphs: int) -> None:
    for key in (*CALLED, *_CALLED_TOO):
        if hasattr(options, key):
            _require_within([getattr(options, key)], graphs, f"{called} calls a graph")


def _require_signature(signature: Any, graphs: Sequence[Any]) -> None:
    signature.signatureKey = signature.signatureKey or b""
    _require_within([signature.subgraphIndex], len(graphs), "a signature")
    tensors = len(graphs[signature.subgraphIndex].tensors)
    for entry in (*signature.inputs, *signature.outputs):
        entry.name = entry.name or b""
        _require_within([entry.tensorIndex], tensors, "a signature")


def _require_within(indexes: Iterable[int], count: int, called: str) -> None:
    for at in indexes:
        if not 0 <= at < count:
            _refuse(f"{called} names number {at} of {count}")


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)
