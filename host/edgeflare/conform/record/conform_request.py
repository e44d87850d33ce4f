"""What a conformance run was asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from edgeflare.conform.drafts.cells import Cell
from edgeflare.record.json_types import Amount, Count, CountFromOne

DrawingName = Literal["uniform", "memo"]
"""How models are drawn: evenly over operators and types, or by MEMO's loop."""


@dataclass(frozen=True, slots=True)
class ConformRequest:
    """What was asked.

    Attributes:
        cells: operators and types to try.
        drawing: how models are drawn.
        pairs: whether ordered pairs of operators are tried too.
        models: how many to draw; None where the time alone ends it.
        seconds: how long it may take, shrinking included; None where the count alone ends it.
        rng_seed: of all that is drawn.
        model: sha256 of the model whose operators come first; None for none.

    """

    cells: tuple[Cell, ...]
    drawing: DrawingName
    pairs: bool
    models: CountFromOne | None
    seconds: Amount | None
    rng_seed: Count
    model: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "cells": [list(cell) for cell in self.cells],
            "drawing": self.drawing,
            "pairs": self.pairs,
            "models": self.models,
            "seconds": self.seconds,
            "rng_seed": self.rng_seed,
            "model": self.model,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ConformRequest:
        """Return the request that `to_json` wrote.

        Raises:
            ValueError: a value is of another type, or missing; names it.

        """
        return msgspec.convert(values, cls)
