"""A loop that refines triggers of a search case, and holds what asking must keep to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from driving import SearchCase, linear_model
from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, GradientQuery, Outcome, Query, TranslatedQuery
from edgeflare.strategies.boundary import Boundary
from edgeflare.strategies.strategy import Start, WhiteboxGenerator

SIDE = 12
CLASSES = 4
_RNG = np.random.default_rng(7)
WEIGHTS = _RNG.normal(0.0, 1.0, (CLASSES, SIDE, SIDE))
for _axis in (1, 2):  # smooth, as what a network looks at is
    for _ in range(3):
        WEIGHTS += np.roll(WEIGHTS, 1, _axis) + np.roll(WEIGHTS, -1, _axis)
WEIGHTS = WEIGHTS.reshape(CLASSES, -1) / WEIGHTS.std()
SEEDS = list(_RNG.integers(256, size=(6, SIDE, SIDE, 1), dtype=np.uint8))

Refine = Callable[[Trigger, Start, int], WhiteboxGenerator[Trigger]]


@dataclass
class RefinedTrigger:
    """What became of a trigger, and what was asked for it."""

    before: Trigger
    after: Trigger
    queries: list[Query] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        return sum(not query.again for query in self.queries)

    @property
    def device_queries(self) -> int:
        return sum(Arm.DEVICE in query.arms for query in self.queries)


def bench(seed: Input = SEEDS[0]) -> SearchCase:
    """Smooth linear models; compression bends one a little and rounds it, and kernels a little."""
    bent = WEIGHTS + np.random.default_rng(1).normal(0.0, 0.02, WEIGHTS.shape)
    moved = bent + np.random.default_rng(2).normal(0.0, 0.02, WEIGHTS.shape)
    models = {
        Arm.ORIGINAL: linear_model(WEIGHTS),
        Arm.TWIN: linear_model(bent, 0.01),
        Arm.DEVICE: linear_model(moved, 0.01),
    }
    return SearchCase(seed, models)


def like_the_twin(of: SearchCase) -> SearchCase:
    """The same with a device on the twin's kernels."""
    return replace(of, models={**of.models, Arm.DEVICE: of.models[Arm.TWIN]})


def contradicted(of: SearchCase) -> SearchCase:
    """The same with a device that deviates on what a search finds, and nowhere else."""
    trusted = trigger_of(like_the_twin(of), Goal()).input.tobytes()
    original, twin = of.models[Arm.ORIGINAL], of.models[Arm.TWIN]

    def device(image: Input) -> NDArray[np.float64]:
        return (twin if image.tobytes() == trusted else original)(image)

    return replace(of, models={**of.models, Arm.DEVICE: device})


def trigger_of(of: SearchCase, goal: Goal) -> Trigger:
    """Search for a trigger, and ask everyone about it, as the engine does before it refines."""
    found = of.drive(Boundary().search, goal, 3, 3000).finding
    assert found is not None
    outcome = of.evaluate(found.input, tuple(of.models), tuple(of.members))
    return replace(found, outcome=outcome)


def refined(
    refine: Refine,
    of: SearchCase,
    goal: Goal,
    budget: int,
    rng_seed: int = 0,
    by: Goal | None = None,
) -> RefinedTrigger:
    """Refine a trigger that was found for a goal, maybe by a stricter one."""
    before = trigger_of(of, goal)
    refinement = refine(before, of.start(by or goal, rng_seed), budget)
    queries: list[Query] = []
    try:
        asked = next(refinement)
        while True:
            if isinstance(asked, (GradientQuery, TranslatedQuery)):
                asked = refinement.send(of.white_box(asked))
                continue
            assert asked
            for query in asked:
                known = {one.input.tobytes() for one in queries}
                assert not query.again or query.input.tobytes() in known
                assert of.bounds.holds(query.input, of.seed)
                queries.append(query)
            asked = refinement.send(
                [of.evaluate(query.input, query.arms, query.kernels) for query in asked]
            )
    except StopIteration as end:
        return RefinedTrigger(before, end.value, queries)


def everyone(of: SearchCase, image: Input) -> Outcome:
    return of.evaluate(image, tuple(of.models), tuple(of.members))


def distance(of: SearchCase, image: Input) -> float:
    return float(np.linalg.norm(image.astype(np.float64) - of.seed))
