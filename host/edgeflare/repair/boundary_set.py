"""The third set and the fourth: inputs near the decision boundary, most of which do not deviate.

Triggers lie on the boundary, so whatever moves inputs across it repairs triggers; only inputs that
lie there too and do *not* deviate tell whether it does so for a reason. A search by boundary
bisection passes them on its way. It is told on from each seed of the run, in several rounds with
generators of their own, and every look with a small margin is kept. The device answers in the
twin's place, so each look asks the original and the device.

How many of such inputs deviate depends on how they were come by: a search for triggers is led
there. So a fourth set is gathered by searches that the original does not lead (`cross_boundary`),
in
which they are as many as among test images of the same margin: what a repairer does to inputs as
they come.
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
from edgeflare.repair.run_to_repair import KnownInputs, RunToRepair
from edgeflare.search.boundary import boundary
from edgeflare.search.strategy import GeneratorStrategy, Start, StrategyFunction

NEAR = 0.25
"""The largest margin of probabilities that is near. Triggers have .003 to .1."""

ROUNDS = 4
"""Told on so often from each seed, in both ways: 100 to 220 looks on five pairs."""

MOST_LOOKS = 200
"""In one round from one seed; on the mean a search takes 24."""


@dataclass(frozen=True, slots=True)
class BoundarySet:
    """Inputs near the boundary.

    Attributes:
        led: those that boundary bisection came by, without a tie; some deviate.
        unled: those that `cross_boundary` came by, ties of the device among them; some deviate.
        queries: inputs that were looked at, each by original and device.

    """

    led: Samples
    unled: Samples
    queries: int


def gather(
    subject: RunToRepair, known: KnownInputs, rounds: int, tell: Callable[[int, int], None]
) -> BoundarySet:
    """Gather inputs near the boundary, the same ones for the same run and device.

    Args:
        subject: the run.
        known: its seeds.
        rounds: how often to search from each seed, in both ways.
        tell: is told how many of the searches have ended, and how many there are.

    Raises:
        InfrastructureError: a device or a worker process is lost for good.

    """
    searches = [
        _Search(subject, known, row, number, tale)
        for number in range(rounds)
        for row in range(len(known.seeds))
        for tale in (boundary, cross_boundary)
    ]
    total, queries = len(searches), 0
    ids = known.seeds.seed_ids.tolist()
    kept: dict[StrategyFunction, list[tuple[int, EvaluatedQuery]]] = {
        boundary: [],
        cross_boundary: [],
    }
    tell(0, total)
    for _ in range(MOST_LOOKS):
        asked = [(search, image) for search in searches for image in search.asks()]
        if not asked:
            break
        answers = subject.ask([image for _, image in asked], [ids[one.row] for one, _ in asked])
        for (search, _), evaluated in zip(asked, answers, strict=True):
            queries += 1
            search.tell(evaluated)
            if _is_near(evaluated.outcome, ties=search.tale is cross_boundary):
                kept[search.tale].append((search.row, evaluated))
        searches = [search for search in searches if not search.ended]
        tell(total - len(searches), total)
    tell(total, total)
    led, unled = (_samples(subject, known, kept[tale]) for tale in (boundary, cross_boundary))
    return BoundarySet(led, unled, queries)


def _samples(
    subject: RunToRepair, known: KnownInputs, kept: list[tuple[int, EvaluatedQuery]]
) -> Samples:
    rows = [row for row, _ in kept]
    seeds = known.seeds.take(np.array(rows, np.int64))
    return subject.samples([one for _, one in kept], seeds.seed_ids, seeds.labels)


class _Search:
    """One search, in which the device answers in its twin's place too, input after input."""

    def __init__(
        self,
        subject: RunToRepair,
        known: KnownInputs,
        row: int,
        number: int,
        tale: StrategyFunction,
    ) -> None:
        self.row, self.tale = row, tale
        plan = subject.past.about.plan
        seed_id = int(known.seeds.seed_ids[row])
        rng = np.random.default_rng([plan.rng_seed, number, seed_id, tale is cross_boundary])
        outcome = _as_asked(known.seed_answers[row])
        start = Start(known.seed_images[row], outcome, Goal(), rng, plan.bounds)
        self._told = GeneratorStrategy(tale(start))

    @property
    def ended(self) -> bool:
        """Whether it asks nothing more."""
        return not self._told.ask()

    def asks(self) -> list[Image]:
        """Return what is to be looked at next."""
        return [query.image for query in self._told.ask()]

    def tell(self, evaluated: EvaluatedQuery) -> None:
        """Tell what was answered, and again where the device is asked about that very input."""
        outcome = _as_asked(evaluated)
        self._told.tell([outcome])
        while any(query.again for query in self._told.ask()):
            self._told.tell([outcome])


def _as_asked(evaluated: EvaluatedQuery) -> Outcome:
    """Return an outcome in which the device is its own twin."""
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
    return bool(two[1] - two[0] < NEAR)
