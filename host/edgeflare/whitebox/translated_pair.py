"""Original and twin of a pair as differentiable functions, which answer what a search asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.encoder import DifferentiableEncoder, Encoder
from edgeflare.core.gradient_query import (
    GradientQuery,
    TranslatedOutcome,
    TranslatedQuery,
    WhiteboxQuery,
)
from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.core.task import Decoder
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.tflite_graph import Graph
from edgeflare.python_callable import is_callable
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from edgeflare.whitebox.own_gradient import ModelWithOwnGradient
from edgeflare.whitebox.translated_arm import DifferentiableModel, TranslatedArm
from edgeflare.whitebox.translation_check import require_equal
from edgeflare_protos.kernel_sets import Kernels


@dataclass(frozen=True, slots=True)
class ArmToTranslate:
    """An arm of the host whose model is to be translated.

    Attributes:
        source: the model: a file, or a Python callable.
        kernels: those that run it.
        shape: of what the model takes, batch dimension included.
        encoder: of the inputs that are searched.
        decoder: of the outputs.
        rows: some seeds as the model takes them, on which the translation is checked.

    """

    source: str
    kernels: Kernels
    shape: tuple[int, ...]
    encoder: Encoder
    decoder: Decoder
    rows: Sequence[NDArray[np.generic]]


class TranslatedPair:
    """The translations of original and twin. They compute on one thread, one input at a time."""

    def __init__(self, arms: Mapping[Arm, ArmToTranslate], level: float) -> None:
        """Translate both, and compare them with the runtime.

        Args:
            arms: original and twin.
            level: how much one level is, in the inputs' own units.

        Raises:
            UserError: a model or what stands before it cannot be differentiated, or its translation
                is not what the runtime computes.
            InfrastructureError: a worker process is lost.

        """
        self._arms = {arm: _translated(one, level) for arm, one in arms.items()}

    def answer(self, query: WhiteboxQuery) -> NDArray[np.float64] | list[TranslatedOutcome]:
        """Return a gradient, or what the translations answer; see the two kinds of query."""
        if isinstance(query, GradientQuery):
            return self._arms[query.arm].gradient(query.input, query.weights, query.neurons)
        return self.answered(query)

    def rehearse(self, one: Input, *, neurons: bool = False) -> None:
        """Answer what a search may ask, so that all is compiled before the time of one counts.

        Args:
            one: an input that both models take.
            neurons: whether it is to ask about neurons too.

        Raises:
            UserError: a model does not know its neurons, and they are asked for.

        """
        (told,) = self.answered(TranslatedQuery([one], 0.0 if neurons else None))
        for arm, scores in told.scores.items():
            weights: Mapping[int, float] = {0: 0.0} if neurons else {}
            self.answer(GradientQuery(one, arm, np.zeros_like(scores), weights))

    def answered(self, query: TranslatedQuery) -> list[TranslatedOutcome]:
        """Return what the translations answer about inputs."""
        return [self._outcome(one, query) for one in query.inputs]

    def network(self, arm: Arm) -> DifferentiableNetwork:
        """Return the network of an arm.

        Raises:
            UserError: the arm is a Python function, whose layers nobody knows.

        """
        model = self._arms[arm].model
        if not isinstance(model, DifferentiableNetwork):
            raise UserError(
                f"the layers of the {arm} are not known, since it is a Python function: give a"
                " .tflite file"
            )
        return model

    def _outcome(self, one: Input, query: TranslatedQuery) -> TranslatedOutcome:
        answered = {arm: translated.answer(one) for arm, translated in self._arms.items()}
        covered = {}
        if query.coverage is not None:
            covered = {
                arm: translated.covered(one, query.coverage)
                for arm, translated in self._arms.items()
            }
        return TranslatedOutcome(
            Outcome({arm: answer for arm, (answer, _) in answered.items()}),
            {arm: scores for arm, (_, scores) in answered.items()},
            covered,
        )


def _translated(one: ArmToTranslate, level: float) -> TranslatedArm:
    if not isinstance(one.encoder, DifferentiableEncoder):
        raise UserError(
            f"what stands before {one.source} cannot be differentiated, such as the features of"
            " sounds: take pairs of images or arrays"
        )
    if len(one.decoder.outputs) != 1 or one.decoder.choices < 2:
        raise UserError(
            f"{one.source} does not give one score for each class, whose gradients are needed"
        )
    return TranslatedArm(_model(one), one.encoder, one.decoder, level)


def _model(one: ArmToTranslate) -> DifferentiableModel:
    if is_callable(one.source):
        model = ModelWithOwnGradient(one.source, one.shape, one.decoder)
        for row in one.rows[:1]:
            model.require(row)
        return model
    path = Path(one.source)
    if path.suffix.lower() != ".tflite":
        raise UserError(
            f"{path} is no .tflite file, whose operators could be differentiated: convert it, or"
            " name a Python function with a function `gradient` beside it"
        )
    content = read_model_file(path)
    network = DifferentiableNetwork(Graph(content, str(path)))
    scores = network.graph.tensors[network.scores]
    if scores.size != one.decoder.choices:
        raise UserError(
            f"{path}: tensor {scores.name!r} has {scores.size} scores for {one.decoder.choices}"
            " decisions, whose gradients are needed"
        )
    require_equal(network, content, one.kernels, one.rows)
    return network
