"""The models of a pair as graphs, whose layers are held against each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeflare.diagnose.compression_error import ONLY_TFLITE
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Invocation
from edgeflare.models.model_file import read_model_file
from edgeflare.models.original import invocation_of
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import asks_for_shapes, fold_shapes, with_fixed_shapes
from edgeflare.models.tflite_graph import Graph


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """A model whose layers are looked into: its graph, and the file of that graph."""

    graph: Graph
    content: bytes


def layered_compressed(pair: Pair) -> LayeredModel:
    """Return the compressed model of a pair.

    Args:
        pair: pair whose shapes are folded, where it says so.

    Raises:
        UserError: its graph cannot be read.

    """
    path = pair.executed
    content = with_fixed_shapes(read_model_file(path), str(path), pair.interface.invocation)
    return LayeredModel(Graph(content, str(path)), content)


def layered_original(pair: Pair) -> LayeredModel:
    """Return the original of a pair; it is called as the compressed model is.

    Raises:
        UserError: as `tflite_original`; or its graph cannot be read.

    """
    path = tflite_original(pair)
    source = str(path)
    content = read_model_file(path)
    its = invocation_of(pair.interface.invocation, path, pair.compressed)
    if pair.fold_shapes and asks_for_shapes(path):
        content = fold_shapes(content, source, its).content
    content = with_fixed_shapes(content, source, its)
    return LayeredModel(Graph(content, source), content)


def tflite_original(pair: Pair) -> Path:
    """Return the path of a pair's original, whose layers can be seen.

    Raises:
        UserError: there is none, or it is no `.tflite` file.

    """
    if pair.original is None:
        raise UserError("there is no original")
    path = Path(pair.original)
    if path.suffix.lower() != ".tflite":
        raise UserError(ONLY_TFLITE)
    return path


def reason_not_seen(invocation: Invocation, inputs: int) -> str:
    """Return why a model is not compared layer by layer when called this way; empty where it is.

    Args:
        invocation: how the pair's models are called.
        inputs: how many inputs the compressed model has.

    """
    if invocation.frames or invocation.state:
        return "an input is a clip, whose frames are an inference each"
    if invocation.signature:
        return f"the model is called by its signature {invocation.signature!r}, and not as a graph"
    return f"the model has {inputs} inputs, and only models with one are cut" if inputs > 1 else ""
