"""Which layer of the original a layer of the compressed model was made from."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from edgeflare.models.tflite_graph import Graph, GraphOp

MatchedBy = Literal["name", "order"]

_CONVERSIONS = frozenset({"QUANTIZE", "DEQUANTIZE", "CAST"})
"""Operators that compression inserts; none of them is a layer of the original."""


def match_layers(compressed: Graph, original: Graph) -> dict[int, tuple[int, MatchedBy]]:
    """Match the layers of two graphs.

    Layers of one operator type and output shape are matched by name, where their output tensors
    have the same name and no other layer's has it. The others are matched by order, between those
    matched by name. Layers of different operator types are matched by order too, where equally many
    lie between two matches and their output shapes are the same one for one.

    Returns:
        By position of the compressed model's operator, that of the original's and how they were
        matched. Both positions ascend.

    """
    layers, original_layers = _layers(compressed), _layers(original)
    by_name = _increasing(_by_name(compressed, layers, original, original_layers))
    matched: dict[int, tuple[int, MatchedBy]] = {}
    at, there = 0, 0
    for op, original_op in [*by_name, (len(layers), len(original_layers))]:
        first = [_kind(compressed, one) for one in layers[at:op]]
        second = [_kind(original, one) for one in original_layers[there:original_op]]
        matcher = SequenceMatcher(None, first, second, autojunk=False)
        for _, start, end, other_start, other_end in matcher.get_opcodes():
            if end - start != other_end - other_start:
                continue
            for step in range(end - start):
                one, other = layers[at + start + step], original_layers[there + other_start + step]
                if first[start + step][1] == second[other_start + step][1]:
                    matched[one.index] = (other.index, "order")
        if op < len(layers):
            matched[layers[op].index] = (original_layers[original_op].index, "name")
        at, there = op + 1, original_op + 1
    return {
        op: found
        for op, found in matched.items()
        if _same_feeds(compressed, op, original, found[0])
    }


def _layers(graph: Graph) -> list[GraphOp]:
    return [one for one in graph.layers if one.name not in _CONVERSIONS]


def _kind(graph: Graph, one: GraphOp) -> tuple[str, tuple[int, ...]]:
    return one.name, graph.tensors[one.outputs[0]].shape


def _by_name(
    compressed: Graph,
    layers: Sequence[GraphOp],
    original: Graph,
    original_layers: Sequence[GraphOp],
) -> list[tuple[int, int]]:
    """Return the positions of layers with one name within the two lists."""

    def names(graph: Graph, layers: Sequence[GraphOp]) -> dict[tuple[str, object], int]:
        found: dict[tuple[str, object], int] = {}
        twice = set()
        for at, one in enumerate(layers):
            key = (graph.tensors[one.outputs[0]].name, _kind(graph, one))
            (twice.add(key) if key in found else found.setdefault(key, at)) if key[0] else None
        return {key: at for key, at in found.items() if key not in twice}

    known = names(original, original_layers)
    return [(at, known[key]) for key, at in names(compressed, layers).items() if key in known]


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs in ascending order, without those that cross the ones before."""
    kept: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not kept or pair[1] > kept[-1][1]:
            kept.append(pair)
    return kept


def _same_feeds(compressed: Graph, op: int, original: Graph, original_op: int) -> bool:
    """Whether the inputs of two operators have the same shapes, one for one."""
    first, second = compressed.operators[op], original.operators[original_op]
    return [compressed.tensors[tensor].shape for tensor in compressed.fed(first)] == [
        original.tensors[tensor].shape for tensor in original.fed(second)
    ]
