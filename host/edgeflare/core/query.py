"""One input that a search wants evaluated, and on which arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edgeflare.core.arm import Arm
from edgeflare.core.input_space import Input
from edgeflare.core.outcome import Outcome

Repetition = Literal["same", "varied", "changed"]
"""An answer beside an earlier one to the same input: the same to the bit; other outputs, which
decide or fail alike; or another decision or failure."""


@dataclass(frozen=True, slots=True)
class Query:
    """One mutated input to be evaluated on some arms.

    Attributes:
        input: the mutated input.
        arms: which arms are asked; may be empty where kernel sets are named.
        kernels: further kernel sets of the twin that are asked, members of its ensemble.
        again: the input is one that was asked before, in a search the one just before, now on
            further arms: no query of its own.

    """

    input: Input
    arms: tuple[Arm, ...]
    kernels: tuple[str, ...] = ()
    again: bool = False


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

    def repeated(self, before: EvaluatedQuery) -> Repetition:
        """Compare what the device answers with what it answered before to the same input."""
        now, then = self.outcome[Arm.DEVICE], before.outcome[Arm.DEVICE]
        if now.differs(then) or now.failure != then.failure:
            return "changed"
        return "same" if self.raw[Arm.DEVICE] == before.raw[Arm.DEVICE] else "varied"
