"""DeepXplore: gradients that part two models and wake a neuron, under a constraint. A baseline.

Both models decide alike about the seed. Gradient ascent then lowers the score of that class in one
model and keeps it in the other, and raises a neuron of each that the seed does not cover. Each step
is normalized, and constrained to changes that could be real: of the light, of one rectangle, or of
small dark spots. The first deviation ends it.

Paper: Pei, Cao, Yang, Jana: "DeepXplore: Automated Whitebox Testing of Deep Learning Systems", SOSP
2017, Algorithm 1 and sections 4.2 and 6.2. Code: https://github.com/peikexin9/deepxplore
(`MNIST/gen_diff.py`, `MNIST/utils.py`).

Differences from the original
    - Two models, original and twin; the original has three or more.
    - Values are clipped to what inputs may have after each step, and every input is rounded before
      it is judged, and before the next gradient. The published code keeps real numbers beyond 0 and
      255, judges these, and clips only what it saves.
    - Uncovered is what the seed itself does not cover. The published code leaves out what all
      inputs so far covered that made a difference; here a chain knows of no other.
    - Only strict deviations end it, unless ties count, and the arms confirm them.
    - A step is in levels. The published code's images of digits lie between 0 and 1, and a step of
      10, as in the paper, leaves that range at once.
    - `none` constrains nothing. The published code always does.
    - Neurons of an 8-bit twin have real values; no gradient sees them being rounded.
    - Every draw comes from the chain's generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, GradientQuery, TranslatedOutcome
from edgeflare.errors import UserError
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy, WhiteboxGenerator
from edgeflare.strategies.strategy_parameters import parameter
from edgeflare.strategies.surrogate import confirmed, translated

_LEAST_RMS = 1e-5
"""What the published code adds to the root mean square, so that a gradient of 0 stays 0."""

CONSTRAINTS = ("light", "occl", "blackout", "none")

TARGETS = (Arm.ORIGINAL.value, Arm.TWIN.value)


@dataclass(frozen=True)
class DeepXplore(Strategy):
    """Constrained gradient ascent that parts the two models and covers neurons."""

    summary = "DeepXplore's constrained gradient ascent, a baseline (extra whitebox)"
    draws_from_pool = False
    needs_choices = True
    needs_gradients = True
    reads_other_seeds = frozenset()

    constraint: str = parameter(
        "occl",
        "What a step may change: light (all values alike), occl (one rectangle, fixed), blackout"
        " (one rectangle, drawn anew for each step, which only grows darker) or none. The published"
        " code has no default; of its three this finds most on an int8 LeNet-5.",
    )
    target: str = parameter(
        TARGETS[0],
        "The model whose score of the seed's class is lowered, original or twin. The published"
        " code's is its first; and with the twin fewer are found on an int8 LeNet-5.",
    )
    lambda1: float = parameter(
        1.0, "Weight of that score, against the other model's. The paper's for MNIST.", at_least=0.0
    )
    lambda2: float = parameter(
        0.1,
        "Weight of the neurons to cover, against the scores; 0 asks for none. The paper's for"
        " MNIST.",
        at_least=0.0,
    )
    threshold: float = parameter(
        0.0,
        "What the mean of a neuron has to exceed to be covered, its layer scaled to 0 … 1. The"
        " paper's for generating inputs.",
        at_least=0.0,
        at_most=1.0,
    )
    step: float = parameter(
        10.0, "Levels of a step where the normalized gradient is 1. The paper's s.", above=0.0
    )
    iterations: int = parameter(
        50, "Steps from one seed. The published code takes it as an argument.", at_least=1
    )
    light_factor: float = parameter(
        1.0,
        "What a step of light is multiplied by. The published code has 1 for digits and 10,000 for"
        " ImageNet, where the mean of a gradient is that much smaller.",
        above=0.0,
    )
    occl_top: int = parameter(0, "First row of the rectangle of occl.", at_least=0)
    occl_left: int = parameter(0, "First column of the rectangle of occl.", at_least=0)
    occl_height: int = parameter(10, "Rows of that; published: 10 for digits.", at_least=1)
    occl_width: int = parameter(10, "Columns of that; published: 10 for digits.", at_least=1)
    blackout_height: int = parameter(6, "Rows of a spot; published: 6 for digits.", at_least=1)
    blackout_width: int = parameter(6, "Columns of a spot; published: 6 for digits.", at_least=1)

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            UserError: one is not of its type or bounds, or the constraint or target is unknown.

        """
        super().__post_init__()
        for name, known in (("constraint", CONSTRAINTS), ("target", TARGETS)):
            if (given := getattr(self, name)) not in known:
                raise UserError(f"parameter {name}={given}: expected one of {', '.join(known)}")

    @property
    def needs_neurons(self) -> bool:
        """Whether neurons have a weight."""
        return self.lambda2 > 0.0

    def require(self, seed: Input) -> None:
        """Refuse a rectangle of `occl` of which nothing lies within an input."""
        rows, columns = (*seed.shape, 1)[:2]
        beyond = self.occl_top >= rows or (seed.ndim > 1 and self.occl_left >= columns)
        if self.constraint == "occl" and beyond:
            raise UserError(
                f"parameters occl_top={self.occl_top} and occl_left={self.occl_left}: the rectangle"
                f" lies outside of inputs of {' × '.join(map(str, seed.shape))}; take smaller ones"
            )

    def search(self, start: Start) -> SearchGenerator:
        """Search by gradient ascent.

        Raises:
            UserError: the rectangle of `occl` lies outside of the inputs.

        """
        space, one = start.space, start.seed
        self.require(one)
        origin, (low, high) = space.levels(one), space.limits(one)
        told = yield from translated(one, self.threshold if self.lambda2 else None)
        label = told.outcome[Arm.ORIGINAL].decision or 0
        neurons = self._uncovered(told, start.rng)
        real = origin
        for _ in range(self.iterations):
            gradient = yield from self._gradient(one, told, label, neurons)
            step = self._constrained(normalized(gradient), start.rng)
            real = np.clip(real + self.step * step, origin + low, origin + high)
            nearest = space.nearest(real)
            one = start.bounds.project(nearest, start.seed)
            if one is not nearest:
                real = space.levels(one)
            told = yield from translated(one)
            trigger = yield from confirmed(start, one, told, f"deepxplore-{self.constraint}")
            if trigger is not None:
                return trigger
        return None

    def _uncovered(self, told: TranslatedOutcome, rng: np.random.Generator) -> dict[Arm, int]:
        """Draw a neuron of each model that the seed does not cover; any where it covers all."""
        drawn = {}
        for arm, covered in told.covered.items():
            left = np.flatnonzero(~covered)
            drawn[arm] = int(rng.choice(left if len(left) else len(covered)))
        return drawn

    def _gradient(
        self, input_: Input, told: TranslatedOutcome, label: int, neurons: dict[Arm, int]
    ) -> WhiteboxGenerator[Real]:
        """Return the gradient of the joint objective (Equation 3 of the paper)."""
        total = np.zeros(input_.shape)
        for arm in (Arm.ORIGINAL, Arm.TWIN):
            weights = np.zeros(len(told.scores[arm]))
            weights[label] = -self.lambda1 if arm.value == self.target else 1.0
            wanted = {neurons[arm]: self.lambda2} if arm in neurons else {}
            gradient: Real = yield GradientQuery(input_, arm, weights, wanted)
            total += gradient
        return total

    def _constrained(self, gradient: Real, rng: np.random.Generator) -> Real:
        """Return the step that the constraint makes of a normalized gradient."""
        if self.constraint == "light":
            return self.light_factor * lighting(gradient)
        if self.constraint == "occl":
            place = self.occl_top, self.occl_left, self.occl_height, self.occl_width
            return occlusion(gradient, Rectangle(*place))
        if self.constraint == "blackout":
            sides = self.blackout_height, self.blackout_width
            return blackout(gradient, random_rectangle(gradient.shape, *sides, rng))
        return gradient


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle of the first two axes of an input, all channels included.

    Of an input with one axis it is a stretch: the rows alone count.

    Attributes:
        top: index of the first row.
        left: index of the first column.
        height: rows, at least 1.
        width: columns, at least 1.

    """

    top: int
    left: int
    height: int
    width: int

    def of(self, values: Real) -> tuple[slice, ...]:
        """Return the index of its part of an array; what lies beyond the array is cut off."""
        sides = (
            slice(self.top, self.top + self.height),
            slice(self.left, self.left + self.width),
        )
        return sides[: values.ndim]


def normalized(gradient: Real) -> Real:
    """Return a gradient over its root mean square."""
    return gradient / (float(np.sqrt(np.square(gradient).mean())) + _LEAST_RMS)


def lighting(gradient: Real) -> Real:
    """Return a change of all values alike, by the gradient's mean: lighter or darker."""
    return np.full_like(gradient, gradient.mean())


def occlusion(gradient: Real, rectangle: Rectangle) -> Real:
    """Return the gradient within a rectangle and 0 outside: anything may cover that part."""
    step = np.zeros_like(gradient)
    part = rectangle.of(gradient)
    step[part] = gradient[part]
    return step


def blackout(gradient: Real, rectangle: Rectangle) -> Real:
    """Return -1 within a rectangle whose mean gradient is below 0, and 0 elsewhere: dirt."""
    step = np.zeros_like(gradient)
    part = rectangle.of(gradient)
    if gradient[part].mean() < 0.0:
        step[part] = -1.0
    return step


def random_rectangle(
    shape: tuple[int, ...], height: int, width: int, rng: np.random.Generator
) -> Rectangle:
    """Return a rectangle anywhere within inputs of a shape, each place as likely.

    One that is higher or wider than the inputs begins at their edge.
    """
    rows, columns = (*shape, 1)[:2]
    top = int(rng.integers(max(rows - height, 0) + 1))
    left = int(rng.integers(max(columns - width, 0) + 1))
    return Rectangle(top, left, height, width)
