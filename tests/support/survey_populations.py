"""Populations of a survey whose truth is known, for tests of estimators and gates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.items.survey_facts import Fact
from edgeflare.survey.sampling_design import SamplingDesign


@dataclass(frozen=True)
class Population:
    """Items with all that a device would say of them.

    Attributes:
        margin: (items,) of the twin.
        foretold: (items,) bool.
        truth: (items,) bool, what the device says.

    """

    margin: NDArray[np.float64]
    foretold: NDArray[np.bool_]
    truth: NDArray[np.bool_]

    @property
    def rate(self) -> float:
        """The true rate."""
        return float(self.truth.mean())

    @property
    def fact(self) -> Fact:
        """The fact with everything seen."""
        return Fact(self.foretold, self.truth)

    def design(self, rng: np.random.Generator) -> SamplingDesign:
        """Return a design that has drawn nothing yet."""
        return SamplingDesign(self.margin, self.foretold, np.zeros_like(self.foretold), rng)

    def asked(self, design: SamplingDesign, count: int) -> NDArray[np.bool_]:
        """Draw items in rounds and tell the design of them: (items,) bool, those drawn so far."""
        while design.left and len(design.draws.items) < count:
            self.ask(design, min(design.round_size, count - len(design.draws.items)))
        mask = np.zeros_like(self.truth)
        mask[design.draws.items] = True
        return mask

    def ask(self, design: SamplingDesign, count: int) -> None:
        """Draw one round, and tell the design of it."""
        items = design.draw(count)
        design.tell(items, (self.truth != self.foretold)[items])


MakePopulation = Callable[[float, int, np.random.Generator], Population]
"""From a rate, a number of items and a generator."""


def with_good_twin(rate: float, items: int, rng: np.random.Generator) -> Population:
    """Return a population in which deviations lie at small margins and are mostly foretold."""
    margin = rng.exponential(1.0, items)
    risk = np.exp(-8.0 * margin)
    truth = _chosen(items, rate, risk / risk.sum(), rng)
    return Population(margin, truth ^ (rng.random(items) < 0.3 * risk), truth)


def with_useless_twin(rate: float, items: int, rng: np.random.Generator) -> Population:
    """Return a population in which the margin says nothing, and nothing is foretold."""
    truth = _chosen(items, rate, None, rng)
    return Population(rng.random(items), np.zeros(items, dtype=bool), truth)


def _chosen(
    items: int, rate: float, weights: NDArray[np.float64] | None, rng: np.random.Generator
) -> NDArray[np.bool_]:
    truth = np.zeros(items, dtype=bool)
    truth[rng.choice(items, round(rate * items), replace=False, p=weights)] = True
    return truth
