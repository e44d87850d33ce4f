"""A task of another package: a lamp is on below a brightness, and off at or above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.output_choice import chosen_output
from edgeflare.tasks.output_values import output_values, row_fields, row_from_json, tensor_from_json


class LampDecoder(Decoder):
    """Reads the brightness; the margin and the strength are in its own units."""

    choices = 2
    meaning = "a brightness"
    names = ("on", "off")

    def __init__(self, outputs: tuple[Tensor, ...], at: int, dusk: float) -> None:
        """Take the position of the brightness in a row, and below what it is dark."""
        self.outputs, self.tensor = outputs, outputs[at]
        self._at, self._dusk = at, dusk

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield whether the lamp is on."""
        _, real, failures = output_values(batch, self.outputs, self._at)
        for at, lux in enumerate(real.reshape(-1).tolist()):
            light = lux - self._dusk
            scores = np.array([-light, light]) / 2
            shares = np.clip(0.5 + scores, 0.0, 1.0)
            why = failures.get(at)
            yield Answer(None if why else int(light >= 0.0), light == 0.0, shares, scores, why)

    def to_json(self) -> Mapping[str, Any]:
        """Return the brightness that counts, and the row."""
        fields = {"tensor": asdict(self.tensor), "at": self._at, "dusk": self._dusk}
        return {**fields, **row_fields(self.outputs)}


class NightLight(Task):
    """Whether a lamp is on."""

    name = "night-light"
    expects = "the brightness, (1, 1)"

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

    @classmethod
    def decoder_from_json(cls, fields: Mapping[str, Any]) -> LampDecoder:
        """Return the decoder that `to_json` described."""
        row = row_from_json(fields) or (tensor_from_json(fields["tensor"]),)
        return LampDecoder(row, fields["at"], fields["dusk"])

    def warnings(
        self, original: Sequence[Answer] | None, compressed: Sequence[Answer], _labels: Any
    ) -> list[str]:
        """Return a line where the lamp is never on."""
        dark = any(one.decision == 0 for one in (*(original or ()), *compressed))
        return [] if dark else ["it is never dark"]
