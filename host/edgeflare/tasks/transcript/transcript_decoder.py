"""The decoder of texts: greedy, one symbol for each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import NO_VALUES, Answer, Failure
from edgeflare.core.answer_view import TranscriptView
from edgeflare.core.task import Decoder, target_name
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.classification import least_probability
from edgeflare.tasks.output_values import output_values, row_fields, row_from_json, tensor_from_json
from edgeflare.tasks.transcript.text_lattice import TextLattice
from edgeflare.tasks.transcript.transcript_answer import TranscriptAnswer
from edgeflare.tasks.transcript.transcript_symbols import Spelling, TranscriptSymbols


class TranscriptDecoder(Decoder):
    """Reads texts."""

    choices = 0
    shows_seeds = True

    def __init__(
        self,
        outputs: tuple[Tensor, ...],
        at: int,
        symbols: TranscriptSymbols,
        meaning: Literal["logits", "probabilities"],
    ) -> None:
        """Make a decoder.

        Args:
            outputs: all tensors of a row.
            at: the position of the one that holds a value for each step and symbol.
            symbols: what its values of one step stand for.
            meaning: what it holds.

        """
        self.outputs, self.tensor, self.meaning = outputs, outputs[at], meaning
        self._at, self._symbols = at, symbols
        self._least = least_probability(self.tensor)

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the text of each row."""
        _, real, failures = output_values(batch, self.outputs, self._at)
        steps = real.reshape(len(real), -1, len(self._symbols.names))
        for at, one in enumerate(steps):
            yield self._answer(one, failures.get(at))

    def target(self, target: NDArray[np.generic]) -> TranscriptAnswer:
        """Return the text of a target, a string."""
        if target.dtype.kind != "U" or target.size != 1:
            raise UserError(f"{target_name(target)}, expected a text for each seed")
        return TranscriptAnswer(
            0,
            False,
            NO_VALUES,
            NO_VALUES,
            outputs=np.zeros((1, len(self._symbols.names)), np.float32),
            spelling=(),
            words=self._symbols.words_of(str(target.item())),
            symbols=self._symbols,
        )

    def views(
        self,
        answers: Mapping[str, Answer],
        compared: tuple[str, str],  # noqa: ARG002 - reports mark the words that differ
    ) -> tuple[TranscriptView, ...]:
        """Return the words of each arm."""
        words = {
            arm: None if one.failure else one.words
            for arm, one in answers.items()
            if isinstance(one, TranscriptAnswer)
        }
        return (TranscriptView("", self._symbols.shown_separator, words),)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the text in quotes."""
        if not isinstance(answer, TranscriptAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        return f'"{self._symbols.text(answer.words)}"'

    def to_json(self) -> dict[str, Any]:
        """Return the tensors, and how texts are read from them."""
        return {
            "tensor": asdict(self.tensor),
            "at": self._at,
            "symbols": self._symbols.to_json(),
            "outputs": self.meaning,
            **row_fields(self.outputs),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> TranscriptDecoder:
        """Return the decoder that `to_json` described."""
        return cls(
            row_from_json(fields) or (tensor_from_json(fields["tensor"]),),
            fields["at"],
            TranscriptSymbols.from_json(fields["symbols"]),
            fields["outputs"],
        )

    def _answer(self, real: NDArray[np.float64], failure: Failure | None) -> TranscriptAnswer:
        """Return the text of one row, (steps, symbols)."""
        spelling = self._symbols.spelling(real.argmax(axis=1)) if failure is None else ()
        values = real
        if self.meaning == "probabilities" and failure is None:
            values = np.log(np.maximum(real, self._least))
        return TranscriptAnswer(
            None if failure else 0,
            failure is None and self._is_tied(real, spelling),
            NO_VALUES,
            NO_VALUES,
            failure,
            outputs=values.astype(np.float32),
            spelling=spelling,
            words=self._symbols.words(spelling),
            symbols=self._symbols,
        )

    def _is_tied(self, real: NDArray[np.float64], spelling: Spelling) -> bool:
        """Whether another choice among equal outputs would give another text."""
        largest = real.max(axis=1, keepdims=True)
        if ((real == largest).sum(axis=1) == 1).all():
            return False
        lattice = TextLattice(self._symbols.written(spelling), self._symbols)
        return lattice.need_of_another(largest - real) == 0.0
