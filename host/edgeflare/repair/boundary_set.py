"""The boundary set: inputs near the decision boundary, most of which do not deviate.

A repair learns from four sets of inputs: the run's triggers, their seeds, and two sets of inputs
near the boundary that are gathered here. Triggers lie on the boundary, so whatever moves inputs
across it repairs triggers. Only inputs that lie there too and do *not* deviate show whether a
repairer moves the right ones.

The third set is bisected: a search by boundary bisection evaluates such inputs on its way. It is
run `rounds` times from each seed of the run, each time with another generator, and every input with
a small margin is kept. The device answers in the twin's place, so each query asks the original and
the device.

Such a search is led to inputs that deviate. So the fourth set is sampled with the device's answers
alone (`cross_boundary`), in which deviations are as frequent as among test images of the same
margin. It shows what a repairer does to inputs that nobody searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.repair.boundary_crossing import cross_boundary
from edgeflare.repair.repair_samples import Samples
from edgeflare.repair.run_to_repair import RunInputs, RunToRepair
from edgeflare.search.boundary import Boundary
from edgeflare.search.operator_pool import image_operators
from edgeflare.search.strategy import AskTellSearch, SearchGenerator, Start

NEAR_MARGIN = 0.25
"""The largest margin of probabilities that counts as near. Triggers have .003 to .1."""

ROUNDS = 4
"""Searches of each of the two kinds from each seed: 100 to 220 queries a seed on five pairs."""

MOST_QUERIES = 200
"""Of one search; the mean is 24."""


BeginSearch = Callable[[Start], SearchGenerator]


def bisect_boundary(start: Start) -> SearchGenerator:
    """Search by boundary bisection, with its default parameters."""
    return Boundary().search(start)


@dataclass(frozen=True, slots=True)
class BoundarySet:
    """Inputs near the boundary.

    Attributes:
        bisected: those that boundary bisection evaluated, without a tie; some deviate.
        sampled: those that `cross_boundary` drew, ties of the device among them; some deviate.
        queries: number of inputs that original and device were asked about.

    """

    bisected: Samples
    sampled: Samples
    queries: int


def gather(
    run: RunToRepair, run_inputs: RunInputs, rounds: int, progress: Callable[[int, int], None]
) -> BoundarySet:
    """Gather inputs near the boundary, the same ones for the same run and device.

    Args:
        run: the run.
        run_inputs: its seeds and triggers.
        rounds: number of searches of each kind from each seed.
        progress: is called with the number of searches that have ended, and that of all.

    Raises:
        InfrastructureError: a device or a worker process is lost for good.

    """
    searches = [
        _Search(run, run_inputs, row, number, strategy)
        for number in range(rounds)
        for row in range(len(run_inputs.seeds))
        for strategy in (bisect_boundary, cross_boundary)
    ]
    total, queries = len(searches), 0
    ids = run_inputs.seeds.seed_ids.tolist()
    kept: dict[BeginSearch, list[tuple[int, EvaluatedQuery]]] = {
        bisect_boundary: [],
        cross_boundary: [],
    }
    progress(0, total)
    for _ in range(MOST_QUERIES):
        asked = [(search, image) for search in searches for image in search.asks()]
        if not asked:
            break
        answers = run.ask([image for _, image in asked], [ids[one.row] for one, _ in asked])
        for (search, _), evaluated in zip(asked, answers, strict=True):
            queries += 1
            search.tell(evaluated)
            if _is_near(evaluated.outcome, ties=search.strategy is cross_boundary):
                kept[search.strategy].append((search.row, evaluated))
        searches = [search for search in searches if not search.ended]
        progress(total - len(searches), total)
    progress(total, total)
    bisected, sampled = (
        _samples(run, run_inputs, kept[strategy]) for strategy in (bisect_boundary, cross_boundary)
    )
    return BoundarySet(bisected, sampled, queries)


def _samples(
    run: RunToRepair, run_inputs: RunInputs, kept: list[tuple[int, EvaluatedQuery]]
) -> Samples:
    rows = [row for row, _ in kept]
    seeds = run_inputs.seeds.take(np.array(rows, np.int64))
    return run.samples([one for _, one in kept], seeds.seed_ids, seeds.labels)


class _Search:
    """One search from one seed, in which the device also answers in its twin's place."""

    def __init__(
        self,
        run: RunToRepair,
        run_inputs: RunInputs,
        row: int,
        number: int,
        strategy: BeginSearch,
    ) -> None:
        self.row, self.strategy = row, strategy
        plan = run.past.about.plan
        seed_id = int(run_inputs.seeds.seed_ids[row])
        rng = np.random.default_rng([plan.rng_seed, number, seed_id, strategy is cross_boundary])
        outcome = _device_as_twin(run_inputs.seed_answers[row])
        start = Start(
            run_inputs.seed_images[row],
            outcome,
            Goal(),
            rng,
            plan.bounds,
            operators=image_operators(plan.operators),
        )
        self._search = AskTellSearch(strategy(start))

    @property
    def ended(self) -> bool:
        """Whether it asks nothing more."""
        return not self._search.ask()

    def asks(self) -> list[Image]:
        """Return the images to evaluate next."""
        return [query.image for query in self._search.ask()]

    def tell(self, evaluated: EvaluatedQuery) -> None:
        """Tell the answers, once more for each query that asks the device about the same image."""
        outcome = _device_as_twin(evaluated)
        self._search.tell([outcome])
        while any(query.again for query in self._search.ask()):
            self._search.tell([outcome])


def _device_as_twin(evaluated: EvaluatedQuery) -> Outcome:
    """Return an outcome in which the device's answer is also the twin's."""
    answers = evaluated.outcome.answers
    return Outcome({**answers, Arm.TWIN: answers[Arm.DEVICE]})


def _is_near(outcome: Outcome, *, ties: bool) -> bool:
    """Whether both arms answered, the device's margin is small, and ties are as wanted."""
    original, device = outcome[Arm.ORIGINAL], outcome[Arm.DEVICE]
    if original.label is None or device.label is None:
        return False
    if original.tied or (device.tied and not ties):
        return False
    two = np.partition(device.probabilities, -2)[-2:]
    return bool(two[1] - two[0] < NEAR_MARGIN)
