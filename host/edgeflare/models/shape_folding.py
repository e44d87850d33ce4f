"""What a graph computes from the shapes of its tensors alone, folded into constants.

A flatten that TensorFlow converts is SHAPE, STRIDED_SLICE, PACK and RESHAPE: it asks at run time
for sizes that never change. Accelerators refuse the tensors behind it, since they plan all memory
before they run. With the result as a constant, RESHAPE is an operator like any other.

That is done on the host, when a pair is opened, and not by the agent: so twin, ensemble and device
have the very same file, which is proven to decide as the user's own where both can be run. The
folded file is not kept, since it follows from the user's; a run notes its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Invocation
from edgeflare.models.graph_parts import changeable_copy, packed
from edgeflare.models.model_file import read_model_file, temporary_model
from edgeflare.models.model_probe import HostProbe, ProbeFailed, ProbeRefused, Values
from edgeflare.models.pair import FoldedFile, Pair
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.models.tflite_writer import Writer


@contextmanager
def with_shapes_folded(pair: Pair) -> Iterator[Pair]:
    """Fold the shapes of a pair's compressed model, if the pair says so.

    The file lies in a temporary folder for as long as this is open; it is the same for the same
    model, so it is made anew whenever a run is opened. Errors name the user's own file.

    Args:
        pair: a pair that is not opened yet.

    Yields:
        The pair, in which `executed` is the file to run.

    """
    if not pair.fold_shapes:
        yield pair
        return
    content, name = read_model_file(pair.compressed), str(pair.compressed)
    folding = fold_shapes(content, name, pair.interface.invocation)
    sha256 = hashlib.sha256(folding.content).hexdigest()
    stem, called = f"{pair.compressed.stem}-folded", f"{name} with its shapes folded"
    with temporary_model(folding.content, stem, called) as path:
        yield replace(pair, folded=FoldedFile(path, sha256, folding.operators))


_SIZED_BY_VALUES: Final = frozenset(("UNIQUE", "WHERE", "IF", "WHILE", "CALL"))
"""Operators whose outputs have sizes that follow from values, or from another graph."""

_READING_NUMBERS: Final = frozenset(("CAST", "EMBEDDING_LOOKUP", "GATHER", "GATHER_ND"))
"""Operators that take whole numbers as data: these do not size what is put out."""

_DRAWING: Final = frozenset(("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"))
"""Operators whose outputs are others each time."""

_BUILT_IN: Final = frozenset(vars(schema.BuiltinOperator))


@dataclass(frozen=True, slots=True)
class ShapeFolding:
    """A model whose shapes are folded.

    Attributes:
        content: the `.tflite` file.
        operators: names of the operators that constants replaced, in execution order.

    """

    content: bytes
    operators: tuple[str, ...]


def fold_shapes(
    content: bytes, source: str = "the model", invocation: Invocation = ONCE
) -> ShapeFolding:
    """Replace what the main graph computes from fixed shapes alone by constants.

    All else stays as it is: weights, names, signatures, and the other operators in their order. The
    constants are what the host's built-in kernels compute.

    Args:
        content: a `.tflite` file.
        source: what the user calls it, for messages.
        invocation: how the model is called: `shapes` are those of the inputs, which the file has
            else.

    Raises:
        UserError: there is nothing to fold, a size follows from values, the signature is not of the
            main graph, or the host's kernels do not run the model.

    """
    graph = Graph(content, source)
    if shapes := _fixed_shapes(graph, invocation):
        reshaped = Writer(content)
        for index, shape in shapes.items():
            reshaped.graph.tensors[index].shape = np.asarray(shape, np.int32)
        content = reshaped.content()
        graph = Graph(content, source)
    folded = _of_shapes_alone(graph)
    if not folded:
        raise UserError(
            f"{source} computes nothing from the shapes of its tensors, so there is nothing to"
            " fold: leave --fold-shapes out"
        )
    writer = Writer(content)
    for index, values in _computed(graph, folded).items():
        tensor = writer.graph.tensors[index]
        tensor.shape = np.asarray(values.shape, np.int32)
        tensor.buffer = writer.buffer(values.tobytes())
    dropped = {operator.index for operator in folded}
    writer.graph.operators = [
        operator for index, operator in enumerate(writer.graph.operators) if index not in dropped
    ]
    return ShapeFolding(writer.content(), tuple(operator.name for operator in folded))


def with_fixed_shapes(content: bytes, source: str, invocation: Invocation) -> bytes:
    """Give a model the shapes that its tensors have when it runs, its inner ones too.

    A file stores 1 for what an invocation fixes, and for what the model computes as it runs, such
    as the number of frames of a sound.

    Args:
        content: a `.tflite` file.
        source: what the user calls it, for messages.
        invocation: how the model is called: `shapes` are those of the inputs.

    Returns:
        A file that runs alike without the invocation; the same one where it stores those shapes.

    Raises:
        UserError: the model cannot be read, or the host's kernels do not run it in these shapes.

    """
    graph = Graph(content, source)
    shapes = _fixed_shapes(graph, invocation)
    if not shapes and not any(map(_is_open, graph.model.subgraphs[0].tensors)):
        return content
    writer = Writer(content)
    for index, shape in shapes.items():
        writer.graph.tensors[index].shape = np.asarray(shape, np.int32)
    try:
        with HostProbe(writer.content(), "builtin", capture=True) as probe:
            shapes |= dict(zip(probe.made, probe.shapes, strict=True))
    except ProbeRefused:
        if invocation.shapes:
            raise
        return content
    if all(graph.tensors[index].shape == shape for index, shape in shapes.items()):
        return content
    for index, shape in shapes.items():
        writer.graph.tensors[index].shape = np.asarray(shape, np.int32)
        writer.graph.tensors[index].shapeSignature = None
    return writer.content()


def _is_open(tensor: Any) -> bool:
    """Whether a tensor has a size beyond that of the batch for which the file stores 1."""
    signature = () if tensor.shapeSignature is None else tensor.shapeSignature
    shape = () if tensor.shape is None else tensor.shape
    return any(pair == (1, -1) for pair in zip(shape[1:], signature[1:], strict=False))


def asks_for_shapes(path: Path) -> bool:
    """Whether the main graph of a file has a SHAPE, without which there is nothing to fold."""
    return any(
        operator.name == "SHAPE" for operator in Graph(read_model_file(path), str(path)).operators
    )


def _fixed_shapes(graph: Graph, invocation: Invocation) -> dict[int, Sequence[int]]:
    """Return the shapes that an invocation gives inputs, by the tensors' indexes."""
    named: Mapping[str, int] = {graph.tensors[input_].name: input_ for input_ in graph.inputs}
    if key := invocation.signature:
        signatures = {
            _text(signature.signatureKey): signature
            for signature in graph.model.signatureDefs or []
        }
        if key in signatures and signatures[key].subgraphIndex:
            raise UserError(
                f"{graph.source}: the signature {key!r} is not of the first graph, in which shapes"
                " are folded: leave --fold-shapes out"
            )
        if key in signatures:
            named = {
                _text(input_.name): int(input_.tensorIndex) for input_ in signatures[key].inputs
            }
    # A name that is none of the inputs is refused where the model is opened.
    return {named[name]: shape for name, shape in invocation.shapes.items() if name in named}


def _of_shapes_alone(graph: Graph) -> list[GraphOp]:
    """Return the operators whose outputs follow from the shapes of tensors."""
    known = {tensor.index for tensor in graph.tensors if tensor.constant}
    known.update(tensor for at in graph.preparing for tensor in graph.operators[at].outputs)
    unsized: dict[int, GraphOp] = {}
    computed: set[int] = set()
    folded = []
    for operator in graph.operators:
        unsizing = next((unsized[tensor] for tensor in operator.inputs if tensor in unsized), None)
        if operator.name == "SHAPE" and unsizing is not None:
            raise UserError(
                f"{graph.source}: SHAPE (operator {operator.index}) asks for a shape that is"
                f" not fixed: {unsizing.name} (operator {unsizing.index}) sizes what it puts"
                " out by values; leave --fold-shapes out, and take a device that runs it on the CPU"
            )
        if _follows(operator, known, computed) and not set(operator.outputs) & set(graph.outputs):
            folded.append(operator)
            known.update(operator.outputs)
            computed.update(operator.outputs)
        elif unsizing is not None or _sizes_by_values(graph, operator, known):
            unsized.update(dict.fromkeys(operator.outputs, unsizing or operator))
    return folded


def _follows(operator: GraphOp, known: set[int], computed: set[int]) -> bool:
    """Whether what an operator puts out follows from shapes alone, and is always the same."""
    if operator.name == "SHAPE":
        return True
    if operator.name in _SIZED_BY_VALUES | _DRAWING or operator.name not in _BUILT_IN:
        return False
    return known.issuperset(operator.inputs) and not computed.isdisjoint(operator.inputs)


def _sizes_by_values(graph: Graph, operator: GraphOp, known: set[int]) -> bool:
    """Whether values that are known at run time alone may decide the size of what is put out."""
    if operator.name in _SIZED_BY_VALUES or operator.name not in _BUILT_IN:
        return True
    if operator.name in _READING_NUMBERS | {"SHAPE"}:
        return False
    unknown = (graph.tensors[tensor] for tensor in operator.inputs if tensor not in known)
    return any(tensor.dtype in ("int32", "int64") and not tensor.scales for tensor in unknown)


def _computed(graph: Graph, folded: Sequence[GraphOp]) -> dict[int, Values]:
    """Return what operators put out for those that stay, by the tensors' indexes."""
    gone = {operator.index for operator in folded}
    staying = (operator for operator in graph.operators if operator.index not in gone)
    read = {tensor for operator in staying for tensor in operator.inputs}
    wanted = [tensor for operator in folded for tensor in operator.outputs if tensor in read]
    if not wanted:
        return {}
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    main.operators = main.operators[: folded[-1].index + 1]
    main.outputs = wanted
    inputs = [graph.tensors[index] for index in graph.inputs]
    try:
        with HostProbe(packed(model), "builtin") as probe:
            # Shapes are those of any input, so zeros do as well as others.
            values = probe.run([np.zeros(input_.shape, input_.dtype) for input_ in inputs])
            return dict(zip(wanted, values, strict=True))
    except ProbeFailed as failed:
        raise UserError(
            f"{graph.source}: its shapes cannot be folded, since the operators before them give no"
            f" answer on the host ({failed}): leave --fold-shapes out"
        ) from failed


def _text(name: Any) -> str:
    return "" if name is None else str(name.decode(errors="replace"))
