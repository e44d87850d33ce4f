"""Where NaN or infinity begins in a model on one input."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe, ProbeFailed, Values
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.record.json_types import Count
from edgeflare_protos.kernel_sets import Kernels

NonFinite = Literal["NaN", "infinity"]


@dataclass(frozen=True, slots=True)
class NonFiniteOnset:
    """Where values that are not finite begin.

    Attributes:
        kind: what they are; NaN where there are both.
        operator_index: position of the first operator that puts them out and is given none; null
            where that is not known, or the model is given them.
        name: name of that operator, such as "MUL"; empty where there is none.
        source: what they come from, such as a constant; the end of a sentence.

    """

    kind: NonFinite
    operator_index: Count | None
    name: str
    source: str

    @property
    def place(self) -> str:
        """Where they begin, in words."""
        if self.operator_index is None:
            return self.source
        return f"it begins in {self.name} (operator {self.operator_index}), {self.source}"


def non_finite_kind(arrays: Iterable[Values]) -> NonFinite | None:
    """Return what some arrays hold that is not finite, NaN before infinity; None where nothing."""
    floats = [array for array in arrays if array.dtype.kind == "f"]
    if any(np.isnan(array).any() for array in floats):
        return "NaN"
    return "infinity" if any(np.isinf(array).any() for array in floats) else None


def non_finite_onset(graph: Graph, state: Mapping[int, Values]) -> NonFiniteOnset | None:
    """Return where values that are not finite begin; None where there are none that matter.

    NaN matters wherever it is, since an operator may hide it, infinity in the outputs alone: that
    of a mask is what it is meant to be.

    Args:
        graph: the model's graph.
        state: the observed values, by tensor, the inputs included.

    """
    kinds = {tensor: non_finite_kind([values]) for tensor, values in state.items()}
    kind = non_finite_kind(state.values())
    reached = any(kinds.get(tensor) == kind for tensor in graph.outputs)
    if kind is None or (kind == "infinity" and not reached):
        return None
    if any(kinds.get(tensor) == kind for tensor in graph.inputs):
        return NonFiniteOnset(kind, None, "", "the model is given it")
    one = _first(graph, kinds, kind)
    if one is None:
        return NonFiniteOnset(kind, None, "", "the operator in which it begins is not seen")
    return NonFiniteOnset(kind, one.index, one.name, _source(graph, one, kinds))


def traced(
    graph: Graph, content: bytes, kernels: Kernels, inputs: Collection[Values]
) -> NonFiniteOnset | None:
    """Run a model on the host, and return where values that are not finite begin.

    Returns:
        None where all are finite, or the model's layers cannot be seen.

    """
    given = list(inputs)
    try:
        with closing(HostProbe(content, kernels, capture=True)) as probe:
            made = dict(zip(probe.made, probe.run(given), strict=True))
    except (ProbeFailed, UserError):
        return None
    return non_finite_onset(graph, {**dict(zip(graph.inputs, given, strict=True)), **made})


def said_of_arms(onsets: Mapping[Arm, NonFiniteOnset | None]) -> str:
    """Return on which arms values are not finite, and where they begin.

    Args:
        onsets: onset by arm; None where all its values are finite. Arms that were not seen are
            absent.

    Returns:
        One sentence without its full stop; empty where there is nothing to say.

    """
    found = {arm: first for arm, first in onsets.items() if first is not None}
    parts: list[str] = []
    for onset in dict.fromkeys(found.values()):
        arms = [arm.value for arm, its in found.items() if its == onset]
        listed = " and ".join([", ".join(arms[:-1]), arms[-1]] if len(arms) > 1 else arms)
        parts.append(f"{onset.kind} on {listed}: {onset.place}")
    finite = [arm.value for arm in onsets if arm not in found]
    if found and finite:
        parts.append(f"{' and '.join(finite)} {'are' if len(finite) > 1 else 'is'} finite")
    return "; ".join(parts)


def _first(graph: Graph, kinds: Mapping[int, NonFinite | None], kind: NonFinite) -> GraphOp | None:
    """Return the first layer that puts out a kind of values, and is seen to be given none."""
    return next(
        (
            layer
            for layer in graph.layers
            if any(kinds.get(tensor) == kind for tensor in layer.outputs)
            and all(tensor in kinds and kinds[tensor] != kind for tensor in graph.fed(layer))
        ),
        None,
    )


def _source(graph: Graph, operator: GraphOp, kinds: Mapping[int, NonFinite | None]) -> str:
    """Return what an operator makes values that are not finite of."""
    fed = graph.fed(operator)
    for tensor in operator.inputs:
        if tensor not in fed and (kind := _kind_of_constant(graph, tensor)):
            return f"whose constant {graph.tensors[tensor].name!r} holds {kind}"
    if any(kinds.get(tensor) == "infinity" for tensor in fed):
        before = _first(graph, kinds, "infinity")
        if before is not None and before != operator:
            return (
                f"which is given infinity; that begins in {before.name} (operator {before.index}),"
                f" {_source(graph, before, {})}"
            )
    return "whose inputs are finite"


def _kind_of_constant(graph: Graph, tensor: int) -> NonFinite | None:
    try:
        values = graph.real_values(tensor)
    except UserError:  # of a type that cannot be read
        return None
    return None if values is None else non_finite_kind([values])
