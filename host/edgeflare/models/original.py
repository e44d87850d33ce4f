"""The original model, whatever it is: a TFLite file, an ONNX file, or a Python callable.

A converter may have given its tensors other names than the compressed model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from edgeflare.core.tensor import without_ones
from edgeflare.errors import UserError, path_suggestion
from edgeflare.models.evaluator import HostModel, Invocation
from edgeflare.models.in_process import open_callable, open_onnx
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.python_callable import is_callable


def open_original(pair: Pair, compressed: ModelInputs) -> HostModel:
    """Open the original model of a pair.

    Args:
        pair: names a path that ends in .tflite or .onnx, or a callable (`module:function`,
            `path/to/file.py:function`).
        compressed: the compressed model's inputs, which tell a callable its input's shape.

    Raises:
        UserError: the source is none of these, or cannot be opened.

    """
    source = str(pair.original)
    invocation = pair.interface.invocation
    suffix = Path(source).suffix.lower()
    if suffix == ".tflite":
        return open_tflite(
            Path(source), invocation=invocation_of(invocation, Path(source), pair.compressed)
        )
    if not is_callable(source) and suffix != ".onnx":
        if Path(source).exists():
            wrong = f"{source!r} is no original model"
        else:
            wrong = (
                f"there is no original model {source}{path_suggestion(Path(source), Path.is_file)}"
            )
        raise UserError(
            f"{wrong}: give a .tflite file, an .onnx file, or a Python callable as module:function"
        )
    if invocation.state or invocation.frames or invocation.steps:
        raise UserError(
            f"{source}: an original with a state, or of clips, has to be a .tflite file: convert it"
        )
    tensors = compressed.tensors.values()
    if suffix == ".onnx":
        # The original may call an input as the compressed model does, or as the pair does.
        shapes = {name: tensor.shape for name, tensor in compressed.tensors.items()}
        return open_onnx(Path(source), shapes | {tensor.name: tensor.shape for tensor in tensors})
    if len(tensors) > 1:
        raise UserError(
            f"{source}: an original with several inputs has to be a .tflite or .onnx file: convert"
            " it"
        )
    (tensor,) = tensors
    # An image without a dimension for its channels has one for the function.
    as_image = (1, *compressed.shape)
    return open_callable(source, as_image if prod(as_image) == prod(tensor.shape) else tensor.shape)


def invocation_of(invocation: Invocation, model: Path, compressed: Path) -> Invocation:
    """Return how a model is called, given how the compressed model of its pair is.

    An input or output is the one of its name. Where that has another shape, or there is none of the
    name, it is the one of the same shape, if there is only one.

    Args:
        invocation: how the models are called, with the names of the compressed model.
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
