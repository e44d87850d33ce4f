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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

import numpy as np

from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome, Query
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.repair.shifts.repair_samples import Samples
from edgeflare.repair.shifts.run_to_repair import ARMS, RunInputs, RunToRepair
from edgeflare.strategies.boundary import Boundary
from edgeflare.strategies.operator_pool import domain_operators, mutated
from edgeflare.strategies.strategy import AskTellSearch, SearchGenerator, Start

NEAR_MARGIN = 0.25
"""The largest margin of probabilities that counts as near. Triggers have .003 to .1."""

ROUNDS = 4
"""Searches of each of the two kinds from each seed: 100 to 220 queries a seed on five pairs."""

MOST_QUERIES = 200
"""Queries of one search, at most; the mean is 24."""

MUTATIONS = (8, 16, 32, 64)
"""Mutations between two queries, as in boundary bisection."""

POINTS = 16
"""Points drawn on one segment; about half of them have a small margin."""

_BATCH = 64
"""Inputs in a batch."""

BeginSearch = Callable[[Start], SearchGenerator]


def bisect_boundary(start: Start) -> SearchGenerator:
    """Search by boundary bisection, with its default parameters."""
    return Boundary().search(start)


def cross_boundary(start: Start) -> SearchGenerator:
    """Query inputs around the place where mutants of the seed change the device's label.

    How many inputs near the boundary deviate depends on how they were found. A search for triggers
    also uses the original's answers, and finds many; among test images of the same margin there are
    few. So this search uses the device's answers alone: it mutates the seed until the device's
    label changes, and draws points at random on the segment between the last two images. The
    original is asked about each, but its answers decide nothing. For an int8 LeNet-4 on
    Fashion-MNIST, 53 % of the ties found in this way deviate, and 2 % of the inputs with margins up
    to .1; of its test images it is 57 % and 4 %. Of the inputs that boundary bisection finds, 18 %
    of the latter do.
    """
    operators, rng = start.operators, start.rng
    home = start.outcome[Arm.DEVICE]
    before = after = start.seed
    for times in MUTATIONS:
        before = after
        for _ in range(times):
            after = mutated(operators[int(rng.integers(len(operators)))], after, rng)
        after = start.bounds.project(after, start.seed)
        (outcome,) = yield (Query(after, ARMS),)
        if outcome[Arm.DEVICE].differs(home):
            break
    else:
        return None
    for position in rng.random(POINTS):
        first, last = start.space.levels(before), start.space.levels(after)
        image = start.space.dithered(first + position * (last - first), rng)
        yield (Query(start.bounds.project(image, start.seed), ARMS),)
    return None


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
    """Gather inputs near the boundary, the same for the same run, device and generator seed.

    All searches are told the answers to what they ask in turn, those of the same turn together.

    Args:
        run: the run.
        run_inputs: seeds and triggers of the run.
        rounds: number of searches of each kind from each seed.
        progress: is called with the number of searches that have ended, and that of all.

    """
    searches = [
        _NearSearch(run, run_inputs, row, number, strategy)
        for number in range(rounds)
        for row in range(len(run_inputs.seeds))
        for strategy in (bisect_boundary, cross_boundary)
    ]
    going = [search for search in searches if search.asked]
    while going:
        progress(len(searches) - len(going), len(searches))
        answers = _answers(
            run, [(search.seed_id, query) for search in going for query in search.asked]
        )
        for search in going:
            search.tell(list(islice(answers, len(search.asked))))
        going = [search for search in going if search.asked]
    progress(len(searches), len(searches))
    bisected, sampled = (
        _samples(run, run_inputs, [search for search in searches if search.strategy is strategy])
        for strategy in (bisect_boundary, cross_boundary)
    )
    return BoundarySet(bisected, sampled, sum(search.told for search in searches))


def _answers(run: RunToRepair, asked: Sequence[tuple[int, Query]]) -> Iterator[EvaluatedQuery]:
    """Yield what original and device answer to queries, each with the id of its seed."""
    parts = (asked[at : at + _BATCH] for at in range(0, len(asked), _BATCH))
    batches = (
        (None, [Query(query.input, ARMS) for _, query in part], [seed_id for seed_id, _ in part])
        for part in parts
    )
    for batch in run.opened.pipeline().stream(batches):
        yield from batch.evaluated


def _samples(run: RunToRepair, run_inputs: RunInputs, searches: Sequence[_NearSearch]) -> Samples:
    """Return what searches found near the boundary, what was asked first before the rest."""
    near = [(step, search.row, query) for search in searches for step, query in search.near]
    near.sort(key=itemgetter(0))  # of equal steps in the order of the searches
    seeds = run_inputs.seeds.take(np.array([row for _, row, _ in near], np.int64))
    return run.samples([query for _, _, query in near], seeds.seed_ids, seeds.labels)


class _NearSearch:
    """A search from a seed of a run, in which the device's answer is also the twin's.

    Attributes:
        row: position of the seed.
        seed_id: the seed's id.
        strategy: what begins the search.
        told: how many queries were answered.
        near: those of them that are near the boundary, each with its number within the search.

    """

    def __init__(
        self,
        run: RunToRepair,
        run_inputs: RunInputs,
        row: int,
        repetition: int,
        strategy: BeginSearch,
    ) -> None:
        self.row, self.strategy = row, strategy
        self.seed_id = int(run_inputs.seeds.seed_ids[row])
        self.told = 0
        self.near: list[tuple[int, EvaluatedQuery]] = []
        plan = run.past.header.plan
        start = Start(
            run_inputs.seed_images[row],
            _device_as_twin(run_inputs.seed_answers[row].outcome),
            Goal(),
            rng=np.random.default_rng(
                [run.rng_seed, repetition, self.seed_id, strategy is cross_boundary]
            ),
            bounds=plan.bounds(ImageDomain.space),
            operators=domain_operators(ImageDomain.name, plan.operators),
        )
        self._search = AskTellSearch(strategy(start))
        self._outcomes: dict[bytes, Outcome] = {}

    @property
    def asked(self) -> Sequence[Query]:
        """What the search asks; nothing where it has ended, or has asked enough."""
        return self._search.ask() if self.told < MOST_QUERIES else ()

    def tell(self, answers: Sequence[EvaluatedQuery]) -> None:
        """Tell the answers, once more where the device is queried about an image again."""
        for answered in answers:
            self.told += 1
            if _is_near(answered.outcome, ties=self.strategy is cross_boundary):
                self.near.append((self.told, answered))
        outcomes = [_device_as_twin(answered.outcome) for answered in answers]
        for query, outcome in zip(self._search.ask(), outcomes, strict=True):
            self._outcomes[query.input.tobytes()] = outcome
        self._search.tell(outcomes)
        while any(query.again for query in self._search.ask()):
            again = [self._outcomes[query.input.tobytes()] for query in self._search.ask()]
            self._search.tell(again)


def _device_as_twin(outcome: Outcome) -> Outcome:
    """Return an outcome in which the device's answer is also the twin's."""
    answers = outcome.answers
    return Outcome({**answers, Arm.TWIN: answers[Arm.DEVICE]})


def _is_near(outcome: Outcome, *, ties: bool) -> bool:
    """Whether both arms answered, the device's margin is small, and ties are as wanted."""
    original, device = outcome[Arm.ORIGINAL], outcome[Arm.DEVICE]
    if original.decision is None or device.decision is None:
        return False
    if original.tied or (device.tied and not ties):
        return False
    two = np.partition(device.probabilities, -2)[-2:]
    return bool(two[1] - two[0] < NEAR_MARGIN)
