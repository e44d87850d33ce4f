"""Original and twin of a pair as differentiable functions, which answer what a search asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.domain import DifferentiableEncoder, Encoder
from edgeflare.core.input_space import Input
from edgeflare.core.query import (
    Arm,
    GradientQuery,
    Outcome,
    TranslatedOutcome,
    TranslatedQuery,
    WhiteboxQuery,
)
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.tflite_graph import Graph
from edgeflare.python_callable import is_callable, load_callable, reason
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from edgeflare.whitebox.translation_check import require_equal
from edgeflare_protos.kernel_sets import Kernels

Real = NDArray[np.float64]

_GRADIENT = "gradient"
"""The name of the function, in the module or file of the original's."""

_Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ArmToTranslate:
    """An arm of the host whose model is to be translated.

    Attributes:
        source: the model: a file, or a Python callable.
        kernels: those that run it.
        shape: shape of what the model takes, batch dimension included.
        encoder: encoder of the inputs that are searched.
        decoder: decoder of the outputs.
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

        """
        self._arms = {
            arm: _translated(arm_to_translate, level) for arm, arm_to_translate in arms.items()
        }

    def answer(self, query: WhiteboxQuery) -> NDArray[np.float64] | list[TranslatedOutcome]:
        """Return a gradient, or what the translations answer; see the two kinds of query."""
        if isinstance(query, GradientQuery):
            return self._arms[query.arm].gradient(query.input, query.weights, query.neurons)
        return self.answered(query)

    def rehearse(self, input_: Input, *, neurons: bool = False) -> None:
        """Answer what a search may ask, so that all is compiled before the time of one counts.

        Args:
            input_: an input that both models take.
            neurons: whether it is to ask about neurons too.

        Raises:
            UserError: a model does not know its neurons, and they are asked for.

        """
        (told,) = self.answered(TranslatedQuery([input_], 0.0 if neurons else None))
        for arm, scores in told.scores.items():
            weights: Mapping[int, float] = {0: 0.0} if neurons else {}
            self.answer(GradientQuery(input_, arm, np.zeros_like(scores), weights))

    def answered(self, query: TranslatedQuery) -> list[TranslatedOutcome]:
        """Return what the translations answer about inputs."""
        return [self._outcome(input_, query) for input_ in query.inputs]

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

    def _outcome(self, input_: Input, query: TranslatedQuery) -> TranslatedOutcome:
        answered = {arm: translated.answer(input_) for arm, translated in self._arms.items()}
        covered = {}
        if query.coverage is not None:
            covered = {
                arm: translated.covered(input_, query.coverage)
                for arm, translated in self._arms.items()
            }
        return TranslatedOutcome(
            Outcome({arm: answer for arm, (answer, _) in answered.items()}),
            {arm: scores for arm, (_, scores) in answered.items()},
            covered,
        )


def _translated(arm: ArmToTranslate, level: float) -> _TranslatedArm:
    if not isinstance(arm.encoder, DifferentiableEncoder):
        raise UserError(
            f"what stands before {arm.source} cannot be differentiated, such as the features of"
            " sounds: take pairs of images or arrays"
        )
    if len(arm.decoder.outputs) != 1 or arm.decoder.choices < 2:
        raise UserError(
            f"{arm.source} does not give one score for each class, whose gradients are needed"
        )
    return _TranslatedArm(_model(arm), arm.encoder, arm.decoder, level)


def _model(arm: ArmToTranslate) -> _DifferentiableModel:
    if is_callable(arm.source):
        model = _ModelWithOwnGradient(arm.source, arm.shape, arm.decoder)
        for row in arm.rows[:1]:
            model.require(row)
        return model
    path = Path(arm.source)
    if path.suffix.lower() != ".tflite":
        raise UserError(
            f"{path} is no .tflite file, whose operators could be differentiated: convert it, or"
            " name a Python function with a function `gradient` beside it"
        )
    content = read_model_file(path)
    network = DifferentiableNetwork(Graph(content, str(path)))
    scores = network.graph.tensors[network.scores]
    if scores.size != arm.decoder.choices:
        raise UserError(
            f"{path}: tensor {scores.name!r} has {scores.size} scores for {arm.decoder.choices}"
            " decisions, whose gradients are needed"
        )
    require_equal(network, content, arm.kernels, arm.rows)
    return network


class _DifferentiableModel(Protocol):
    """A model that knows its gradient, asked about one input at a time."""

    def evaluate(self, row: NDArray[np.generic]) -> tuple[NDArray[np.generic], _Real]:
        """Return the raw output for a row, and the scores, (choices,), before a last softmax."""

    def gradient(
        self, row: NDArray[np.generic], weights: _Real, neurons: Mapping[int, float]
    ) -> _Real:
        """Return the gradient of a weighted sum of scores and neurons, by the real input."""

    def covered(self, row: NDArray[np.generic], threshold: float) -> NDArray[np.bool_]:
        """Return which neurons an input covers, (neurons,); see `covered_neurons`.

        Raises:
            UserError: the model cannot be looked into.

        """


@dataclass(frozen=True)
class _TranslatedArm:
    """A differentiable model between the encoder and the decoder of its arm.

    Attributes:
        model: what computes scores and gradients.
        encoder: encoder of the inputs that are searched.
        decoder: decoder of the model's outputs.
        level: how much one level is, in the inputs' own units.

    """

    model: _DifferentiableModel
    encoder: DifferentiableEncoder
    decoder: Decoder
    level: float

    def answer(self, input_: Input) -> tuple[Answer, _Real]:
        """Return the answer to an input, and its scores before a last softmax."""
        output, scores = self.model.evaluate(self._row(input_))
        (answer,) = self.decoder.read(RawBatch(output.reshape(1, -1)))
        return answer, scores

    def gradient(self, input_: Input, weights: _Real, neurons: Mapping[int, float]) -> _Real:
        """Return a gradient by the levels of an input, in its shape; see `GradientQuery`."""
        by_row = self.model.gradient(self._row(input_), weights, neurons)
        return self.encoder.pulled_back(by_row).reshape(input_.shape) * self.level

    def covered(self, input_: Input, threshold: float) -> NDArray[np.bool_]:
        """Return which neurons an input covers; see `covered_neurons`."""
        return self.model.covered(self._row(input_), threshold)

    def _row(self, input_: Input) -> NDArray[np.generic]:
        rows = self.encoder.encode(input_[None])
        return rows[:1]


class _ModelWithOwnGradient:
    """A Python original, and the derivatives of its outputs as the user computes them.

    `gradient` takes what the original takes, and returns the derivative of each of its outputs by
    each value of the input: (outputs, *input shape).
    """

    def __init__(self, source: str, shape: tuple[int, ...], decoder: Decoder) -> None:
        """Import both functions.

        Args:
            source: the original, `module:function` or `path/to/file.py:function`.
            shape: shape of what it takes.
            decoder: decoder of its output.

        Raises:
            UserError: there is no gradient beside it.

        """
        self._function = load_callable(source, "inputs")
        self._original = source
        self._source = source.rpartition(":")[0] + f":{_GRADIENT}"
        try:
            self._gradient = load_callable(self._source, "inputs")
        except UserError:
            raise UserError(
                f"{source} has no gradient of its own: write `def {_GRADIENT}(inputs)` beside it,"
                " which returns the derivative of each output by each value, (outputs, *inputs"
                " shape)"
            ) from None
        self._shape = shape
        self._decoder = decoder

    def require(self, row: NDArray[np.generic]) -> None:
        """Refuse outputs that are no scores of classes, and derivatives that are not theirs.

        Args:
            row: on which both functions are tried.

        Raises:
            UserError: the outputs are not one for each class, or the gradient fails.

        """
        output, _ = self.evaluate(row)
        choices = self._decoder.choices
        if output.size != choices:
            raise UserError(
                f"{self._source} is of {output.size} outputs for {choices} decisions, and a search"
                " needs the gradient of a score of each"
            )
        self.gradient(row, np.zeros(choices), {})

    def evaluate(self, row: NDArray[np.generic]) -> tuple[NDArray[np.generic], Real]:
        """Return the output for a row, and its scores; see `_DifferentiableModel`.

        Raises:
            UserError: the user's function fails.

        """
        try:
            output = np.asarray(self._function(row.reshape(self._shape)), np.float32)
        except Exception as error:  # whatever the user's code raises is the user's to correct
            raise UserError(
                f"{self._original} failed: {reason(error)}; the strategy boundary, which needs no"
                " gradient, records that as a finding"
            ) from error
        (answer,) = self._decoder.read(RawBatch(output.reshape(1, -1)))
        return output, answer.scores

    def gradient(
        self, row: NDArray[np.generic], weights: Real, neurons: Mapping[int, float]
    ) -> Real:
        """Return the gradient of a weighted sum of scores; see `_DifferentiableModel`.

        Raises:
            UserError: the user's function fails, or returns something else; or neurons are asked.

        """
        if neurons:
            self._refuse_neurons()
        output, _ = self.evaluate(row)
        try:
            derivatives = np.asarray(self._gradient(row.reshape(self._shape)), np.float64)
        except Exception as error:  # whatever the user's code raises is the user's to correct
            raise UserError(f"{self._source} failed: {reason(error)}") from error
        expected = (output.size, *self._shape)
        if derivatives.shape != expected or not np.isfinite(derivatives).all():
            returned = "infinity or NaN" if derivatives.shape == expected else derivatives.shape
            raise UserError(
                f"{self._source} returned {returned}: it has to return finite numbers of the shape"
                f" {expected}, one derivative for each output and value"
            )
        if self._decoder.meaning == "probabilities":  # whose scores are their logarithms
            weights = weights / np.maximum(output.ravel(), np.finfo(np.float32).tiny)
        return np.tensordot(weights, derivatives, 1)

    def covered(self, row: NDArray[np.generic], threshold: float) -> NoReturn:  # noqa: ARG002
        """Refuse: nothing is known of its neurons."""
        self._refuse_neurons()

    def _refuse_neurons(self) -> NoReturn:
        raise UserError(
            f"{self._original} is a Python function, whose neurons are not known: give a .tflite"
            " original, or set lambda2=0, which asks for none"
        )
