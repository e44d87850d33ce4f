"""A task of another package: a lamp is on below a brightness, and off at or above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.output_choice import chosen_output
from edgeflare.tasks.output_values import output_values


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
