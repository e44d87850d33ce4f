"""Quantized numbers that are handed on as they are, and read with another scale.

An operator that only moves values, and an app that hands a state from one inference to the next,
copy whole numbers. Where the place that they come from and the one that they go to have unlike
quantizations, these numbers become other values, though nothing computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from edgeflare.check.figures.file import FileFault
from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.models.tflite_graph import Graph, GraphTensor

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

_GROSS: Final = 0.1
"""Part of the range by which a number may be read otherwise before a state counts as faulty, though
its real values are handed on here: the zero points of a state are often one step apart."""


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
        yield FileFault(
            kind="raw state" if _unlike(one, other, _GROSS * _levels(one)) else "state scale",
            place=given,
            words=f"the state {made} comes out with {_scale(other)}, and goes in as {given} with"
            f" {_scale(one)}: handed on as it is, it is another state",
            advice="hand it on as real values, or quantize both with one scale",
        )


def _of_copies(graph: Graph) -> Iterator[FileFault]:
    """Yield operators whose output has another quantization than the numbers it is copied from."""
    for op in graph.operators:
        if op.name not in _COPYING:
            continue
        read = max(
            (graph.tensors[at] for at in op.inputs if at >= 0), key=lambda one: bool(one.scales)
        )
        for made in (graph.tensors[at] for at in op.outputs):
            if read.constant or not _unlike(made, read, _STEPS):
                continue
            name = str(layer_name(graph, op))
            yield FileFault(
                kind="copied scale",
                place=name,
                words=f"{name} copies numbers with {_scale(read)}, and as {made.name} they"
                f" are read with {_scale(made)}",
                advice="put a QUANTIZE there, or give both tensors one scale",
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


def _levels(tensor: GraphTensor) -> int:
    low, high = tensor.limits
    return high - low


def _scale(tensor: GraphTensor) -> str:
    if not tensor.scales:
        return "no scale"
    return f"a scale of {tensor.scales[0]:.4g} (zero point {tensor.zero_points[0]})"
