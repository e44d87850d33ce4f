"""What a conformance run was asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from edgeflare.conform.drafts.cells import Cell
from edgeflare.record.json_types import Amount, Count, CountFromOne, plain_json
from edgeflare.record.request import Option

DrawingName = Literal["uniform", "memo"]
"""How models are drawn: evenly over operators and types, or by MEMO's loop."""


_FEW: Final = 6
"""Operators that are named."""


def _cells_in_words(cells: Sequence[Cell]) -> str:
    operators = list(dict.fromkeys(operator for operator, _ in cells))
    named = ",".join(operators) if len(operators) <= _FEW else f"of {len(operators)} operators"
    return f"{named} --dtype {','.join(dict.fromkeys(type_ for _, type_ in cells))}"


def _seconds_in_words(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.12g}s"  # no powers of ten: nobody types them


def _model_in_words(sha256: str | None) -> str | None:
    return None if sha256 is None else f"a model with the sha256 {sha256[:12]}…"


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

    cells: Annotated[tuple[Cell, ...], Option("--ops", _cells_in_words)]
    drawing: Annotated[DrawingName, Option("--draw")]
    pairs: bool
    models: CountFromOne | None
    seconds: Annotated[Amount | None, Option("--time-limit", _seconds_in_words, more="longer")]
    rng_seed: Count
    model: Annotated[str | None, Option("--from", _model_in_words)] = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        fields: dict[str, Any] = plain_json(self)
        return fields
