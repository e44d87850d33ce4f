"""An operator graph as the bytes of a `.tflite` file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.conform.operator_graph import (
    SHARED_NAME,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
    Values,
)
from edgeflare.models.model_structure import options_class
from edgeflare.models.tflite_file import packed_numbers
from edgeflare.models.tflite_writer import written

_SCHEMA_VERSION = 3
_PLACEHOLDER = 127
"""What the old 8-bit field of an operator code holds where the code has no place in it."""

INTEGER_LSTMS = ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
"""Operators that have intermediate tensors where their activations are int8."""

_READ_VARIABLE = "READ_VARIABLE"
"""The operator that in graphs of ours is assigned what it reads."""

_ENUMERATIONS = {
    "padding": schema.Padding,
    "fusedActivationFunction": schema.ActivationFunctionType,
    "mode": schema.MirrorPadMode,
    "weightsFormat": schema.FullyConnectedOptionsWeightsFormat,
    "inDataType": schema.TensorType,
    "outDataType": schema.TensorType,
    "outputType": schema.TensorType,
    "idxOutType": schema.TensorType,
    "quantizedBiasType": schema.TensorType,
    "outType": schema.TensorType,
}
"""Options that are given by name, and the enumerations that have these names."""


SIGNATURES = ("first", "second")
"""Names of the signatures of a file of two graphs."""


def graph_file(graph: OperatorGraph, other: OperatorGraph | None = None) -> bytes:
    """Return the file of a graph.

    Args:
        graph: the graph, in the shapes that the file has.
        other: the same graph in other shapes: dimensions that differ are dynamic in the file.

    """
    model = _empty_model()
    main = _subgraph(model, {}, None, graph)
    for tensor, value in zip(main.tensors, () if other is None else other.values, strict=False):
        if value.shape != tuple(tensor.shape) and len(value.shape) == len(tensor.shape):
            pairs = zip(tensor.shape, value.shape, strict=True)
            sizes = [size if size == resized else -1 for size, resized in pairs]
            tensor.shapeSignature = np.asarray(sizes, np.int32)
    return written(model)


def signatures_file(graphs: Sequence[OperatorGraph]) -> bytes:
    """Return a file in which each graph is what a signature runs, named as in `SIGNATURES`.

    The tensors of a signature are called t000000 and on, so that those are in order that sort them
    by name. What is one constant of several graphs, the same array, is one buffer.
    """
    model = _empty_model()
    codes: dict[tuple[int, int], int] = {}
    buffers: dict[int, int] = {}
    model.signatureDefs = []
    for number, graph in enumerate(graphs):
        _subgraph(model, codes, buffers, graph)
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = SIGNATURES[number], number
        signature.inputs, signature.outputs = _named(graph.inputs), _named(graph.outputs)
        model.signatureDefs.append(signature)
    return written(model)


def _named(tensors: Sequence[int]) -> list[Any]:
    found = []
    for place, at in enumerate(tensors):
        new = schema.TensorMapT()
        new.name, new.tensorIndex = f"t{place:06d}", at
        found.append(new)
    return found


def _empty_model() -> Any:
    model = schema.ModelT()
    model.version, model.subgraphs, model.operatorCodes = _SCHEMA_VERSION, [], []
    # By convention the first buffer is empty: that of tensors without values.
    model.buffers = [schema.BufferT()]
    return model


def _subgraph(
    model: Any,
    codes: dict[tuple[int, int], int],
    buffers: dict[int, int] | None,
    graph: OperatorGraph,
) -> Any:
    """Add a graph to a model, and return it.

    Args:
        model: the model.
        codes: the places of operator codes that the model has.
        buffers: the places of constants that the model has, by the identity of their arrays; None
            where each has a buffer of its own.
        graph: the graph.

    """
    main = schema.SubGraphT()
    model.subgraphs.append(main)
    main.tensors = [_tensor(model, buffers, at, value) for at, value in enumerate(graph.values)]
    for value, tensor in zip(graph.values, tuple(main.tensors), strict=True):
        if value.quantization is not None and value.quantization.block:
            place = len(main.tensors)
            main.tensors.append(_block_scales(model, place, value.quantization, tensor))
    main.inputs = np.asarray(graph.inputs, np.int32)
    main.outputs = np.asarray(graph.outputs, np.int32)
    main.operators = []
    for node in graph.nodes:
        if node.operator == _READ_VARIABLE:
            main.operators += _variable(model, codes, node, graph.values[node.inputs[0]])
        else:
            main.operators.append(_operator(model, codes, node))
        if node.operator in INTEGER_LSTMS and graph.values[node.inputs[0]].dtype == "int8":
            main.operators[-1].intermediates = _intermediates(main, graph.results(node)[0])
    return main


def _intermediates(main: Any, result: GraphValue) -> Any:
    """Add the tensors that an LSTM of int8 activations has besides, and return their places.

    Four are for a normalization of gates that is not there. The last says how the product of gates
    and cells is quantized: without a projection it is the result.
    """
    begin = len(main.tensors)
    for at in range(begin, begin + 5):
        new = schema.TensorT()
        new.name, new.shape = f"t{at}", np.zeros(1, np.int32)
        main.tensors.append(new)
    main.tensors[-1].type = schema.TensorType.INT8
    main.tensors[-1].quantization = _affine(result.quantization)
    return np.arange(begin, begin + 5, dtype=np.int32)


def _variable(
    model: Any, codes: dict[tuple[int, int], int], node: GraphNode, value: GraphValue
) -> list[Any]:
    """Return what assigns a tensor to a variable and reads it again.

    The variable's name says its form: what is assigned to one has to be alike.
    """
    main = model.subgraphs[-1]
    handle = schema.TensorT()
    handle.name, handle.shape = f"t{len(main.tensors)}", np.zeros(0, np.int32)
    handle.type = schema.TensorType.RESOURCE
    main.tensors.append(handle)
    at = len(main.tensors) - 1
    name = f"{node.options[SHARED_NAME]} {value.dtype} {value.shape}"
    options = {"container": "", SHARED_NAME: name}
    return [
        _operator(model, codes, GraphNode("VAR_HANDLE", (), (at,), options)),
        _operator(model, codes, GraphNode("ASSIGN_VARIABLE", (at, *node.inputs), ())),
        _operator(model, codes, GraphNode(_READ_VARIABLE, (at,), node.outputs)),
    ]


def _tensor(model: Any, buffers: dict[int, int] | None, at: int, one: GraphValue) -> Any:
    new = schema.TensorT()
    new.name, new.shape = f"t{at}", np.asarray(one.shape, np.int32)
    new.type = getattr(schema.TensorType, one.dtype.upper())
    if one.quantization is not None and not one.quantization.block:
        new.quantization = _affine(one.quantization)
    new.isVariable = one.variable
    if one.values is not None and not one.variable:
        known = None if buffers is None else buffers.get(id(one.values))
        if known is None:
            packed = one.dtype == "int4"
            data = packed_numbers(one.values, new.type) if packed else one.values.tobytes()
            known = _buffer(model, data)
        if buffers is not None:
            buffers[id(one.values)] = known
        new.buffer = known
    return new


def _affine(known: Quantization | None) -> Any:
    if known is None:
        return None
    new = schema.QuantizationParametersT()
    new.scale = np.asarray(known.scales, np.float32)
    new.zeroPoint = np.asarray([known.zero_point] * len(known.scales), np.int64)
    new.quantizedDimension = known.axis
    return new


def _buffer(model: Any, data: bytes) -> int:
    """Add the bytes of a constant, and return its place among the buffers."""
    model.buffers.append(schema.BufferT(data=np.frombuffer(data, np.uint8)))
    return len(model.buffers) - 1


def _block_scales(model: Any, place: int, known: Quantization, weights: Any) -> Any:
    """Return the tensor of the scales of blocks, which weights then name by its place."""
    scales: Values = np.asarray(known.scales, np.float16).reshape(weights.shape[0], -1)
    new = schema.TensorT()
    new.name, new.shape = f"t{place}", np.asarray(scales.shape, np.int32)
    new.type, new.buffer = schema.TensorType.FLOAT16, _buffer(model, scales.tobytes())
    details = schema.BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = place, -1, known.block
    weights.quantization = schema.QuantizationParametersT()
    weights.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
    weights.quantization.details = details
    return new


def _operator(model: Any, codes: dict[tuple[int, int], int], one: GraphNode) -> Any:
    new = schema.OperatorT()
    builtin = getattr(schema.BuiltinOperator, one.operator)
    if (builtin, one.version) not in codes:
        code = schema.OperatorCodeT()
        code.builtinCode, code.version = builtin, one.version
        code.deprecatedBuiltinCode = min(builtin, _PLACEHOLDER)
        codes[builtin, one.version] = len(model.operatorCodes)
        model.operatorCodes.append(code)
    new.opcodeIndex = codes[builtin, one.version]
    new.inputs = np.asarray(one.inputs, np.int32)
    new.outputs = np.asarray(one.outputs, np.int32)
    if (options := options_class(one.operator)) is not None:
        new.builtinOptionsType = getattr(schema.BuiltinOptions, options)
        new.builtinOptions = getattr(schema, f"{options}T")()
        for name, value in one.options.items():
            if not hasattr(new.builtinOptions, name):
                raise ValueError(f"{one.operator} has no option {name}")
            setattr(new.builtinOptions, name, _value(name, value))
    elif one.options:
        raise ValueError(f"{one.operator} has no options")
    return new


def _value(name: str, value: Option) -> Any:
    """Return an option as the schema's object has it: enumerations by number."""
    if isinstance(value, str) and name in _ENUMERATIONS:
        return int(getattr(_ENUMERATIONS[name], value))
    return list(value) if isinstance(value, tuple) else value


def read_options(options: Any) -> dict[str, Option]:
    """Return the options of an operator in a file as `graph_file` takes them.

    Args:
        options: the schema's object, None where the operator has none.

    Returns:
        All of them, also those that have their default.

    """
    if options is None:
        return {}
    return {name: _read_option(name, value) for name, value in vars(options).items()}


def _read_option(name: str, value: Any) -> Option:
    if name in _ENUMERATIONS:
        members = vars(_ENUMERATIONS[name]).items()
        return str(next(member for member, number in members if number == value))
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if value is None:
        return ()
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value) if isinstance(value, float) else int(value)
    return tuple(int(element) for element in value)
