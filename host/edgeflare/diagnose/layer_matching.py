"""Which layer of the original a layer of the compressed model was made from.

The structure decides: what a layer computes from, back to the inputs, and what is computed from it,
on to the outputs. Operators that convert numbers are looked through. Names decide between layers
whose places are equal, and what is left over is matched by its order. That order is the order of
computing from the outputs, so it does not depend on how a file orders its operators.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain
from typing import Literal

from edgeflare.models.tflite_graph import Graph, GraphOp

MatchedBy = Literal["structure", "name", "order", "conversion"]
"""What decided; a conversion stands for the layer whose values it hands on."""

Matches = dict[int, tuple[int, MatchedBy]]
"""Position of the original's operator and what decided, by that of the compressed model's."""

CONVERSIONS = frozenset({"QUANTIZE", "DEQUANTIZE", "CAST", "DENSIFY"})
"""Operators that compression inserts; none of them is a layer of the original."""

_MOST_NUMBERS = 16
"""Values of a constant of whole numbers that tells operators apart, such as a slice's begin."""


def match_layers(compressed: Graph, original: Graph) -> Matches:
    """Match the layers of two graphs.

    Layers of one operator type and the same shapes are matched where they have the same ancestors
    and descendants, or either, as no other layers have; layers that are matched already stand for
    all behind them. Where several have the same ones, the names of their output tensors decide,
    and their order where these do not. Layers of different operator types are matched by order
    too, where equally many lie between two matches and their shapes are the same one for one.

    Returns:
        In execution order of the compressed model.

    """
    first, second = _Layers(compressed), _Layers(original)
    matched: Matches = {}
    while found := _by_structure(first, second, matched):
        matched |= found
    matched |= _by_order(first, second, matched)
    return dict(sorted(matched.items()))


class _Layers:
    """The layers of a graph without conversions.

    Attributes:
        kinds: type, shapes of outputs and of inputs of each, by its operator's position.

    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._layers = [layer for layer in graph.layers if layer.name not in CONVERSIONS]
        self.kinds = {layer.index: self._kind(layer) for layer in self._layers}
        self._read = {layer.index: list(self._operands(layer)) for layer in self._layers}
        self._readers: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for reader, operands in self._read.items():
            for place, (source, which) in enumerate(operands):
                if isinstance(source, int):
                    self._readers[source].append((reader, place, which))
        self._ends = {self._source(tensor)[0] for tensor in graph.outputs}

    def names(self, layers: Sequence[int]) -> dict[int, str]:
        """Return the names of the output tensors of layers, without those that have none."""
        made = {layer: self._graph.operators[layer].outputs[0] for layer in layers}
        named = {operator: self._graph.tensors[tensor].name for operator, tensor in made.items()}
        return {operator: name for operator, name in named.items() if name}

    def ancestry(self, known: Mapping[int, int], label: _Labels) -> dict[int, int]:
        """Return a number for each layer that says what it computes from; see `descent`."""
        found: dict[int, int] = {}
        ends = {layer: label(("match", match)) for layer, match in known.items()}
        for layer, operands in self._read.items():
            sources = tuple(
                (ends.get(source, found[source]), which) if isinstance(source, int) else source
                for source, which in operands
            )
            found[layer] = label(("from", self.kinds[layer], sources))
        return found

    def descent(self, known: Mapping[int, int], label: _Labels) -> dict[int, int]:
        """Return a number for each layer that says what is computed from it.

        Args:
            known: a number for each layer that is matched, which stands for all behind it.
            label: numbers equal things equally, also those of another graph.

        """
        found: dict[int, int] = {}
        ends = {layer: label(("match", match)) for layer, match in known.items()}
        for layer in reversed(self._read):
            readers = sorted(
                (ends.get(reader, found[reader]), place, which)
                for reader, place, which in self._readers[layer]
            )
            given = layer in self._ends
            found[layer] = label(("to", self.kinds[layer], tuple(readers), given))
        return found

    @cached_property
    def ordered(self) -> list[int]:
        """The layers in the order of computing one output after the other; the unused ones last."""
        seen: dict[int, None] = {}
        unused = sorted(self._read, key=lambda layer: (str(self.kinds[layer]), layer))
        waiting: list[tuple[Hashable, bool]] = [(place, False) for place in reversed(unused)]
        waiting += [(self._source(output)[0], False) for output in reversed(self._graph.outputs)]
        while waiting:
            layer, computed = waiting.pop()
            if layer not in self._read or layer in seen:  # an input, or a constant
                continue
            if computed:
                seen[layer] = None
                continue
            waiting.append((layer, True))
            waiting += [(source, False) for source, _ in reversed(self._read[layer])]
        return list(seen)

    def _kind(self, operator: GraphOp) -> tuple[str, Hashable]:
        shapes = (
            tuple(self._graph.tensors[tensor].shape for tensor in tensors)
            for tensors in (operator.outputs, self._graph.fed(operator))
        )
        return operator.name, tuple(shapes)

    def _operands(self, operator: GraphOp) -> Iterator[tuple[Hashable, int]]:
        """Yield what an operator reads, without biases and factors for each channel."""
        fed = self._graph.fed(operator)
        for tensor in operator.inputs:
            if tensor in fed:
                yield self._source(tensor)
            elif (constant := self._constant(tensor)) is not None:
                yield (constant,), 0

    def _source(self, tensor: int) -> tuple[Hashable, int]:
        """Return the layer that writes a tensor and which of its outputs it is, or its shape."""
        while (maker := self._graph.made_by.get(tensor)) is not None:
            one = self._graph.operators[maker]
            if one.name not in CONVERSIONS:
                return maker, one.outputs.index(tensor)
            tensor = one.inputs[0]
        return ("given", self._graph.tensors[tensor].shape), 0

    def _constant(self, tensor: int) -> Hashable:
        """Return what tells a constant from others, whatever it is quantized to."""
        known = self._graph.tensors[tensor]
        if known.constant and known.dtype in ("int32", "int64") and not known.scales:
            values = self._graph.values(tensor).ravel()
            return tuple(values.tolist()) if values.size <= _MOST_NUMBERS else None
        shape = tuple(size for size in known.shape if size != 1)
        return shape if len(shape) > 1 else None


_Labels = Callable[[Hashable], int]


def _numbers(known: dict[Hashable, int]) -> _Labels:
    """Return a function that numbers different things in the order in which it is asked."""
    return lambda key: known.setdefault(key, len(known))


def _by_structure(first: _Layers, second: _Layers, matched: Matches) -> Matches:
    """Return further matches that follow from the structure and those known; none at the end."""
    label = _numbers({})
    known = ({op: op for op in matched}, {there: op for op, (there, _) in matched.items()})
    places: list[dict[int, tuple[int, int]]] = []
    for layers, its in zip((first, second), known, strict=True):
        ancestry, descent = layers.ancestry(its, label), layers.descent(its, label)
        places.append(
            {layer: (ancestry[layer], descent[layer]) for layer in ancestry if layer not in its}
        )
    equal = [_groups(*places)]
    equal += [
        _groups(*({layer: place[which] for layer, place in its.items()} for its in places))
        for which in (0, 1)
    ]
    for groups in equal:
        if found := _single(groups):
            return {op: (there, "structure") for op, there in found.items()}
    kinds = (
        {layer: of.kinds[layer] for layer in its}
        for of, its in zip((first, second), places, strict=True)
    )
    for mine, theirs in chain(*equal, _groups(*kinds)):
        if found := _single(_groups(first.names(mine), second.names(theirs))):
            return {op: (there, "name") for op, there in found.items()}
    for mine, theirs in equal[0]:
        if len(mine) == len(theirs):
            op, there = min(mine, key=first.ordered.index), min(theirs, key=second.ordered.index)
            return {op: (there, "order")}
    return {}


Group = tuple[list[int], list[int]]
"""Layers of the two graphs that are equal in something."""


def _groups(first: Mapping[int, Hashable], second: Mapping[int, Hashable]) -> list[Group]:
    """Return the layers of two graphs grouped by equal value, where both graphs have some."""
    found: dict[Hashable, Group] = {}
    for which, side in enumerate((first, second)):
        for layer, value in side.items():
            found.setdefault(value, ([], []))[which].append(layer)
    return [group for group in found.values() if all(group)]


def _single(groups: Sequence[Group]) -> dict[int, int]:
    return {mine[0]: theirs[0] for mine, theirs in groups if len(mine) == len(theirs) == 1}


def _by_order(first: _Layers, second: _Layers, matched: Matches) -> Matches:
    """Return the matches of what lies between those known, in the order of both graphs."""
    places = {there: at for at, there in enumerate(second.ordered)}
    known = [(at, places[matched[op][0]]) for at, op in enumerate(first.ordered) if op in matched]
    found: Matches = {}
    start, other_start = 0, 0
    # Those that cross the ones before are left out.
    kept: list[tuple[int, int]] = []
    for pair in known:
        if not kept or pair[1] > kept[-1][1]:
            kept.append(pair)
    for end, other_end in [*kept, (len(first.ordered), len(second.ordered))]:
        taken = {there for there, _ in matched.values()}
        layers = [op for op in first.ordered[start:end] if op not in matched]
        others = [there for there in second.ordered[other_start:other_end] if there not in taken]
        found |= {op: (there, "order") for op, there in _aligned(first, layers, second, others)}
        start, other_start = end + 1, other_end + 1
    return found


def _aligned(
    first: _Layers, layers: Sequence[int], second: _Layers, others: Sequence[int]
) -> Iterator[tuple[int, int]]:
    kinds, other_kinds = (
        [first.kinds[layer] for layer in layers],
        [second.kinds[other] for other in others],
    )
    matcher = SequenceMatcher(None, kinds, other_kinds, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        if end - start == other_end - other_start:
            for at, there in zip(range(start, end), range(other_start, other_end), strict=True):
                if kinds[at][1] == other_kinds[there][1]:
                    yield layers[at], others[there]
