"""How much of the margin's error each layer causes.

The margin is that of the pair's task, as its answers say how far they have departed from the
original's: by the scores of two classes, by the margin of boxes or a text, by the distance of
values or masks. For the share of a layer, the original runs twice from behind that layer: once with
the layer's output as the compressed model has it, once with the error of that layer taken out, and
with all other intermediate tensors as the compressed model has them. The difference of the two
margins is what the layer causes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.models.graph_parts import crossing_tensors, tail_ends
from edgeflare.models.graph_scores import path_to_scores
from edgeflare.models.model_probe import Values
from edgeflare.models.tflite_graph import Graph

ReadOutputs = Callable[[Sequence[Sequence[Values]]], list[Answer]]
"""Returns the answers that the original's outputs would be, given all its outputs once for each."""


Layer = TypeVar("Layer", bound=Hashable)
"""Whatever tells the layers apart whose errors are looked into."""

Altered = tuple[int, Real]
"""The position of an operator of the original, -1 for its input, and values of its first output."""

_Key = tuple[int, int]
"""The operator of an `Altered`, and the identity of its array."""


@dataclass(frozen=True, slots=True)
class MarginError(Generic[Layer]):
    """By how much compression reduced the margin, and what the outputs of some layers do to it.

    Attributes:
        size: the original's margin less the compressed model's, as `Answer.departure` says; of
            classes in real values of the scores, which are the inputs of a last softmax.
        reached: the same difference to what each alternative output of a layer leads to, by layer.

    """

    size: float
    reached: Mapping[Layer, tuple[float, ...]]

    @property
    def shares(self) -> dict[Layer, float]:
        """The share of `size`, of either sign, that is between first and last alternative.

        Over all layers and their whole differences, the shares of a margin of scores add up to
        about 1.
        """
        return {layer: (of[-1] - of[0]) / self.size for layer, of in self.reached.items()}


def margin_error(
    original: OriginalLayers,
    read: ReadOutputs,
    compressed_values: Mapping[int, Real],
    original_values: Mapping[int, Real],
    outputs: Mapping[Layer, Sequence[Altered]],
) -> MarginError[Layer] | None:
    """Return how much of the margin's error some layers cause.

    Args:
        original: runs the original's layers.
        read: reads answers from the original's outputs on the same input.
        compressed_values: outputs of the compressed model's layers, by the original's tensor.
        original_values: values of the original's tensors on the same input, input included.
        outputs: alternatives to the output of each layer, by layer, such as one without the error
            of that layer and one with it. What is the same array behind the same operator is run
            once.

    Returns:
        None where the outputs of either model are not known, are no answer, or do not differ. A
        layer is left out where an alternative would make no answer.

    Raises:
        ProbeRefused, ProbeFailed: the original's layers do not run by themselves.

    """
    graph, state = original.graph, {**original_values, **compressed_values}
    paths = _paths(graph)
    ends = _ends(original, paths, compressed_values.keys() & original_values.keys(), state)
    if ends is None:
        return None
    softened = {tensor for path in paths for tensor in path[:-1]}
    until = [path[0] for path in paths]
    asked = {
        layer: [_key(alternative) for alternative in alternatives]
        for layer, alternatives in outputs.items()
        if all(
            original.made(op) not in softened and _runs_behind(graph, op, until, state)
            for op, _ in alternatives
        )
    }
    distinct = {_key(output): output for layer in asked for output in outputs[layer]}
    # Operators in execution order, so that what is cut out is the same in whatever order they come.
    altered = sorted(distinct, key=lambda key: key[0])
    reached = _led_to(original, [distinct[key] for key in altered], until, state)
    answers = read(
        [
            [graph.tensors[tensor].raw(given[tensor]) for tensor in graph.outputs]
            for given in (original_values, ends, *({**ends, **others} for others in reached))
        ]
    )
    return _departures(asked, altered, answers)


def _departures(
    asked: Mapping[Layer, Sequence[_Key]], altered: Sequence[_Key], answers: Sequence[Answer]
) -> MarginError[Layer] | None:
    """Return what answers say of layers.

    Args:
        asked: the alternatives to the output of each layer.
        altered: all of them.
        answers: the original's, the compressed model's, and that of each of these.

    """
    wanted, got, *others = answers
    if wanted.failure is not None or got.failure is not None:
        return None
    size = got.departure(wanted, got)
    if not (size and np.isfinite(size)):
        return None
    departures = {
        key: answer.departure(wanted, got)
        for key, answer in zip(altered, others, strict=True)
        if answer.failure is None
    }
    return MarginError(
        size,
        {
            layer: tuple(departures[key] for key in keys)
            for layer, keys in asked.items()
            if departures.keys() >= set(keys)
        },
    )


def _key(altered: Altered) -> _Key:
    operator, values = altered
    return operator, id(values)


def _ends(
    original: OriginalLayers,
    paths: Sequence[Sequence[int]],
    known: Collection[int],
    state: Mapping[int, Real],
) -> Mapping[int, Real] | None:
    """Return all values, the outputs as the compressed model's scores make them; None if unknown.

    What a softmax makes of them is the original's, since 8 bits of a probability saturate.
    """
    graph = original.graph
    scores = {path[0]: path[-1] for path in paths if path[-1] in known}
    # What lies behind an operator runs by itself only if all that it reads can be given to it.
    if not scores or not all(
        _runs_behind(graph, graph.made_by[its], [output], state) for output, its in scores.items()
    ):
        return None
    ends = dict(state)
    for output, its in scores.items():
        ends |= _led_to(original, [(graph.made_by[its], state[its])], [output], state)[0]
    return ends


def _runs_behind(
    graph: Graph, operator: int, until: Sequence[int], state: Mapping[int, Real]
) -> bool:
    if not tail_ends(graph, operator, until):
        return True
    return state.keys() >= set(crossing_tensors(graph, operator, until))


def _paths(graph: Graph) -> list[tuple[int, ...]]:
    """Return the way from each output that layers make back to its scores."""
    made = {tensor for layer in graph.layers for tensor in layer.outputs}
    paths = [path_to_scores(graph, output) for output in graph.outputs if output in made]
    return [path if path[-1] in made else path[:1] for path in paths]


def _led_to(
    original: OriginalLayers,
    altered: Sequence[Altered],
    until: Sequence[int],
    state: Mapping[int, Real],
) -> list[Mapping[int, Real]]:
    """Return what other outputs of operators lead to: they, and the tensors behind them.

    Args:
        original: runs its layers.
        altered: an operator of the original, and values of its first output; -1 for the input.
        until: the tensors that are asked for.
        state: the values of all other tensors.

    """
    graph = original.graph
    made = [original.made(op) for op, _ in altered]
    behind = [op for op, _ in altered if tail_ends(graph, op, until)]
    given = [
        values if tensor == its else state[tensor]
        for (op, values), its in zip(altered, made, strict=True)
        for tensor in (crossing_tensors(graph, op, until) if op in behind else ())
    ]
    tails = iter(original.tails(behind, until, given) if behind else ())
    return [
        {its: values, **(next(tails) if op in behind else {})}
        for (op, values), its in zip(altered, made, strict=True)
    ]


def answers_behind(
    original: OriginalLayers,
    read: ReadOutputs,
    values: Mapping[int, Real],
    outputs: Mapping[Layer, Altered],
) -> tuple[Answer, Mapping[Layer, Answer]]:
    """Return the original's answer, and what it would be if one layer's output were another.

    Args:
        original: runs the original's layers.
        read: reads answers from the original's outputs on the same input.
        values: values of the original's tensors on it, input included.
        outputs: operator and other output of each layer, by layer. A layer is left out of what is
            returned whose output cannot be given to the layers behind it, and a last softmax, whose
            8 bits saturate.

    Raises:
        ProbeRefused, ProbeFailed: the original's layers do not run by themselves.

    """
    graph = original.graph
    paths = _paths(graph)
    softened = {tensor for path in paths for tensor in path[:-1]}
    until = [path[0] for path in paths]
    asked = [
        layer
        for layer, (op, _) in outputs.items()
        if original.made(op) not in softened and _runs_behind(graph, op, until, values)
    ]
    asked.sort(key=lambda layer: outputs[layer][0])
    reached = _led_to(original, [outputs[layer] for layer in asked], until, values)
    wanted, *others = read(
        [
            [graph.tensors[tensor].raw(given[tensor]) for tensor in graph.outputs]
            for given in (values, *({**values, **others} for others in reached))
        ]
    )
    return wanted, dict(zip(asked, others, strict=True))
