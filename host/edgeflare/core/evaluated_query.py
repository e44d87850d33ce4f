"""What the arms answered about one query, decoded and raw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class EvaluatedQuery:
    """The answers about one query.

    Attributes:
        outcome: what a strategy reads.
        raw: rows of raw outputs as a run keeps them (`kept_row`), by arm, or by kernel set for
            members of the twin's ensemble.
        seconds: this query's share of the evaluation time that its own arms and device spent.

    """

    outcome: Outcome
    raw: Mapping[Arm | str, bytes]
    seconds: float
