"""The names by which an original is called, where a converter gave its tensors other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from edgeflare.core.tensor import without_ones
from edgeflare.errors import UserError
from edgeflare.models.invocation import Invocation
from edgeflare.models.model_file import read_model_file
from edgeflare.models.tflite_graph import Graph, GraphTensor


def invocation_of(invocation: Invocation, model: Path, compressed: Path) -> Invocation:
    """Return how a model is called, given how the compressed model of its pair is.

    An input or output is the one of its name. Where that has another shape, or there is none of the
    name, it is the one of the same shape, if there is only one.

    Args:
        invocation: with the names of the compressed model.
        model: the other model, a `.tflite` file.
        compressed: the compressed model.

    Raises:
        UserError: a name is none of the model's, and its shape does not tell either.

    """
    if invocation.signature or not (invocation.state or invocation.shapes):
        return invocation
    theirs, ours = Graph(read_model_file(model), str(model)), Graph(read_model_file(compressed))

    def given(name: str) -> str:
        return _found("input", name, _at(theirs, theirs.inputs), _at(ours, ours.inputs), model)

    def made(name: str) -> str:
        return _found("output", name, _at(theirs, theirs.outputs), _at(ours, ours.outputs), model)

    return replace(
        invocation,
        state={given(fed): made(source) for fed, source in invocation.state.items()},
        shapes={given(name): shape for name, shape in invocation.shapes.items()},
    )


def _found(
    role: str,
    name: str,
    theirs: Sequence[GraphTensor],
    ours: Sequence[GraphTensor],
    model: Path,
) -> str:
    shapes = [without_ones(tensor.shape) for tensor in ours if tensor.name == name]
    alike = [tensor.name for tensor in theirs if without_ones(tensor.shape) in shapes]
    if len(alike) == 1 and name not in alike:
        return alike[0]
    if name in {tensor.name for tensor in theirs}:
        return name
    known = ", ".join(f"{tensor.name!r} {tensor.shape}" for tensor in theirs)
    raise UserError(
        f"{model} has no {role} {name!r}, and its shape does not tell which it is: its {role}s are"
        f" {known}"
    )


def _at(graph: Graph, indexes: Sequence[int]) -> list[GraphTensor]:
    return [graph.tensors[index] for index in indexes]
