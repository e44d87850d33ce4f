"""Read a `.tflite` file with all its buffers, and constants as it stores them, packed or sparse.

A file may have constants behind its flatbuffer, each at the offset that its entry in the table of
buffers names (`Buffer.offset` and `size` of the schema), and options of custom operators likewise.
Converters write such files where the constants are large.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.flatbuffer_reader import MOST_READINGS, unpacked_model
from edgeflare.models.model_structure import require_structure

_NO_OFFSET = 1
"""The largest offset that names no place, as the schema says: 0 is the default, 1 a placeholder."""


def read_model(content: bytes, source: str = "the model") -> Any:
    """Return a file as an object tree.

    Args:
        content: the file.
        source: what the user calls it, for messages.

    Returns:
        A `ModelT` of the schema. Whatever lay outside of the flatbuffer is inside, so it can be
        packed as it is.

    Raises:
        UserError: it cannot be read, is cut off, or has a structure that no model has.

    """
    try:
        model = unpacked_model(content)
        require_structure(model)
        _bring_inside(model, content, source)
    except UserError:
        raise
    except Exception as error:  # whatever flatbuffers raises on a damaged file
        raise UserError(f"{source}: its graph cannot be read: {error}") from error
    return model


def _bring_inside(model: Any, content: bytes, source: str) -> None:
    """Give buffers and operators what lies outside of the flatbuffer, once or a few times each."""
    operators = [operator for graph in model.subgraphs for operator in graph.operators]
    buffers = [known for known in model.buffers if known.offset > _NO_OFFSET]
    custom = [operator for operator in operators if operator.largeCustomOptionsOffset > _NO_OFFSET]
    sizes = [known.size for known in buffers] + [
        operator.largeCustomOptionsSize for operator in custom
    ]
    for buffer in buffers:
        buffer.data = _outside(content, buffer.offset, buffer.size, source)
        buffer.offset = buffer.size = 0
    for operator in custom:
        place = operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize
        operator.customOptions = _outside(content, *place, source)
        operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0
    if sum(sizes) > MOST_READINGS * len(content):  # each is written by itself
        raise ValueError("it repeats what lies behind its graph")


def is_flatbuffer(content: bytes) -> bool:
    """Whether a file says that it is of the format."""
    return content[4:8] == b"TFL3"


def declared_inputs(
    model: Any, signature: str = ""
) -> tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]:
    """Return the inputs of a model.

    Args:
        model: as `read_model` returns it.
        signature: the name of the signature whose inputs are meant; empty for the first graph.

    Returns:
        Name, shape as it is stored, and shape with -1 in each dynamic dimension. None of a model
        that has no such signature: the runtime says what is wrong with it.

    """
    graph, entries = _inputs(model, signature)
    return tuple(_declared(name, graph.tensors[tensor]) for name, tensor in entries)


def unread_inputs(model: Any, signature: str = "") -> tuple[str, ...]:
    """Return the names of a model's inputs that no operator reads and that are no output.

    Args:
        model: as `read_model` returns it.
        signature: the name of the signature whose inputs are meant; empty for the first graph.

    Returns:
        None of a model that has no such signature.

    """
    graph, entries = _inputs(model, signature)
    read = {int(at) for operator in graph.operators for at in operator.inputs} | set(
        map(int, graph.outputs)
    )
    unread = ((name, tensor) for name, tensor in entries if tensor not in read)
    return tuple(_declared(name, graph.tensors[tensor])[0] for name, tensor in unread)


def _inputs(model: Any, signature: str) -> tuple[Any, list[tuple[bytes | None, int]]]:
    """Return the graph of a signature, and the name and the tensor of each of its inputs."""
    if not signature:
        graph = model.subgraphs[0]
        return graph, [(None, int(at)) for at in graph.inputs]
    known = (
        described
        for described in model.signatureDefs or []
        if described.signatureKey == signature.encode()
    )
    chosen = next(known, None)
    if chosen is None:
        return model.subgraphs[0], []
    entries = [(input_.name, int(input_.tensorIndex)) for input_ in chosen.inputs]
    return model.subgraphs[chosen.subgraphIndex], entries


def _declared(name: bytes | None, tensor: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    shape, signature = (
        () if sizes is None else tuple(map(int, sizes))
        for sizes in (tensor.shape, tensor.shapeSignature)
    )
    return (name or tensor.name or b"").decode(errors="replace"), shape, signature or shape


def _outside(content: bytes, offset: int, size: int, source: str) -> NDArray[np.uint8]:
    if offset + size > len(content):
        raise UserError(
            f"{source}: the file is cut off: it has {len(content)} bytes, and a constant ends at "
            f"{offset + size}; copy or convert the model again"
        )
    return np.frombuffer(content, np.uint8, size, offset)


PACKED: Mapping[int, tuple[int, int, int]] = {
    schema.TensorType.INT4: (4, -8, 7),
    schema.TensorType.UINT4: (4, 0, 15),
    schema.TensorType.INT2: (2, -2, 1),
}
"""Types of several numbers in a byte, the first one lowest: bits, smallest and largest number."""


def unpacked_numbers(raw: bytes, tensor_type: int, count: int) -> NDArray[np.generic]:
    """Return the first numbers of packed ones, (count,) int8 or, where none is negative, uint8."""
    bits, lowest, _ = PACKED[tensor_type]
    places = np.arange(0, 8, bits, dtype=np.uint8)
    octets = np.frombuffer(raw, np.uint8)[:, None]
    numbers: NDArray[np.uint8] = (octets >> places & (2**bits - 1)).ravel()[:count]
    # The sign is the highest bit: subtracting it twice makes the upper half negative.
    sign = 2 ** (bits - 1)
    return (numbers ^ sign).astype(np.int8) - np.int8(sign) if lowest < 0 else numbers


def packed_numbers(numbers: NDArray[np.generic], tensor_type: int) -> bytes:
    """Return numbers as a file packs them; the inverse of `unpacked_numbers`."""
    bits, _, _ = PACKED[tensor_type]
    each = 8 // bits
    known = numbers.ravel().astype(np.uint8) & (2**bits - 1)
    octets = np.append(known, np.zeros(-known.size % each, np.uint8)).reshape(-1, each)
    places = np.arange(0, 8, bits, dtype=np.uint8)
    return bytes((octets << places).sum(1, dtype=np.uint8))


def places_of_sparse(sparsity: Any, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
    """Return where the stored values of a sparse tensor stand, one array for each dimension.

    Args:
        sparsity: the tensor's `SparsityParametersT`. Its levels are the tensor's dimensions and
            then those within blocks, in the order of traversal; each is dense or compressed.
        shape: shape of the tensor.

    Raises:
        ValueError: there are more than the shape has room for; a damaged file raises other errors.

    """
    levels, room = np.zeros((1, 0), np.int64), prod(shape)
    for level in sparsity.dimMetadata:
        if level.format == schema.DimensionType.DENSE:
            if len(levels) * level.denseSize > room:
                raise ValueError("it has more values than its shape has room for")
            counts = np.full(len(levels), level.denseSize)
            inner = np.tile(np.arange(level.denseSize), len(levels))
        else:
            counts = np.diff(np.asarray(level.arraySegments.values, np.int64))
            inner = np.asarray(level.arrayIndices.values, np.int64)
        levels = np.hstack([np.repeat(levels, counts, axis=0), inner[:, None]])
    place = np.zeros((len(levels), len(shape)), np.int64)
    order = [int(axis) for axis in sparsity.traversalOrder]
    for at, level in enumerate(order):
        if level < len(shape):
            place[:, level] += levels[:, at] * _block_size(sparsity, order, level, len(shape))
        else:
            place[:, int(sparsity.blockMap[level - len(shape)])] += levels[:, at]
    return tuple(place.T)


def _block_size(sparsity: Any, order: list[int], dimension: int, rank: int) -> int:
    """Return how many values along a dimension a block has; 1 where blocks do not cut it."""
    blocked = [] if sparsity.blockMap is None else [int(axis) for axis in sparsity.blockMap]
    if dimension not in blocked:
        return 1
    level = order.index(rank + blocked.index(dimension))
    return int(sparsity.dimMetadata[level].denseSize)
