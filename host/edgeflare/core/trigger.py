"""A triggering input, and how a search came to it."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.core.answer import Image
from edgeflare.core.goal import Kind
from edgeflare.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Trigger:
    """A triggering input, and how the search came to it.

    Attributes:
        image: the input, HWC uint8.
        kind: what makes it a finding.
        outcome: what the arms answered.
        operators: names of the mutation operators that lead from the seed to it, in order.

    """

    image: Image
    kind: Kind
    outcome: Outcome
    operators: tuple[str, ...]
