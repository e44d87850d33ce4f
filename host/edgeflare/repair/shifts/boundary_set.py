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

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.campaign.chain import Chain
from edgeflare.campaign.scheduler import ChainAnswer, ChainRecord, Lane, run_chains
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

    Args:
        run: the run.
        run_inputs: seeds and triggers of the run.
        rounds: number of searches of each kind from each seed.
        progress: is called with the number of searches that have ended, and that of all.

    """
    gathering = _Gathering(run, run_inputs, rounds, progress)
    gathering.report()
    lane = Lane(run.opened.pipeline(), deque(range(gathering.total)))
    run_chains(
        gathering,
        gathering,
        [lane],
        most_open=gathering.total,
        batch_size=lambda _seconds: _BATCH,
    )
    progress(gathering.total, gathering.total)
    bisected, sampled = (
        _samples(run, run_inputs, gathering.near(strategy))
        for strategy in (bisect_boundary, cross_boundary)
    )
    return BoundarySet(bisected, sampled, gathering.queries)


def _samples(
    run: RunToRepair, run_inputs: RunInputs, kept: list[tuple[int, EvaluatedQuery]]
) -> Samples:
    rows = [row for row, _ in kept]
    seeds = run_inputs.seeds.take(np.array(rows, np.int64))
    return run.samples([query for _, query in kept], seeds.seed_ids, seeds.labels)


@dataclass(frozen=True, slots=True)
class _Near:
    """An input near the boundary, with its step within its search and the search's number.

    Sorted by these two, the inputs do not depend on which search was answered first.
    """

    step: int
    search: int
    row: int
    evaluated: EvaluatedQuery


class _Gathering(ChainRecord):
    """The searches as chains, and the inputs near the boundary that they evaluate."""

    def __init__(
        self,
        run: RunToRepair,
        run_inputs: RunInputs,
        rounds: int,
        progress: Callable[[int, int], None],
    ) -> None:
        self._run, self._run_inputs, self._progress = run, run_inputs, progress
        self._searches: list[tuple[int, int, BeginSearch]] = [
            (number, row, strategy)
            for number in range(rounds)
            for row in range(len(run_inputs.seeds))
            for strategy in (bisect_boundary, cross_boundary)
        ]
        self._numbers: dict[int, int] = {}
        self._near: dict[BeginSearch, list[_Near]] = {bisect_boundary: [], cross_boundary: []}
        self._ended = 0
        self.queries = 0

    @property
    def total(self) -> int:
        """Number of searches."""
        return len(self._searches)

    def near(self, strategy: BeginSearch) -> list[tuple[int, EvaluatedQuery]]:
        """Return the inputs near the boundary of one strategy, each with the row of its seed."""
        ordered = sorted(self._near[strategy], key=lambda near: (near.step, near.search))
        return [(near.row, near.evaluated) for near in ordered]

    def open(self, number: int) -> Chain:
        """Return a new search."""
        run, run_inputs = self._run, self._run_inputs
        repetition, row, strategy = self._searches[number]
        plan = run.past.header.plan
        seed_id = int(run_inputs.seeds.seed_ids[row])
        start = Start(
            run_inputs.seed_images[row],
            _device_as_twin(run_inputs.seed_answers[row].outcome),
            Goal(),
            rng=np.random.default_rng(
                [run.rng_seed, repetition, seed_id, strategy is cross_boundary]
            ),
            bounds=plan.bounds(ImageDomain.space),
            operators=domain_operators(ImageDomain.name, plan.operators),
        )
        chain = Chain(seed_id, _DeviceAsTwin(strategy(start)), start.goal)
        self._numbers[id(chain)] = number
        return chain

    def keep_or_end(self, chain: Chain) -> bool:
        """Return whether a search goes on: it has queries left, and is within its budget."""
        if chain.strategy.ask() and chain.steps < MOST_QUERIES:
            return True
        self._ended += 1
        return False

    def stopped(self) -> bool:
        """Go on until all have ended."""
        return False

    def add_time(self, device_busy_seconds: float) -> None:
        """Count no time."""

    def report(self) -> None:
        """Show how many searches have ended."""
        self._progress(self._ended, self.total)

    def write(self, answers: Sequence[ChainAnswer], _further: Sequence[EvaluatedQuery]) -> None:
        """Keep the inputs that are near the boundary."""
        self.queries += len(answers)
        for chain, step, _, evaluated in answers:
            number = self._numbers[id(chain)]
            _, row, strategy = self._searches[number]
            if _is_near(evaluated.outcome, ties=strategy is cross_boundary):
                self._near[strategy].append(_Near(step, number, row, evaluated))


class _DeviceAsTwin(AskTellSearch):
    """A search in which the device's answer is also the twin's."""

    def ask(self) -> Sequence[Query]:
        """Return the queries, each for the original and the device."""
        return [Query(query.input, ARMS) for query in super().ask()]

    def __init__(self, generator: SearchGenerator) -> None:
        super().__init__(generator)
        self._outcomes: dict[bytes, Outcome] = {}

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Tell the outcomes, once more where the device is queried about an image again."""
        answered = [_device_as_twin(outcome) for outcome in outcomes]
        for query, outcome in zip(super().ask(), answered, strict=True):
            self._outcomes[query.input.tobytes()] = outcome
        super().tell(answered)
        while any(query.again for query in super().ask()):
            super().tell([self._outcomes[query.input.tobytes()] for query in super().ask()])


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
