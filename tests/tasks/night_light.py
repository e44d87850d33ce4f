"""A task of another package: a lamp is on below a brightness, and off at or above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.pages.answers.answer_form import ARMS, AnsweredInput, AnswerForm, AnswerWords, Cell
from edgeflare.pages.answers.answer_forms import PageBlocks
from edgeflare.pages.page import Facts
from edgeflare.tasks.output_choice import chosen_output, output_values


class LampView(AnswerForm, frozen=True, tag_field="form", tag="lamp"):
    """The light that each arm sees, with that below 0 at which the lamp is on."""

    task: ClassVar[str] = "night-light"
    spoken: ClassVar[AnswerWords] = AnswerWords(
        strength="the light between the two sides", decision="Lamp"
    )
    csv_columns: ClassVar[tuple[str, ...]] = tuple(f"{arm}_light" for arm in ARMS)

    light: Mapping[str, float]

    def decision(self, arm: str) -> str:
        """Return whether the lamp is on."""
        return "on" if self.light[arm] < 0.0 else "off"

    def csv_cells(self) -> Mapping[str, Cell]:
        """Return the light of each arm."""
        return {f"{arm}_light": light for arm, light in self.light.items()}

    def block(self, shown: AnsweredInput) -> PageBlocks:  # noqa: ARG002
        """Return the light of each arm as names and values."""
        rows = tuple((arm, f"{light:+.3f}") for arm, light in self.light.items())
        return PageBlocks(self.head, (Facts("light beyond dusk", rows),))


@dataclass(frozen=True)
class LampDecoder(Decoder):
    """Reads the brightness; the margin and the strength are in its own units."""

    choices = 2
    meaning = "a brightness"
    names = ("on", "off")

    outputs: tuple[Tensor, ...]
    at: int
    dusk: float

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield whether the lamp is on."""
        _, real, failures = output_values(batch, self.outputs, self.at)
        for at, lux in enumerate(real.reshape(-1).tolist()):
            light = lux - self.dusk
            scores = np.array([-light, light]) / 2
            shares = np.clip(0.5 + scores, 0.0, 1.0)
            why = failures.get(at)
            yield Answer(None if why else int(light >= 0.0), light == 0.0, shares, scores, why)

    def views(self, answers: Mapping[str, Answer], _compared: tuple[str, str]) -> tuple[LampView]:
        """Return the light of each arm that answered."""
        known = {arm: one for arm, one in answers.items() if one.failure is None}
        return (LampView("", {arm: 2 * float(one.scores[1]) for arm, one in known.items()}),)


class NightLight(Task):
    """Whether a lamp is on."""

    name = "night-light"
    expects = "the brightness, (1, 1)"
    decoders = (LampDecoder,)

    def __init__(self, *, dusk: float = 1.0) -> None:
        """Take the brightness at which it is no longer dark."""
        if dusk <= 0.0:
            raise UserError(f"dusk is {dusk}; expected a brightness above 0")
        self._dusk = dusk

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output is one number."""
        return tensor.shape == (1, 1)

    def decoder(self, model: ModelOutputs) -> LampDecoder:
        """Return the decoder of the brightness."""
        return LampDecoder(model.outputs, chosen_output(NightLight, model), self._dusk)

    def warnings(
        self, original: Sequence[Answer] | None, compressed: Sequence[Answer], _labels: Any
    ) -> list[str]:
        """Return a line where the lamp is never on."""
        dark = any(one.decision == 0 for one in (*(original or ()), *compressed))
        return [] if dark else ["it is never dark"]
