"""The float network of an ONNX original, in the graph of the model that was compressed from it.

A repair is fitted to the tensors of a float `.tflite` file. An ONNX model has other operators and
lays its values out otherwise, channels first. But a converter leaves weights what they are, apart
from their order. So the graph of the compressed model is taken, all of it in float32, with the
weights of the ONNX layer that each layer's resemble. What that computes has to be what the ONNX
model computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import permutations
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.errors import UserError
from edgeflare.models.model_file import check_model_file
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.fitting.quantized_network import constant_of
from edgeflare.repair.fitting.tensor_capture import answered

Real = NDArray[np.float64]

_LIKE: Final = 0.25
"""Error of a layer's weights, as a share of their length, up to which they are of an ONNX layer.
Rounding to eight bits makes .01 of it, to four bits .1 to .15, and other weights 1 or more."""

_SAME: Final = 1e-3
"""Difference of outputs, as a share of the largest, up to which two networks compute the same."""


def is_onnx(path: Path) -> bool:
    """Whether a path is that of an ONNX file."""
    return path.suffix.lower() == ".onnx"


def onnx_network(compressed: bytes, path: Path) -> bytes:
    """Return the compressed model's graph in float32, with the weights of an ONNX model.

    Args:
        compressed: the compressed model's `.tflite` file.
        path: path of the ONNX file that it was converted from.

    Returns:
        A `.tflite` file; its inputs and outputs are those of the compressed model, in float32.

    Raises:
        UserError: the package onnx is missing, the file cannot be read, or a layer with weights has
            no counterpart in it.

    """
    graph = Graph(compressed, "the compressed model")
    nodes, constants_by_name = _read(path)
    try:
        layers = [*_onnx_layers(nodes, constants_by_name)]
    except ValueError as error:  # of arrays whose shapes do not go together
        raise UserError(f"{path} cannot be read as an ONNX model: {error}") from error
    constants: dict[int, NDArray[np.float32]] = {}
    for operator in graph.layers:
        weights = constant_of(graph, operator, 0) if operator.name in WEIGHTED else None
        if weights is None or weights in constants:
            continue
        found = _most_alike(graph, operator, weights, layers)
        if found is None:
            raise UserError(
                f"{path} has no weights like those of operator {operator.index}, {operator.name}"
                f" {graph.tensors[operator.outputs[0]].name!r}, of the compressed model: name the"
                " model that it was converted from, or give that as .tflite"
            )
        constants[weights], bias = found
        place = constant_of(graph, operator, 1)
        if place is not None and bias.size == graph.tensors[place].size:
            constants[place] = bias
    return _in_float(compressed, graph, constants)


def network_rows(
    path: Path, network: bytes, rows: NDArray[np.generic], outputs: NDArray[np.generic]
) -> NDArray[np.float32]:
    """Return inputs of an ONNX model as its network in the compressed graph takes them.

    Args:
        path: path of the ONNX file.
        network: what `onnx_network` returned.
        rows: inputs of the ONNX model, (n, *shape), channels first or last.
        outputs: what the ONNX model makes of the first of them, (m, values).

    Returns:
        (n, *input shape without its batch dimension).

    Raises:
        UserError: they are of another size, or the network computes outputs of them that differ by
            more than a thousandth of the largest.

    """
    graph = Graph(network)
    shape = graph.tensors[graph.inputs[0]].shape[1:]
    if rows[0].size != prod(shape):
        raise UserError(
            f"{path} takes inputs of {rows[0].size} values, the compressed model others"
        )
    last = [size for size in np.moveaxis(rows, 1, -1).shape[1:] if size != 1]
    turned = [size for size in shape if size != 1] == last and rows.shape[1:] != shape
    arranged = (np.moveaxis(rows, 1, -1) if turned else rows).reshape(len(rows), *shape)
    with HostProbe(network, "builtin") as probe:
        for row, wanted in zip(arranged, outputs, strict=False):
            said = f"{path}: its weights in the compressed model's operators gave no answer"
            made = answered(probe, [row.reshape(1, *shape)], said)[0].ravel()
            most = float(np.abs(wanted).max(initial=0.0))
            # What is no number is equal to nothing.
            if made.size != wanted.size or not np.abs(made - wanted.ravel()).max() <= _SAME * most:
                raise UserError(
                    f"{path} computes something else than the compressed model's operators do with"
                    " its weights, so its tensors cannot be told: give the original as .tflite"
                )
    return np.ascontiguousarray(arranged, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class _OnnxLayer:
    """Weights of a layer as ONNX has them, and its biases, zeros where it has none."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]


_NORMALIZATION: Final = 4
"""Constants of a normalization: gamma, beta, mean and variance."""


def _onnx_layers(
    nodes: Sequence[Any], constants: Mapping[str, NDArray[Any]]
) -> Iterator[_OnnxLayer]:
    """Yield the layers with constant weights, a normalization behind one folded into it.

    Args:
        nodes: nodes of the graph.
        constants: its constants, by their names.

    Raises:
        ValueError: constants of one layer have shapes that do not go together.

    """
    readers: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in nodes:
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            continue
        found = [constants[name] for name in node.input if name in constants]
        if not found or found[0].ndim < 2:
            continue
        weights, bias = found[0], found[1].ravel() if len(found) > 1 else np.zeros(1, np.float32)
        after = readers.get(node.output[0], [])
        behind = after[0] if len(after) == 1 else node
        given = [constants[name] for name in behind.input if name in constants]
        if (node.op_type, behind.op_type) == ("MatMul", "Add") and given:
            bias = given[0].ravel()
        elif behind.op_type == "BatchNormalization" and len(given) == _NORMALIZATION:
            gamma, beta, mean, variance = given
            epsilon = next((a.f for a in behind.attribute if a.name == "epsilon"), 1e-5)
            factor = gamma / np.sqrt(variance + epsilon)
            shape = [1] * weights.ndim
            shape[_out_axis(node)] = -1
            weights, bias = weights * factor.reshape(shape), (bias - mean) * factor + beta
        yield _OnnxLayer(weights.astype(np.float32), bias.astype(np.float32))


def _out_axis(node: Any) -> int:
    """Return the axis of a layer's weights that numbers its outputs."""
    turned = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return int(node.op_type != "Conv" and not turned)


def _read(path: Path) -> tuple[Sequence[Any], Mapping[str, NDArray[Any]]]:
    """Return the nodes of an ONNX file, and its constants by their names."""
    check_model_file(path)
    try:
        import onnx  # noqa: PLC0415  # an extra: absent unless asked for
        from onnx import numpy_helper  # noqa: PLC0415
    except ImportError as missing:
        raise UserError(
            f'{path}: weights of ONNX models need onnx: pip install "edgeflare[onnx]"'
        ) from missing
    try:
        graph = onnx.load(path).graph
        constants = {known.name: numpy_helper.to_array(known) for known in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                for attribute in node.attribute:
                    if attribute.name == "value":
                        constants[node.output[0]] = numpy_helper.to_array(attribute.t)
    except Exception as error:  # a damaged file raises whatever protobuf, numpy or the system do
        raise UserError(f"{path} cannot be read as an ONNX model: {error}") from error
    return graph.node, constants


def _most_alike(
    graph: Graph, operator: GraphOp, weights: int, layers: Sequence[_OnnxLayer]
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Return weights and biases of the ONNX layer that a layer's resemble most; None of none."""
    tensor = graph.tensors[weights]
    real = tensor.real(graph.values(weights))
    length = float(np.linalg.norm(real)) or 1.0
    flattened = _flattened(graph, operator)
    best, found = _LIKE, None
    for layer in layers:
        for arranged in _arrangements(layer.weights, tensor.shape, flattened):
            error = float(np.linalg.norm(arranged - real)) / length
            if error < best:
                best, found = error, (arranged, layer.bias)
    if found is None:
        return None
    arranged, bias = found
    if bias.size == 1:
        bias = np.broadcast_to(bias, graph.tensors[operator.outputs[0]].shape[-1])
    return np.ascontiguousarray(arranged), bias


def _arrangements(
    weights: NDArray[np.float32], shape: tuple[int, ...], flattened: tuple[int, ...]
) -> Iterator[NDArray[np.float32]]:
    """Yield weights of an ONNX layer in each order of axes that has a shape, ones aside.

    Args:
        weights: weights as ONNX has them.
        shape: the shape in the compressed model.
        flattened: (height, width, channels) of the picture whose values the layer reads in a row,
            which ONNX has with its channels first; empty where it reads none.

    """
    sizes = tuple(size for size in shape if size != 1)
    squeezed = weights.reshape([size for size in weights.shape if size != 1])
    for axes in permutations(range(squeezed.ndim)):
        turned = squeezed.transpose(axes)
        if turned.shape == sizes:
            yield turned.reshape(shape)
            if flattened:
                height, width, channels = flattened
                rows = turned.reshape(-1, channels, height, width)
                yield np.moveaxis(rows, 1, -1).reshape(shape)


def _flattened(graph: Graph, operator: GraphOp) -> tuple[int, ...]:
    """Return (height, width, channels) of the picture that a layer reads in a row; () of none."""
    shape: tuple[int, ...] = graph.tensors[graph.fed(operator)[0]].shape
    made = graph.made_by.get(graph.fed(operator)[0])
    if made is not None and graph.operators[made].name == "RESHAPE":
        shape = graph.tensors[graph.operators[made].inputs[0]].shape
    picture, read = shape[1:], graph.tensors[operator.inputs[1]].shape[-1]
    whole = operator.name == "FULLY_CONNECTED" and len(shape) == 4 and prod(picture) == read
    return picture if whole else ()


def _in_float(
    compressed: bytes, graph: Graph, constants: Mapping[int, NDArray[np.float32]]
) -> bytes:
    """Return a file with all its numbers in float32, some constants replaced."""
    writer = Writer(compressed)
    whole = {
        tensor.index
        for tensor in graph.tensors
        if (tensor.scales and "int" in tensor.dtype) or tensor.dtype == "float16"
    }
    for index in whole | set(constants):
        tensor, raw = graph.tensors[index], writer.graph.tensors[index]
        raw.type, raw.quantization = schema.TensorType.FLOAT32, None
        if tensor.constant:
            values = constants.get(index)
            if values is None:
                values = tensor.real(graph.values(index)).astype(np.float32)
            raw.buffer = writer.buffer(np.ascontiguousarray(values).tobytes())
    _leave_out_conversions(writer, graph, whole)
    return writer.content()


def _leave_out_conversions(writer: Writer, graph: Graph, whole: AbstractSet[int]) -> None:
    """Remove operators that convert float32 to float32, those tensors and what is in `whole`."""
    instead: dict[int, int] = {}
    kept = []
    for operator, raw in zip(graph.operators, writer.graph.operators, strict=True):
        if operator.name in ("QUANTIZE", "DEQUANTIZE"):
            given, made = operator.inputs[0], operator.outputs[0]
            if all(at in whole or graph.tensors[at].dtype == "float32" for at in (given, made)):
                instead[made] = instead.get(given, given)
                continue
        if raw.inputs is not None:
            raw.inputs = [instead.get(int(at), int(at)) for at in raw.inputs]
        kept.append(raw)
    writer.graph.operators = kept
    for made in graph.outputs:
        if made in instead:
            writer.replace_output(made, instead[made])
