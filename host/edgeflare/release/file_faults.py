"""What the files of a pair say of its faults without being run.

An operator that only moves values, and an app that hands a state from one inference to the next,
copy whole numbers. Where the place that they come from and the one that they go to have unlike
quantizations, these numbers become other values, though nothing computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from edgeflare.campaign.dry_run import unread_by_model
from edgeflare.diagnose.constant_error import constants_in_pairs
from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.layer_graphs import layered_compressed, layered_original
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.option_differences import option_differences
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.release.figures.file import FileFault, FileFigures

_COPYING: Final = frozenset(
    {
        *("DEPTH_TO_SPACE", "EXPAND_DIMS", "GATHER", "RESHAPE", "SLICE", "SPACE_TO_DEPTH"),
        *("SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE", "UNPACK"),
    }
)
"""Operators whose kernels copy numbers and look at no quantization."""

_STEPS: Final = 0.5
"""Steps by which a number may be read otherwise: scales that differ by rounding in float32 come to
some millionths."""

_LEAST_HELD: Final = float(np.finfo(np.float16).tiny)
"""Smallest number that every converter to half precision keeps; some make 0 of subnormal ones."""

_GROSS: Final = 0.1
"""Part of the range by which a number may be read otherwise before a state counts as faulty, though
its real values are handed on here: the zero points of a state are often one step apart."""


def file_figures(pair: Pair) -> FileFigures:
    """Return what the files of an opened pair say."""
    file = pair.original_file
    unread = unread_by_model(pair)
    shared = set(unread.get("original", ())) & set(unread.get("compressed model", ()))
    # Without an original nobody knows whether it should be read.
    mine = unread.get("compressed model", ())
    alone = [name for name in mine if name not in shared and pair.original is not None]
    graphs = _graphs(pair)
    faults = [
        *(_unread(name) for name in alone),
        *(scale_faults(graphs.compressed, pair.interface.invocation.state) if graphs else ()),
        *(_of_layers(graphs.compressed, graphs.original) if graphs and graphs.original else ()),
    ]
    return FileFigures(
        original_bytes=None if file is None else file.stat().st_size,
        compressed_bytes=pair.compressed.stat().st_size,
        faults=tuple(faults),
        notes=tuple(
            f"no operator of the {model} reads its input {name}"
            for model, names in (
                ("original", unread.get("original", ())),
                ("compressed model", mine if pair.original is None else ()),
            )
            for name in names
        )
        + _same_or_swapped(file, pair, graphs),
    )


def _same_or_swapped(file: Path | None, pair: Pair, graphs: _Graphs | None) -> tuple[str, ...]:
    """Return what makes the two files doubtful: they are equal, or seem to be swapped."""
    if file is not None and read_model_file(file) == read_model_file(pair.compressed):
        return ("both files are equal: there is no compression to be judged",)
    if graphs is not None and graphs.original is not None:
        mine, its = (
            any(tensor.constant and tensor.scales for tensor in graph.tensors)
            for graph in (graphs.compressed, graphs.original)
        )
        if its and not mine:
            return ("the original is quantized and the compressed model is not: are they swapped?",)
    return ()


@dataclass(frozen=True, slots=True)
class _Graphs:
    compressed: Graph
    original: Graph | None


def _graphs(pair: Pair) -> _Graphs | None:
    try:
        compressed = layered_compressed(pair).graph
    except UserError:
        return None
    try:
        return _Graphs(compressed, layered_original(pair).graph)
    except UserError:
        return _Graphs(compressed, None)


def _unread(name: str) -> FileFault:
    return FileFault(
        kind="unread-input",
        place=name,
        sentence=f"no operator of the compressed model reads its input {name}: what is given there"
        " changes nothing",
        next_step=f"export the model with {name} connected, and not as a constant",
    )


def _of_layers(compressed: Graph, original: Graph) -> Iterator[FileFault]:
    for op, (theirs, _) in match_layers(compressed, original).items():
        name = str(layer_name(compressed, compressed.operators[op]))
        if others := option_differences(compressed, op, original, theirs):
            yield FileFault(
                kind="options",
                place=name,
                sentence=f"{name} is not the original's operator: {'; '.join(map(str, others))}",
                next_step="convert the model anew, and hold both graphs side by side",
            )
        for mine, its in constants_in_pairs(compressed, op, original, theirs):
            if _flushed(compressed, mine, original, its):
                yield FileFault(
                    kind="flushed-constant",
                    place=name,
                    sentence=f"a constant of {name} became 0, which half precision cannot hold",
                    next_step=f"keep {name} in float32, or enlarge the constant",
                )


def _flushed(compressed: Graph, mine: GraphTensor, original: Graph, its: GraphTensor) -> bool:
    """Whether half precision made zeros of all values of a constant, of which none was one.

    Values that it holds became 0 by other means, and their layer has other constants.
    """
    stored = compressed.stored(mine.index)
    if stored is None or stored.dtype != "float16":
        return False
    values, wanted = compressed.real_values(mine.index), original.real_values(its.index)
    if values is None or wanted is None or not np.size(values):
        return False
    held = np.abs(wanted) >= _LEAST_HELD
    return not np.any(values) and bool(np.all(wanted)) and not np.any(held)


def scale_faults(graph: Graph, state: Mapping[str, str]) -> Iterator[FileFault]:
    """Yield states and operators of a compressed model whose numbers are read otherwise.

    Args:
        graph: graph of the compressed model.
        state: the output that feeds each input of the next inference, by names of tensors.

    """
    yield from _of_states(graph, state)
    yield from _of_copies(graph)


def _of_states(graph: Graph, state: Mapping[str, str]) -> Iterator[FileFault]:
    """Yield states that leave the model with another scale than they come in with.

    EdgeFlare itself hands their real values on.
    """
    known = {tensor.name: tensor for tensor in graph.tensors}
    for given, made in state.items():
        one, other = known.get(given), known.get(made)
        if one is None or other is None or not _unlike(one, other, _STEPS):
            continue
        low, high = one.limits
        yield FileFault(
            kind="raw-state" if _unlike(one, other, _GROSS * (high - low)) else "state-scale",
            place=given,
            sentence=f"the state {made} comes out with {_scale(other)}, and goes in as {given} with"
            f" {_scale(one)}: handed on as it is, it is another state",
            next_step="hand it on as real values, or quantize both with one scale",
        )


def _of_copies(graph: Graph) -> Iterator[FileFault]:
    """Yield operators whose output has another quantization than the numbers it is copied from."""
    for op in graph.operators:
        if op.name not in _COPYING:
            continue
        read = max(
            (graph.tensors[at] for at in op.inputs if at >= 0),
            key=lambda tensor: bool(tensor.scales),
        )
        for made in (graph.tensors[at] for at in op.outputs):
            if read.constant or not _unlike(made, read, _STEPS):
                continue
            name = str(layer_name(graph, op))
            yield FileFault(
                kind="copied-scale",
                place=name,
                sentence=f"{name} copies numbers with {_scale(read)}, and as {made.name} they"
                f" are read with {_scale(made)}",
                next_step="put a QUANTIZE there, or give both tensors one scale",
            )


def _unlike(one: GraphTensor, other: GraphTensor, steps: float) -> bool:
    """Whether numbers of one tensor are read as values by more than some steps off in the other."""
    if one.dtype != other.dtype or not (one.scales or other.scales):
        return False
    if len(one.scales) != 1 or len(other.scales) != 1:
        return one.scales != other.scales
    ends = np.asarray(one.limits, np.float64)
    here, there = ((ends - its.zero_points[0]) * its.scales[0] for its in (one, other))
    return bool(np.abs(there - here).max() > steps * one.scales[0])


def _scale(tensor: GraphTensor) -> str:
    if not tensor.scales:
        return "no scale"
    return f"a scale of {tensor.scales[0]:.4g} (zero point {tensor.zero_points[0]})"
