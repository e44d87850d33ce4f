"""A triggering input, and how a search came to it."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.core.goal import Kind
from edgeflare.core.input_space import Input
from edgeflare.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Trigger:
    """A triggering input, and how the search came to it.

    Attributes:
        input: the triggering input.
        kind: what makes it a finding.
        outcome: what the arms answered.
        operators: names of the mutation operators that lead from the seed to it, in order.

    """

    input: Input
    kind: Kind
    outcome: Outcome
    operators: tuple[str, ...]
