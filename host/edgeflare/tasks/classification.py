"""From a model's raw outputs to labels, ties, probabilities and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any, Literal

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.joint_answer import (
    MOST_SCORES,
    JointAnswer,
    in_runs,
    joint_answer,
    split_decision,
)
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.views import AnswerView
from edgeflare.errors import UserError
from edgeflare.pages.answers.classes import ClassesView, classes_view
from edgeflare.tasks.classification_warnings import classification_warnings, hardly_vary
from edgeflare.tasks.frame_pooling import (
    NO_CLIP,
    ClipFrames,
    FrameRule,
    frames_to_show,
    require_frame_keys,
)
from edgeflare.tasks.output_choice import (
    chosen_output,
    is_numeric,
    one_frame,
    open_outputs,
    output_values,
)

Outputs = Literal["logits", "probabilities"]

_SEEDS_FOR_DETECTION = 32
"""Seeds whose outputs tell logits from probabilities."""

_AFTER_SOFTMAX = {"QUANTIZE", "DEQUANTIZE", "RESHAPE", "SQUEEZE"}
_GIVES_PROBABILITIES = {"SOFTMAX", "LOGISTIC"}


@dataclass(frozen=True, slots=True)
class Decoded:
    """The decoded answers of a model to a batch, as arrays; of a clip, a row for each frame.

    Attributes:
        labels: (rows,) int64, top-1; the lowest index among equals; -1 where the model failed.
        tied: (rows,) bool, whether the two largest outputs are equal.
        probabilities: (rows, classes) float64; zeros where the model failed.
        scores: (rows, classes) float64: the logits, or the logarithms of the probabilities; zeros
            where the model failed.
        failures: (rows,) why there is no answer, or None.

    """

    labels: NDArray[np.int64]
    tied: NDArray[np.bool_]
    probabilities: NDArray[np.float64]
    scores: NDArray[np.float64]
    failures: tuple[Failure | None, ...]


@dataclass(frozen=True)
class ClassDecoder(Decoder):
    """Reads the scores of classes.

    Attributes:
        holds: what the output holds; see `detect_outputs`.
        frames: the frames of a clip that count.

    Raises:
        UserError: the output is not one vector of at least two classes.

    """

    outputs: tuple[Tensor, ...]
    at: int
    holds: Outputs
    frames: ClipFrames = NO_CLIP

    def __post_init__(self) -> None:
        class_count(one_frame(self.tensor, self.frames.count))

    @property
    def classes(self) -> int:
        """How many there are."""
        return self.tensor.shape[-1]

    @property
    def choices(self) -> int:
        """How many classes there are; of frames that are answered each by itself, of all."""
        return prod(self.parts)

    @property
    def meaning(self) -> str:
        """What the output holds."""
        return self.holds

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the class of each row, and its scores; of a clip, those of the frames together."""
        count = self.frames.answers
        parts = self._read_frames(batch)
        if count == 1:
            yield from parts
        else:
            while frames := tuple(islice(parts, count)):
                yield joint_answer(frames)

    @property
    def parts(self) -> tuple[int, ...]:
        """The classes, for each frame that is answered by itself."""
        return (self.classes,) * self.frames.answers

    def describe(self, decision: int) -> str:
        """Return a class by its number; of frames, the classes in their order, such as 3×20 7."""
        labels = split_decision(decision, self.parts)
        return in_runs(map(str, labels))

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[ClassesView, ...]:
        """Return the frames that differ; of a single answer nothing, as the document has it all."""
        if self.frames.answers == 1:
            return ()
        shown = frames_to_show(self.frames, answers, compared)
        return tuple(classes_view(head, frame) for head, frame in shown)

    def decode(self, batch: RawBatch) -> Decoded:
        """Read a batch.

        Outputs that are not finite, of a wrong shape, or refused by the runtime are an
        "invalid-output".
        """
        _, real, failing = output_values(batch, self.outputs, self.at)
        real = self.frames.means(real).reshape(-1, self.classes)
        size, count = len(real), self.frames.answers
        failures = {at * count + n: why for at, why in failing.items() for n in range(count)}
        tied = (real == real.max(axis=1, keepdims=True)).sum(axis=1) > 1
        labels = real.argmax(axis=1).astype(np.int64, copy=False)
        if self.holds == "logits":
            probabilities, scores = softmax(real), real
        else:
            probabilities, scores = real, np.log(np.maximum(real, least_probability(self.tensor)))
        if failures:
            failed = sorted(failures)
            labels[failed], tied[failed] = -1, False
            probabilities[failed], scores[failed] = 0.0, 0.0
        why = tuple(failures.get(index) for index in range(size))
        return Decoded(labels, tied, probabilities, scores, why)

    def _read_frames(self, batch: RawBatch) -> Iterator[Answer]:
        decoded = self.decode(batch)
        for label, tied, probabilities, scores, failure in zip(
            decoded.labels.tolist(),
            decoded.tied.tolist(),
            decoded.probabilities,
            decoded.scores,
            decoded.failures,
            strict=True,
        ):
            yield Answer(None if failure else label, tied, probabilities, scores, failure)


@dataclass(frozen=True)
class HeadsDecoder(Decoder):
    """Reads the classes of several heads as one decision.

    Attributes:
        heads: the decoder of each head, all of the same rows; at least two.

    Raises:
        UserError: the heads have too many joint decisions to count.

    """

    heads: tuple[ClassDecoder, ...] = field()  # has no default

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", self.heads[0].outputs)
        if self.choices > MOST_SCORES:
            known = " × ".join(str(head.choices) for head in self.heads)
            raise UserError(
                f"heads have {known} decisions together; at most {MOST_SCORES} can be told apart: "
                "name fewer heads, or compare frames by another rule than 'any'"
            )

    @property
    def choices(self) -> int:
        """How many decisions the heads have together."""
        return prod(self.parts)

    @property
    def meaning(self) -> str:
        """What the outputs of the heads hold."""
        return ", ".join(dict.fromkeys(head.meaning for head in self.heads))

    @property
    def tensor(self) -> Tensor:
        """The output of the first head."""
        return self.heads[0].tensor

    @property
    def read_at(self) -> tuple[int, ...]:
        """The positions of the outputs of all heads."""
        return tuple(head.at for head in self.heads)

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the classes of all heads of each row."""
        return map(joint_answer, zip(*(head.read(batch) for head in self.heads), strict=True))

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[AnswerView, ...]:
        """Return the classes of each head, under the name of its output."""
        joint = {arm: answer for arm, answer in answers.items() if isinstance(answer, JointAnswer)}
        views: list[AnswerView] = []
        for place, head in enumerate(self.heads):
            parts = {arm: answer.parts[place] for arm, answer in joint.items()}
            name = head.tensor.name
            shown = head.views(parts, compared)
            views += [structs.replace(view, head=f"{name}, {view.head}") for view in shown]
            views += [] if shown else [classes_view(name, parts)]
        return tuple(views)

    @property
    def parts(self) -> tuple[int, ...]:
        """How many classes each head has."""
        return tuple(head.choices for head in self.heads)

    def describe(self, decision: int) -> str:
        """Return the class of each head, such as 3, 7."""
        labels = split_decision(decision, self.parts)
        return ", ".join(
            head.describe(label) for head, label in zip(self.heads, labels, strict=True)
        )


class Classification(Task):
    """One score for each class; the class with the largest is the decision.

    Of several heads the decision is the class of each, and two decisions differ where any head's
    does.
    """

    name = "classification"
    expects = "one score for each of at least two classes, (1, classes)"
    decoders = (ClassDecoder, HeadsDecoder)

    def __init__(
        self,
        *,
        outputs: Literal["auto", "logits", "probabilities"] = "auto",
        output: str = "",
        heads: tuple[str, ...] = (),
        frames: Literal["last", "any", "mean"] = "last",
        first_frame: int = 0,
    ) -> None:
        """Make the task.

        Args:
            outputs: what the scores of both models are; "auto" to detect it.
            output: the output that holds them; see `chosen_output`.
            heads: the outputs of a model with several heads, each as in `output`.
            frames: how the frames of a clip are summed up; see `FrameRule`.
            first_frame: the first frame of a clip that counts, from 0.

        """
        require_frame_keys(self.name, frames, first_frame, ("last", "any", "mean"))
        if outputs not in ("auto", "logits", "probabilities"):
            raise UserError(f"outputs is {outputs!r}; expected 'auto', 'logits' or 'probabilities'")
        if heads and output:
            raise UserError("output and heads are both given: keep heads alone, or output alone")
        if len(heads) == 1:
            raise UserError(f'heads has one output: write output = "{heads[0]}"')
        self._outputs, self._heads = outputs, tuple(heads) or (output,)
        self._rule: FrameRule = frames
        self._first = first_frame

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output is one vector of at least two scores."""
        return is_numeric(tensor) and 2 <= prod(tensor.shape) == tensor.shape[-1]

    def decoder(self, model: ModelOutputs) -> Decoder:
        """Return the decoder of the outputs that are vectors of scores."""
        frames = ClipFrames.of_model(model.frames, self._rule, self._first, model.name)
        places = [chosen_output(type(self), model, head) for head in self._heads]
        sample = model.sample(_SEEDS_FOR_DETECTION) if self._outputs == "auto" else None
        heads = tuple(
            ClassDecoder(model.outputs, at, self._meaning(model, sample, at), frames)
            for at in places
        )
        return heads[0] if len(heads) == 1 else HeadsDecoder(heads)

    def warnings(
        self,
        original: Sequence[Answer] | None,
        compressed: Sequence[Answer],
        labels: NDArray[np.int64] | None,
    ) -> list[str]:
        """Return what looks like wrong preprocessing; see `classification_warnings`."""
        return classification_warnings(original, compressed, labels)

    def model_warnings(self, name: str, answers: Sequence[Answer]) -> list[str]:
        """Return a line where a model's outputs hardly vary over at least 8 seeds."""
        return [f"{name}'s outputs hardly vary over the seeds"] if hardly_vary(answers) else []

    def _meaning(self, model: ModelOutputs, sample: RawBatch | None, at: int) -> Outputs:
        """Return what an output holds, by the answers to a sample of the seeds."""
        if sample is None:
            return "probabilities" if self._outputs == "probabilities" else "logits"
        return meaning_on_sample(model, sample, at)


def class_decoder(decoder: Decoder) -> ClassDecoder:
    """Return a decoder as one of classes.

    Raises:
        UserError: it is of another task.

    """
    if not isinstance(decoder, ClassDecoder):
        raise UserError(
            f"output {decoder.tensor.name!r} holds {decoder.meaning}, and this needs a classifier:"
            " choose a pair whose task is classification"
        )
    return decoder


def meaning_on_sample(model: ModelOutputs, sample: RawBatch, at: int) -> Outputs:
    """Return what an output holds along its last axis, by the answers to a sample of the seeds.

    Of an original whose graph is not known, numbers from 0 to 1 are probabilities where an output
    of the compressed model is from SOFTMAX or LOGISTIC: independent ones do not sum to 1.
    """
    tensor = model.outputs[at]
    _, real, failures = output_values(sample, model.outputs, at)
    good = np.delete(real, sorted(failures), axis=0).reshape(-1, tensor.shape[-1])
    found = detect_outputs(tensor, _operators_of(model, at), good)
    if found == "probabilities" or not good.size or good.min() < 0.0 or good.max() > 1.0:
        return found
    theirs = {maker.name for maker in model.compressed_makers() if maker is not None}
    return "probabilities" if theirs & _GIVES_PROBABILITIES else "logits"


def _operators_of(model: ModelOutputs, at: int) -> tuple[str, ...]:
    """Return names of operators that end in the one that makes an output; none where unknown."""
    makers = model.makers()
    maker = makers[at] if at < len(makers) else None
    if maker is not None:
        return (maker.name,)
    # Of several outputs, the last operator need not be that of this one.
    return model.operators if len(open_outputs(model)) == 1 else ()


def detect_outputs(
    tensor: Tensor, operators: Sequence[str] = (), real: NDArray[np.floating[Any]] | None = None
) -> Outputs:
    """Return whether a model's outputs are logits or probabilities.

    They are probabilities if the last operator is SOFTMAX or LOGISTIC, or if they have the
    quantization that converters reserve for probabilities, 1/256 from 0 up. Otherwise they are if
    none is negative and they sum to 1 on all seeds, within 0.001 and half an 8-bit step for each
    class, at most 0.1: a softmax may be quantized within a model whose output is float32.

    Args:
        tensor: the model's output.
        operators: names of the graph's operators in execution order; empty where unknown.
        real: (batch, classes), the outputs on the seeds, dequantized, without failed ones.

    """
    named = [name for name in operators if name not in _AFTER_SOFTMAX]
    if named and named[-1] in _GIVES_PROBABILITIES:
        return "probabilities"
    lowest = -128 if tensor.dtype == "int8" else 0
    if tensor.scale == 1 / 256 and tensor.zero_point == lowest:
        return "probabilities"
    if real is None or not real.size:
        return "logits"
    tolerance = 0.001 + min(0.1, real.shape[1] / 512)
    sums_to_one = (np.abs(real.sum(axis=1) - 1.0) <= tolerance).all()
    return "probabilities" if (real >= 0.0).all() and sums_to_one else "logits"


def class_count(tensor: Tensor, model: str = "the model") -> int:
    """Return the number of classes of an output.

    Raises:
        UserError: the output is not one vector of at least two classes, such as (1, C) or
            (1, 1, 1, C).

    """
    classes = tensor.shape[-1] if tensor.shape else 0
    if prod(tensor.shape[:-1]) != 1:
        raise UserError(
            f"{model}: output {tensor.name!r} has shape {tensor.shape}; a classifier gives one "
            "score for each class, (1, classes)"
        )
    if classes < 2:
        raise UserError(
            f"{model}: output {tensor.name!r} has shape {tensor.shape}; a classifier needs at "
            "least two classes, give a binary model two outputs"
        )
    return classes


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of each row: (batch, classes), float64, rows summing to 1."""
    powers: NDArray[np.float64] = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def least_probability(tensor: Tensor) -> float:
    """Return the least probability that has a logarithm of its own.

    Half a step for quantized ones, since the next larger is a whole step; the least normal
    number for float32, so that scores still move where softmax is saturated.
    """
    if tensor.dtype != "float32" and tensor.scale:
        return tensor.scale / 2
    return float(np.finfo(np.float32).tiny)
