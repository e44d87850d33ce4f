"""The seam of tasks: what the outputs of a pair's models mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import joint_truth, split_decision
from edgeflare.core.seeds import is_label
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.views import AnswerView
from edgeflare.errors import UserError

LEAST_SEEDS = 8
"""Seeds from which on it means something that all answers are alike."""


@dataclass(frozen=True, slots=True)
class OutputMaker:
    """The operator that an output is from; conversions and reshapes behind it do not count.

    Attributes:
        operator: position of the operator in the graph.
        name: such as "SOFTMAX", or the custom operator's own name.
        at: index of the output among the operator's.
        reads: name of the first tensor that the operator reads.

    """

    operator: int
    name: str
    at: int
    reads: str = ""


@dataclass(frozen=True, slots=True)
class ModelOutputs:
    """What a task is told of one model.

    Attributes:
        name: what the user calls the model, for messages.
        outputs: all tensors of a row, in their order there; of a model that is run frame by frame
            they have the shapes (frames, *shape).
        state: names of outputs that only feed a state.
        frames: steps of one clip; 0 where an input is no clip.
        operators: names of the graph's operators in execution order; empty where unknown.
        sample: runs the model on the first so many seeds; on fewer where there are fewer.
        inputs: how many of the leading tensors are the model's inputs as it was given them; 0 but
            for a task that reads inputs.
        before: the decoder of the model in whose place this one is evaluated again, whose measured
            units are kept; None elsewhere.
        picture_sizes: (height, width) of each input that is a picture, or may be one.
        makers: returns of each tensor of a row the operator that it is from, None where there is
            none; nothing where the graph is not known.
        compressed_makers: of an original whose graph is not known, returns of each output of the
            pair's compressed model the operator that it is from; nothing elsewhere.

    """

    name: str
    outputs: tuple[Tensor, ...]
    state: frozenset[str]
    frames: int
    operators: tuple[str, ...]
    sample: Callable[[int], RawBatch]
    inputs: int = 0
    before: Decoder | None = None
    picture_sizes: tuple[tuple[int, int], ...] = ()
    makers: Callable[[], tuple[OutputMaker | None, ...]] = tuple
    compressed_makers: Callable[[], tuple[OutputMaker | None, ...]] = tuple


def target_name(target: NDArray[np.generic]) -> str:
    """Return what a row of `targets` is, for messages."""
    return f"{'text' if target.dtype.kind == 'U' else target.dtype} {target.shape}"


class Decoder(ABC):
    """Reads the raw outputs of one model.

    It is a frozen dataclass, and what its fields hold a journal keeps: all that is needed to read
    the outputs again. They are of types that msgspec converts.

    Attributes:
        outputs: all tensors of a row, in their order there; see `edgeflare.core.tensor`.
        at: the position in a row of the output that is read; none where `tensor` and `read_at` are
            overridden.
        heads: the decoder of each part of a joint answer, where the parts are heads; else none.
        chooses: as of the answers, see `Answer`.
        shows_seeds: whether the answers to a seed are kept beside those to a trigger, to be shown.
        compresses: whether runs keep rows compressed, since they are large; see `reduced`.
        answer_noun: what an answer is called that is too large to be written out, such as "mask";
            empty where `describe_answer` says it all.

    """

    outputs: tuple[Tensor, ...]
    at: int
    heads: tuple[Decoder, ...] = ()
    chooses: bool = True
    shows_seeds: bool = False
    compresses: bool = False
    answer_noun: str = ""

    @property
    @abstractmethod
    def choices(self) -> int:
        """How many decisions there are to choose from; 0 where they cannot be counted."""

    @property
    def numbered(self) -> bool:
        """Whether decisions can be counted, and the number of each fits into 64 bits."""
        return 0 < self.choices <= np.iinfo(np.int64).max

    @property
    @abstractmethod
    def meaning(self) -> str:
        """What the raw outputs are, in a word or two, such as "logits"."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the decisions, where the task has names for them itself; empty elsewhere."""
        return ()

    @property
    def tensor(self) -> Tensor:
        """The output that is read; where several are, the first of them."""
        return self.outputs[self.at]

    @property
    def read_at(self) -> tuple[int, ...]:
        """The positions in a row of the outputs that are read."""
        return (self.at,)

    @abstractmethod
    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield what each row of a batch means.

        Outputs that are not finite, of a wrong shape, or refused by the runtime are answers with
        the failure "invalid-output".
        """

    def labelled(self, label: int) -> Answer | None:
        """Return the right answer where a label says it; None where it is none of the choices."""
        if not is_label(label, self.choices):
            return None
        return joint_truth(split_decision(label, self.parts), self.parts)

    def target(self, target: NDArray[np.generic]) -> Answer | None:
        """Return the right answer where a row of `targets` says it; None where it says none.

        Whoever decides otherwise than it, as `Answer.differs` says, is wrong. Unless overridden, a
        row has the label of each part of a joint answer.

        Raises:
            UserError: this is not what the task's answers are; says what is expected.

        """
        if len(self.parts) < 2:
            raise UserError("its task reads labels instead: one integer for each seed")
        if target.shape != (len(self.parts),) or target.dtype.kind not in "iu":
            raise UserError(
                f"{target_name(target)}, expected an integer for each of {len(self.parts)} parts"
            )
        return joint_truth(target.tolist(), self.parts)

    @property
    def parts(self) -> tuple[int, ...]:
        """How many choices each part of an answer has; one number unless answers are joint."""
        return (self.choices,)

    def reduced(self, row: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return a row that is read as this one is, and compresses better.

        Args:
            row: row of raw outputs, which did not fail; see `edgeflare.core.tensor`.

        """
        return row

    def views(
        self,
        answers: Mapping[str, Answer],  # noqa: ARG002 - decisions and probabilities need no more
        compared: tuple[str, str],  # noqa: ARG002
    ) -> tuple[AnswerView, ...]:
        """Return how the answers to one input are shown, one view for each head.

        They are kept with each entry of a run, so they have to be small. Empty where the decisions
        and their probabilities say it all.

        Args:
            answers: answers by arm, not of every arm; some of them failed.
            compared: the two arms in whose difference a deviation lies.

        """
        return ()

    def describe(self, decision: int) -> str:
        """Return a decision as people read it, where the user has not named the decisions."""
        return self.names[decision] if decision < len(self.names) else str(decision)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return an answer as people read it.

        Args:
            answer: one that this decoder read.
            classes: the user's names of the decisions; empty where there are none.

        """
        if answer.decision is None:
            return "nothing"
        named = answer.decision < len(classes)
        return classes[answer.decision] if named else self.describe(answer.decision)


class Task(ABC):
    """What the outputs of a pair's models mean, such as the scores of classes.

    A package makes a task known by an entry point, under the name that `pair.toml` has as `task`:

        [project.entry-points."edgeflare.tasks"]
        classification = "my_package:Classification"

    It is constructed with the keys of `pair.toml`'s table `[task]` as keyword arguments, each of
    the type of its annotation; a key without a default has to be given. The constructor raises
    UserError where a value is out of its range.

    What decisions are, when two differ, how confidently, and how far one is from changing, is said
    by the answers that its decoders read: see `Answer`.

    Attributes:
        name: as users write it.
        expects: the output that it reads, as messages say it, such as "one score for each class".
        decoders: the types of its decoders, of which a journal names one.
        strategy: name of the search strategy that is taken where the user names none.
        search_parameters: values that a strategy's parameters have with this task where the user
            sets none, by the strategy's name and their own; the others have their defaults.
        class_labels: whether the labels of seeds name decisions. Where they do not, several for
            each seed are ignored, such as the symbols of a text.
        reads_inputs: whether its decoders read the model's inputs too, which the rows then have
            before the outputs.
        reads_features: whether these are the values before they were quantized, in float32.
        post_processing: the Python function that a user names to make of one model's outputs what
            its decoders read, `module:function` or `file.py:function`; empty where they read the
            outputs themselves.
        processed: what that function makes, the only tensor that the rows then have: (1, rows, 6)
            float32, left, top, right, bottom, score and class of each object, and the score -1 in
            rows that are not used. None where there is no function.

    """

    name: ClassVar[str]
    expects: ClassVar[str]
    decoders: ClassVar[tuple[type[Decoder], ...]]
    strategy: ClassVar[str] = "boundary"
    search_parameters: ClassVar[Mapping[str, Mapping[str, bool | int | float | str]]] = {}
    class_labels: ClassVar[bool] = True
    reads_inputs: bool = False
    reads_features: bool = False
    post_processing: str = ""
    processed: Tensor | None = None

    @classmethod
    @abstractmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether this task could read an output, of one frame where the model is given a clip."""

    @abstractmethod
    def decoder(self, model: ModelOutputs) -> Decoder:
        """Return the decoder of a model's outputs.

        Raises:
            UserError: the task fits none of its outputs, or several and none is chosen.

        """

    def warnings(
        self,
        original: Sequence[Answer] | None,
        compressed: Sequence[Answer],
        labels: NDArray[np.int64] | None,  # noqa: ARG002 - not of a model by itself
    ) -> list[str]:
        """Return one line for each sign that the models do not answer as trained ones do.

        Unless overridden, these are the signs of each model by itself.

        Args:
            original: the original's answers on the seeds, or None where there is none.
            compressed: the compressed model's answers on them.
            labels: (seeds,) what is right, or None.

        """
        models = {"the original": original or (), "the compressed model": compressed}
        return [line for name, model in models.items() for line in self.model_warnings(name, model)]

    def model_warnings(
        self,
        name: str,  # noqa: ARG002 - a task need not know such signs
        answers: Sequence[Answer],  # noqa: ARG002
    ) -> list[str]:
        """Return one line for each sign that a model does not answer as a trained one does.

        Args:
            name: "the original", "the compressed model", "the twin" or "the device".
            answers: on the seeds; none where there is no such model.

        """
        return []

    def require_pair(
        self, original: Decoder | None, compressed: Decoder, classes: Sequence[str]
    ) -> None:
        """Refuse two models whose decisions cannot be compared, and names that do not fit them.

        Args:
            original: the original's decoder, or None where there is none.
            compressed: the compressed model's decoder.
            classes: names of the decisions; empty where none are given.

        Raises:
            UserError: the two have different numbers of decisions, or there is not one name for
                each.

        """
        if classes and not compressed.choices:
            raise UserError(
                f"classes are named, but the task {self.name} tells none apart: remove the key "
                "classes"
            )
        if classes and len(classes) != compressed.choices:
            raise UserError(
                f"classes has {len(classes)} names, but the compressed model tells "
                f"{compressed.choices} classes apart: give one name for each, in the order of its "
                "outputs"
            )
        if original is not None and original.choices != compressed.choices:
            raise UserError(
                f"the original tells {original.choices} classes apart and the compressed model "
                f"{compressed.choices}: they are no pair"
            )
