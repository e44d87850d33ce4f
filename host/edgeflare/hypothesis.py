"""Hypotheses of `edgeflare inspect`: what may foretell, or be foretold by, what hidden units do.

A hypothesis is a function of one inspected input that returns a number or a bool. A user's file has

    from edgeflare.hypothesis import hypothesis

    @hypothesis("dark left half")
    def dark_left_half(one):
        return one.input[:, : one.input.shape[1] // 2].mean() < 60
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class InspectedInput:
    """One input, and what the two models said to it.

    Attributes:
        input: as its domain has it: an image is (H, W, C) uint8.
        original: (classes,) float64, the original's scores.
        compressed: (classes,) float64, those of the compressed model.
        original_label: the original's decision.
        compressed_label: decision of the compressed model.
        deviates: whether the decisions differ strictly: not by a tie of equal best outputs.

    """

    input: NDArray[np.generic]
    original: NDArray[np.float64]
    compressed: NDArray[np.float64]
    original_label: int
    compressed_label: int
    deviates: bool


HypothesisFunction = Callable[[InspectedInput], "float | bool"]


@dataclass(frozen=True, slots=True)
class UnitHypothesis:
    """A named function of one input, that the behaviours of hidden units are held against.

    Attributes:
        name: as it is shown.
        function: returns a finite number or a bool.
        built_in: whether it is ours.

    """

    name: str
    function: HypothesisFunction
    built_in: bool = False

    def __call__(self, inspected: InspectedInput) -> float | bool:
        """Return what it is on one input, as the function does."""
        return self.function(inspected)


def hypothesis(name: str) -> Callable[[HypothesisFunction], UnitHypothesis]:
    """Declare a function to be a hypothesis.

    Args:
        name: as it is shown; no other one in use may have it.

    """

    def declared(function: HypothesisFunction) -> UnitHypothesis:
        return UnitHypothesis(name, function)

    return declared
