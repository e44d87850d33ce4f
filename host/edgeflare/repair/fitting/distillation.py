"""Weights, biases and ranges that are learned from the original's answers, without labels.

Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural Network", arXiv 1503.02531: the
teacher is the network before it was compressed, and the student computes in 8 bits while it learns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.layer_matching import CONVERSIONS
from edgeflare.diagnose.rounding_noise import WEIGHTED
from edgeflare.errors import UserError
from edgeflare.models.graph_scores import path_to_scores
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork, Parameters
from edgeflare.repair.fitting.gradient_descent import (
    BATCH,
    Tuning,
    TuningBatch,
    tuned_parameters,
)
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.operator_translation import Array

LEAST_INPUTS = 200
"""Inputs to learn from at least: of fewer the network learns what they have by chance."""

_INPUTS = 6000
"""Inputs to learn from at most."""

MOST_STEPS = 600
"""Steps at most."""

_WORK = 5e11
"""Multiplications of all steps together beyond which there are fewer, and for each number that is
rounded as many as take the time of that, `_ROUNDING`: a minute of processor time or less."""

_ROUNDING = 500

_LEAST_STEPS = 150
"""Steps at least. Where `_WORK` has no room for them, "auto" leaves learning out: a ResNet-8, for
which it has room for 111, gains nothing behind the other steps, by twice and four times as many
neither."""

_RATE, _BIAS_RATE, _RANGE_RATE = 0.003, 0.002, 0.0002

_PARTS = 4
"""Parts of a batch, one after the other: all of it at once takes more memory, and as long."""


def fit_distillation(
    network: QuantizedNetwork, rng: np.random.Generator, progress: Callable[[int, int], None]
) -> bytes:
    """Return the compressed model with learned weights, biases and ranges.

    Args:
        network: as other steps have left it; steps of weights stay as they are.
        rng: draws the inputs that it learns from, and their order.
        progress: is told how many steps are taken, and of how many.

    Raises:
        UserError: an operator has no gradient, an output has no counterpart, constants are shared,
            or there are too few inputs.

    """
    lessons, student, teacher = _networks(network)
    rows, original_rows = _inputs(network)
    wanted, given = teacher.evaluate(original_rows), student.inputs(rows)
    scales = [max(float(values.var()), np.finfo(np.float32).tiny) for values in wanted]

    def loss(parameters: Parameters, batch: tuple[Sequence[Array], Sequence[Array]]) -> Array:
        made = student.values(parameters, *batch[0])
        parts = zip(lessons, made, batch[1], scales, strict=True)
        return sum(_difference(lesson.kind, *compared) for lesson, *compared in parts)

    def batches() -> Iterator[TuningBatch]:
        while True:
            order = rng.permutation(len(rows))
            for begin in range(0, len(order) - BATCH + 1, BATCH):
                some = order[begin : begin + BATCH]
                taught = [values[some] for values in wanted]
                yield TuningBatch(([values[some] for values in given], taught))

    tuning = Tuning(_steps(student), _RATE, _BIAS_RATE, _RANGE_RATE, _PARTS)
    parameters = tuned_parameters(student, loss, batches(), tuning, progress)
    return student.written(network.content, parameters)


def require_learnable(network: QuantizedNetwork) -> None:
    """Refuse what `fit_distillation` refuses, so that no other step is fitted for it in vain.

    Args:
        network: as it is before other steps.

    """
    _networks(network)
    _inputs(network)


def require_quick(network: QuantizedNetwork) -> None:
    """Refuse a network with which even the fewest steps are more work than all may be.

    Args:
        network: as it is before other steps.

    Raises:
        UserError: also where `fit_distillation` refuses it.

    """
    _, student, _ = _networks(network)
    if _affordable_steps(student) < _LEAST_STEPS:
        raise UserError(
            "learning takes long with a model of this size, and those that were measured gained"
            " nothing by it: --method learning tries it"
        )


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What the network learns to give at an output.

    Attributes:
        tensor: the tensor that is compared, of the network.
        taught: the counterpart of that tensor in the original.
        kind: how two values are compared.

    """

    tensor: int
    taught: int
    kind: Literal["choices", "truths", "values"]


def _networks(
    network: QuantizedNetwork,
) -> tuple[list[_Lesson], FakeQuantizedNetwork, FakeQuantizedNetwork]:
    """Return the lessons, one for each output, and the networks that learn and that teach."""
    lessons = [_lesson(network, output) for output in network.graph.outputs]
    student = FakeQuantizedNetwork(network.graph, [lesson.tensor for lesson in lessons])
    teacher = FakeQuantizedNetwork(network.original_graph, [lesson.taught for lesson in lessons])
    return lessons, student, teacher


def _lesson(network: QuantizedNetwork, output: int) -> _Lesson:
    """Return the lesson of an output, which begins before a softmax, or before it is converted.

    Raises:
        UserError: the tensor has no counterpart.

    """
    graph = network.graph
    *_, tensor = path = path_to_scores(graph, output)
    kind: Literal["choices", "truths", "values"] = "values"
    if network.task == DEFAULT_TASK and output not in network.carried:
        kind = "choices"
    if len(path) > 1:
        normalizing = graph.operators[graph.made_by[path[-2]]].name
        kind = "truths" if normalizing == "LOGISTIC" else "choices"
    if kind == "choices" and graph.tensors[tensor].shape[-1] < 2:
        kind = "values"
    while (maker := graph.made_by.get(tensor)) is not None:
        if graph.operators[maker].name not in CONVERSIONS:
            break
        tensor = graph.fed(graph.operators[maker])[0]
    for layer in network.layers:
        for made, taught in (
            (layer.output, layer.original_output),
            *zip(layer.inputs, layer.original_inputs, strict=False),
        ):
            if made == tensor:
                return _Lesson(tensor, taught, kind)
    raise UserError(
        f"{graph.source}: {graph.describe(tensor)} has no counterpart in"
        f" {network.original_graph.source} to learn from"
    )


def _difference(kind: str, made: Array, wanted: Array, variance: float) -> Array:
    """Return how far answers, (n, ...), are from those that are wanted.

    Of choices it is the variance of their errors by the probabilities that are wanted: twice the
    divergence of the probabilities where errors are small, whose Hessian by the logits it has. So
    what all choices share plays no part, and logits of what is improbable may be clipped.
    """
    wanted = wanted.reshape(made.shape)
    if kind == "choices":
        probable = jax.nn.softmax(wanted)
        errors = made - wanted
        errors -= (probable * errors).sum(axis=-1, keepdims=True)
        return (probable * jnp.square(errors)).sum(axis=-1).mean()
    if kind == "truths":
        return (jnp.exp(-jnp.abs(wanted)) * jnp.square(made - wanted)).mean()
    return jnp.square(made - wanted).mean() / variance


def _inputs(network: QuantizedNetwork) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return the inputs to learn from.

    Raises:
        UserError: they are too few.

    """
    network = network.with_inputs(_INPUTS)
    if len(network.rows) < LEAST_INPUTS:
        raise UserError(
            f"learning needs at least {LEAST_INPUTS} inputs, and only {len(network.rows)} can be"
            " made of these seeds: give more seeds"
        )
    return network.rows, network.original_rows


def _steps(student: FakeQuantizedNetwork) -> int:
    """Return how many steps are taken: fewer of a large network, which takes longer for each."""
    return int(np.clip(_affordable_steps(student), _LEAST_STEPS, MOST_STEPS))


def _affordable_steps(student: FakeQuantizedNetwork) -> float:
    return _WORK / (BATCH * sum(_work(student.graph, layer) for layer in student.layers))


def _work(graph: Graph, one: GraphOp) -> int:
    """Return what an operator costs, in multiplications."""
    made = graph.tensors[one.outputs[0]]
    if one.name not in WEIGHTED:
        return made.size * _ROUNDING
    return made.size * (_ROUNDING + graph.tensors[one.inputs[1]].size // made.shape[-1])
