"""Faults planted in the weights and biases of an int8 network, drawn by a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from scenario_models import weighted
from ship_scenarios import generator
from tampering import InterpreterProbe

LEAST_CHANGED = 0.04
"""Share of the decisions that a fault has to change to count."""


@dataclass(frozen=True, slots=True)
class WeightFault:
    """A planted fault.

    Attributes:
        kind: a key of `KINDS`, or "scale doubled".
        operator: its name and position, as `check` says them.
        changed: share of the decisions that it changes.
        content: the file with it.

    """

    kind: str
    operator: str
    changed: float
    content: bytes


_Alter = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]


def _channel(values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return a channel of the output, drawn, as a part of the weights."""
    axis = 3 if values.ndim == 4 and len(values) == 1 else 0
    return np.asarray(np.moveaxis(values, axis, 0)[int(rng.integers(values.shape[axis]))])


def _zeroed(values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    _channel(values, rng)[...] = 0
    return values


def _negated(values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    channel = _channel(values, rng)
    channel[...] = -channel
    return values


def _shuffled(values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    return rng.permutation(values.ravel()).reshape(values.shape)


def _sign_bits(values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Flip the highest bit of one weight in a hundred; -128 is no weight and becomes -127."""
    places = rng.choice(values.size, max(1, values.size // 100), replace=False)
    flipped = values.ravel().view(np.uint8)
    flipped[places] ^= 0x80
    return np.maximum(flipped.view(np.int8), -127).reshape(values.shape)


def _bias_bit(values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Flip a bit of one bias, from the 12th to the 20th."""
    values.flat[int(rng.integers(values.size))] ^= 1 << int(rng.integers(12, 21))
    return values


KINDS: dict[str, tuple[int, _Alter]] = {
    "channel zeroed": (1, _zeroed),
    "sign of a channel flipped": (1, _negated),
    "weights shuffled": (1, _shuffled),
    "bits of weights flipped": (1, _sign_bits),
    "bit of a bias flipped": (2, _bias_bit),
}
"""What is changed, by its place among an operator's inputs, and how."""

SCALE = "scale doubled"


def drawn_faults(content: bytes, rows: NDArray[np.int8], text: str) -> Iterator[WeightFault]:
    """Yield faults that change decisions, without end.

    Args:
        content: an int8 classifier.
        rows: inputs, as it takes them.
        text: by whose hash they are drawn.

    """
    rng = generator(text)
    graph, healthy = Graph(content), _decisions(content, rows)
    operators, kinds = weighted(content), [*KINDS, SCALE]
    while True:
        operator = operators[int(rng.integers(len(operators)))]
        kind = kinds[int(rng.integers(len(kinds)))]
        faulty = _planted(content, graph, operator, kind, rng)
        changed = float((_decisions(faulty, rows) != healthy).mean())
        if changed >= LEAST_CHANGED:
            named = f"{graph.operators[operator].name} (operator {operator})"
            yield WeightFault(kind, named, changed, faulty)


def _planted(
    content: bytes, graph: Graph, operator: int, kind: str, rng: np.random.Generator
) -> bytes:
    edit, inputs = InPlaceEdit(content), graph.operators[operator].inputs
    if kind == SCALE:
        for tensor in inputs[1:3]:
            known = graph.tensors[tensor]
            edit.set_quantization(tensor, [2 * one for one in known.scales], known.zero_points)
        return edit.content()
    place, alter = KINDS[kind]
    tensor = inputs[place]
    values = graph.values(tensor).copy()
    edit.set_values(tensor, np.asarray(alter(values, rng), graph.tensors[tensor].dtype))
    return edit.content()


def _decisions(content: bytes, rows: NDArray[np.int8]) -> NDArray[np.int64]:
    probe = InterpreterProbe(content)
    return np.array([int(probe.run([row[None]])[0].argmax()) for row in rows], np.int64)
