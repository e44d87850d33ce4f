"""Speech to text: greedy CTC, or a symbol for each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_VALUES, Answer, Failure
from edgeflare.core.task import LEAST_SEEDS, Decoder, ModelOutputs, Task, target_name
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.pages.answers.texts import TranscriptView
from edgeflare.tasks.classification import Outputs, least_probability, meaning_on_sample
from edgeflare.tasks.output_choice import chosen_output, is_numeric, output_values
from edgeflare.tasks.transcript.transcript_answer import TextLattice, TranscriptAnswer
from edgeflare.tasks.transcript.transcript_symbols import Spelling, TranscriptSymbols

_SEEDS_FOR_DETECTION = 32
"""Seeds whose outputs tell logits from probabilities."""

_SEARCH_PARAMETERS = {"first_leap": 2, "shortening_grid": 1}
"""Parameters of `boundary`. On the 25 recordings of digits on which they were chosen these took 6.4
queries by argmax instead of 10.1: mostly one half of a sound alone makes the difference, so that
weighing the halves says little."""


@dataclass(frozen=True)
class TranscriptDecoder(Decoder):
    """Reads texts.

    Attributes:
        symbols: what the values of one step stand for.
        holds: what the output holds, which has a value for each step and symbol.

    """

    choices = 0
    shows_seeds = True

    outputs: tuple[Tensor, ...]
    at: int
    symbols: TranscriptSymbols
    holds: Outputs

    @property
    def meaning(self) -> str:
        """What the output holds."""
        return self.holds

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the text of each row."""
        _, real, failures = output_values(batch, self.outputs, self.at)
        steps = real.reshape(len(real), -1, len(self.symbols.names))
        for at, step in enumerate(steps):
            yield self._answer(step, failures.get(at))

    def target(self, target: NDArray[np.generic]) -> TranscriptAnswer:
        """Return the text of a target, a string."""
        if target.dtype.kind != "U" or target.size != 1:
            raise UserError(f"{target_name(target)}, expected a text for each seed")
        return TranscriptAnswer(
            0,
            False,
            NO_VALUES,
            NO_VALUES,
            outputs=np.zeros((1, len(self.symbols.names)), np.float32),
            spelling=(),
            words=self.symbols.words_of(str(target.item())),
            symbols=self.symbols,
        )

    def views(
        self,
        answers: Mapping[str, Answer],
        compared: tuple[str, str],  # noqa: ARG002 - reports mark the words that differ
    ) -> tuple[TranscriptView, ...]:
        """Return the words of each arm."""
        words = {
            arm: None if answer.failure else answer.words
            for arm, answer in answers.items()
            if isinstance(answer, TranscriptAnswer)
        }
        return (TranscriptView("", self.symbols.shown_separator, words),)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the text in quotes."""
        if not isinstance(answer, TranscriptAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        return f'"{self.symbols.text(answer.words)}"'

    def _answer(self, real: NDArray[np.float64], failure: Failure | None) -> TranscriptAnswer:
        """Return the text of one row, (steps, symbols)."""
        spelling = self.symbols.spelling(real.argmax(axis=1)) if failure is None else ()
        values = real
        if self.holds == "probabilities" and failure is None:
            values = np.log(np.maximum(real, least_probability(self.tensor)))
        return TranscriptAnswer(
            None if failure else 0,
            failure is None and self._is_tied(real, spelling),
            NO_VALUES,
            NO_VALUES,
            failure,
            outputs=values.astype(np.float32),
            spelling=spelling,
            words=self.symbols.words(spelling),
            symbols=self.symbols,
        )

    def _is_tied(self, real: NDArray[np.float64], spelling: Spelling) -> bool:
        """Whether another choice among equal outputs would give another text."""
        largest = real.max(axis=1, keepdims=True)
        if ((real == largest).sum(axis=1) == 1).all():
            return False
        lattice = TextLattice(self.symbols.written(spelling), self.symbols)
        return lattice.need_of_another(largest - real) == 0.0


class Transcript(Task):
    """A text; two models deviate where a word does."""

    name = "transcript"
    class_labels = False
    search_parameters: ClassVar[Mapping[str, Mapping[str, bool | int | float | str]]] = {
        "boundary": _SEARCH_PARAMETERS,
        "boundary-mh": _SEARCH_PARAMETERS,
    }
    expects = "a value for each of at least 2 steps and of at least 2 symbols, (1, steps, symbols)"
    decoders = (TranscriptDecoder,)

    def __init__(
        self,
        *,
        vocabulary: tuple[str, ...],
        decoding: Literal["ctc", "argmax"] = "ctc",
        blank: int | None = None,
        separator: str = "",
        output: str = "",
        outputs: Literal["auto", "logits", "probabilities"] = "auto",
    ) -> None:
        """Make the task.

        Args:
            vocabulary: the symbols in the order of the model's outputs, without CTC's blank.
            decoding: "ctc", the largest output of each step, of which repeated ones are merged and
                blanks dropped; or "argmax", the same with a symbol for each step.
            blank: the position of CTC's blank among the outputs, from 0; the last unless given.
            separator: what stands between words: a symbol of the vocabulary, or what symbols begin
                with that begin a word. Empty where each symbol is a word.
            output: the output that holds the steps; see `chosen_output`.
            outputs: what the values of both models are; "auto" to detect it.

        """
        _require_vocabulary(vocabulary, separator)
        size = len(vocabulary) + 1
        if decoding == "argmax" and blank is not None:
            raise UserError(
                "blank is given, but with decoding = 'argmax' each step writes a symbol: remove "
                "blank, or write decoding = 'ctc'"
            )
        if blank is not None and not 0 <= blank < size:
            raise UserError(
                f"blank is {blank}, but {len(vocabulary)} symbols and the blank are outputs 0 to "
                f"{size - 1}: give one of these"
            )
        names = list(vocabulary)
        if decoding == "ctc":
            blank = size - 1 if blank is None else blank
            names.insert(blank, "")
        self._symbols = TranscriptSymbols(tuple(names), separator, blank)
        self._output, self._outputs = output, outputs

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output has several steps, each of several values."""
        symbols = tensor.shape[-1] if len(tensor.shape) > 1 else 0
        return is_numeric(tensor) and symbols > 1 and prod(tensor.shape) == symbols * _steps(tensor)

    def decoder(self, model: ModelOutputs) -> TranscriptDecoder:
        """Return the decoder of the output that has a value for each step and symbol."""
        at = chosen_output(type(self), model, self._output)
        tensor = model.outputs[at]
        names, has_blank = self._symbols.names, self._symbols.blank is not None
        symbols = tensor.shape[-1]
        if symbols != len(names):
            with_blank = " and the blank" if has_blank else ""
            raise UserError(
                f"{model.name}: output {tensor.name!r} {tensor.shape} has {symbols} values a step, "
                f"but vocabulary has {len(names) - has_blank} symbols{with_blank}: give "
                f"{symbols - has_blank} symbols, in the order of the outputs"
            )
        return TranscriptDecoder(model.outputs, at, self._symbols, self._meaning(model, at))

    def require_pair(
        self, original: Decoder | None, compressed: Decoder, classes: Sequence[str]
    ) -> None:
        """Refuse names of classes, and two models whose outputs have other numbers of steps."""
        super().require_pair(original, compressed, classes)
        if original is None:
            return
        steps = [_steps(decoder.tensor) for decoder in (original, compressed)]
        if steps[0] != steps[1]:
            raise UserError(
                f"the original gives {steps[0]} steps and the compressed model {steps[1]}: they are"
                " no pair, or output names another output of each"
            )

    def model_warnings(self, name: str, answers: Sequence[Answer]) -> list[str]:
        """Return a line where a model reads one and the same text of at least 8 seeds."""
        texts = {
            answer.words
            for answer in answers
            if isinstance(answer, TranscriptAnswer) and answer.failure is None
        }
        if len(answers) < LEAST_SEEDS or len(texts) != 1:
            return []
        (words,) = texts
        said = f'"{self._symbols.text(words)}"' if words else "no word"
        return [
            f"{name} reads {said} in all {len(answers)} seeds: check vocabulary, blank and decoding"
            " under [task], and the preprocessing"
        ]

    def _meaning(self, model: ModelOutputs, at: int) -> Outputs:
        """Return what an output holds, by the answers to a sample of the seeds."""
        if self._outputs != "auto":
            return self._outputs
        sample = model.sample(_SEEDS_FOR_DETECTION)
        return meaning_on_sample(model, sample, at)


def _steps(tensor: Tensor) -> int:
    """Return the steps of an output, 0 where there are fewer than 2: the only long dimension."""
    steps = max(tensor.shape[:-1])
    return steps if steps > 1 else 0


def _require_vocabulary(vocabulary: Sequence[str], separator: str) -> None:
    """Refuse symbols that cannot be told apart, or that do not go with the separator."""
    if not vocabulary:
        raise UserError("vocabulary is empty: give the symbols in the order of the outputs")
    twice = next((token for token in vocabulary if vocabulary.count(token) > 1), None)
    if twice is not None:
        raise UserError(f"vocabulary has {twice!r} twice: give each symbol a name of its own")
    if "" in vocabulary:
        raise UserError(
            "vocabulary has an empty symbol: leave CTC's blank out, and give its position by blank"
        )
    if not separator:
        return
    inside = next((token for token in vocabulary if separator in token[1:]), None)
    if inside is not None and inside != separator:
        raise UserError(
            f"vocabulary has {inside!r}, but the separator {separator!r} may only begin a symbol: "
            "give another separator"
        )
    if not any(token.startswith(separator) for token in vocabulary):
        raise UserError(
            f"separator is {separator!r}, but no symbol is it or begins with it: add it to "
            'vocabulary, or write separator = "" where each symbol is a word'
        )
