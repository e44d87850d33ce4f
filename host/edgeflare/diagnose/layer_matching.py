"""Which layer of the original a layer of the compressed model was made from."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from edgeflare.models.tflite_graph import Graph, GraphOp

By = Literal["name", "order"]

_CONVERSIONS = frozenset({"QUANTIZE", "DEQUANTIZE", "CAST"})
"""What compression puts in between; no layer of the original."""


def match_layers(compressed: Graph, original: Graph) -> dict[int, tuple[int, By]]:
    """Match the layers of two graphs.

    Layers of one operator type and output shape are matched where the names of what they put out
    are equal and name one layer alone; the others by their order, between those matched by name. A
    layer whose operator is another one than the original's is matched by its place: as many stand
    there in both graphs, and their output shapes are the same one for one.

    Returns:
        By position of the compressed model's operator, that of the original's and what matched
        them. Both positions ascend.

    """
    ours, theirs = _layers(compressed), _layers(original)
    by_name = _increasing(_by_name(compressed, ours, original, theirs))
    matched: dict[int, tuple[int, By]] = {}
    at, there = 0, 0
    for mine, yours in [*by_name, (len(ours), len(theirs))]:
        first = [_kind(compressed, one) for one in ours[at:mine]]
        second = [_kind(original, one) for one in theirs[there:yours]]
        matcher = SequenceMatcher(None, first, second, autojunk=False)
        for _, start, end, other_start, other_end in matcher.get_opcodes():
            if end - start != other_end - other_start:
                continue
            for step in range(end - start):
                one, other = ours[at + start + step], theirs[there + other_start + step]
                if first[start + step][1] == second[other_start + step][1]:
                    matched[one.index] = (other.index, "order")
        if mine < len(ours):
            matched[ours[mine].index] = (theirs[yours].index, "name")
        at, there = mine + 1, yours + 1
    return {
        mine: found
        for mine, found in matched.items()
        if _same_feeds(compressed, mine, original, found[0])
    }


def _layers(graph: Graph) -> list[GraphOp]:
    return [one for one in graph.layers if one.name not in _CONVERSIONS]


def _kind(graph: Graph, one: GraphOp) -> tuple[str, tuple[int, ...]]:
    return one.name, graph.tensors[one.outputs[0]].shape


def _by_name(
    compressed: Graph, ours: Sequence[GraphOp], original: Graph, theirs: Sequence[GraphOp]
) -> list[tuple[int, int]]:
    """Return positions within the two lists."""

    def names(graph: Graph, layers: Sequence[GraphOp]) -> dict[tuple[str, object], int]:
        found: dict[tuple[str, object], int] = {}
        twice = set()
        for at, one in enumerate(layers):
            key = (graph.tensors[one.outputs[0]].name, _kind(graph, one))
            (twice.add(key) if key in found else found.setdefault(key, at)) if key[0] else None
        return {key: at for key, at in found.items() if key not in twice}

    known = names(original, theirs)
    return [(at, known[key]) for key, at in names(compressed, ours).items() if key in known]


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs in order, without those that stand across the ones before."""
    kept: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not kept or pair[1] > kept[-1][1]:
            kept.append(pair)
    return kept


def _same_feeds(compressed: Graph, mine: int, original: Graph, yours: int) -> bool:
    """Whether two operators are given tensors of the same shapes, one for one."""
    first, second = compressed.operators[mine], original.operators[yours]
    return [compressed.tensors[tensor].shape for tensor in compressed.fed(first)] == [
        original.tensors[tensor].shape for tensor in original.fed(second)
    ]
