"""One input that a search wants evaluated, and on which arms."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.core.arm import Arm
from edgeflare.core.input import Input


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
