"""Searches and refinements on inputs that are no images: sounds, and arrays of one and two axes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from driving import Drive, SearchCase, linear_model
from edgeflare.core.bounds import Bounds
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.strategies.operator_pool import built_in_pool
from edgeflare.strategies.shrink import shrink
from edgeflare.strategies.strategy import (
    AskTellSearch,
    Donor,
    QueryGenerator,
    SearchGenerator,
    Start,
    Strategy,
)
from edgeflare.strategies.strategy_registry import find_strategy
from edgeflare.strategies.strengthen import strengthen
from edgeflare_operators import MutationOperator

ARRAY_POOL = built_in_pool("array")
SOUND_POOL = built_in_pool("audio")


@dataclass(frozen=True)
class OtherDomain:
    """A domain with seeds of it, the operators of a search, and bounds on the way to others."""

    domain: Domain
    seeds: tuple[Input, ...]
    operators: tuple[MutationOperator, ...]

    @property
    def bounds(self) -> Bounds:
        space = self.domain.space
        far = max(space.distance(self.seeds[0], one) for one in self.seeds[1:])
        return Bounds(self.domain.default_linf, far, space)

    def case(self) -> SearchCase:
        """Linear models of the input in levels, which decide the seeds differently.

        The scores of the compressed one are scaled by a little, each otherwise, and rounded.
        """
        rng = np.random.default_rng(3)
        inputs = np.array([self._real(one) for one in self.seeds])
        weights = inputs - inputs.mean(axis=0) + rng.normal(0.0, 0.1 * inputs.std(), inputs.shape)
        weights *= 3.0 / np.square(weights).sum(axis=1, keepdims=True)
        bent = weights * rng.normal(1.0, 0.1, (4, 1))
        models = {
            Arm.ORIGINAL: lambda one: linear_model(weights)(self._real(one) * 255.0),
            Arm.TWIN: lambda one: linear_model(bent, 0.01)(self._real(one) * 255.0),
        }
        models[Arm.DEVICE] = models[Arm.TWIN]
        return SearchCase(self.seeds[0], models, bounds=self.bounds)

    def started(self, case: SearchCase, start: Start) -> Start:
        arms = tuple(case.models)
        donors = tuple(Donor(one, case.evaluate(one, arms)) for one in self.seeds)
        return replace(start, operators=self.operators, donors=donors, space=self.domain.space)

    def drive(self, strategy: Strategy, case: SearchCase) -> Drive:
        def search(start: Start) -> SearchGenerator:
            return strategy.search(self.started(case, start))

        return case.drive(search, Goal(), steps=250)

    def _real(self, one: Input) -> Input:
        return self.domain.space.levels(one).ravel()


def waves() -> tuple[Input, ...]:
    times = np.arange(1200) / 8000.0
    pitches = (60.0, 110.0, 180.0, 250.0)
    tones = (4000.0 * np.sin(2 * np.pi * pitch * times + pitch) for pitch in pitches)
    return tuple(tone.astype(np.int16) for tone in tones)


def arrays(shape: tuple[int, ...], dtype: str, lowest: float, highest: float) -> tuple[Input, ...]:
    rng = np.random.default_rng(5)
    return tuple(rng.uniform(lowest, highest, shape).astype(dtype) for _ in range(4))


DOMAINS = {
    "sound": OtherDomain(AudioDomain(8000), waves(), SOUND_POOL),
    "channels over time": OtherDomain(
        ArrayDomain(lowest=-1.0, highest=2.0), arrays((60, 3), "float32", -1.0, 2.0), ARRAY_POOL
    ),
    "features": OtherDomain(
        ArrayDomain(lowest=0.0, highest=1.0), arrays((30,), "float32", 0.0, 1.0), ARRAY_POOL
    ),
    "counts": OtherDomain(
        ArrayDomain("int16", 0, 1000), arrays((40, 2), "int16", 0, 1000), ARRAY_POOL
    ),
}
OF_EACH = pytest.mark.parametrize("of", DOMAINS.values(), ids=DOMAINS)


def require_within(of: OtherDomain, drive: Drive) -> None:
    for query in drive.queries:
        assert query.input.dtype == of.domain.space.dtype
        assert query.input.shape == of.seeds[0].shape
        assert of.domain.space.contains(query.input)
        assert of.bounds.holds(query.input, of.seeds[0])


@OF_EACH
@pytest.mark.parametrize("strategy", ["boundary", "donor", "random"])
def test_a_search_keeps_the_bounds(of: OtherDomain, strategy: str) -> None:
    drive = of.drive(find_strategy(strategy).create({}), of.case())
    assert drive.queries
    require_within(of, drive)


@OF_EACH
def test_a_search_finds_what_is_shrunk_and_strengthened(of: OtherDomain) -> None:
    case = of.case()
    found = of.drive(find_strategy("boundary").create({}), case).finding
    assert found is not None
    begun = replace(found, outcome=case.evaluate(found.input, tuple(case.models)))
    space, seed = of.domain.space, of.seeds[0]

    nearer = driven(of, case, shrink(begun, of.started(case, case.start(Goal())), 400))
    assert Goal().met(case.evaluate(nearer, tuple(case.models))) == "deviation"
    assert space.distance(nearer, seed) < space.distance(begun.input, seed)

    stronger = driven(of, case, strengthen(begun, of.started(case, case.start(Goal())), 200))
    before, after = (
        Goal().strength(case.evaluate(one, tuple(case.models))) for one in (begun.input, stronger)
    )
    assert after is not None
    assert before is not None
    assert after >= before


def driven(of: OtherDomain, case: SearchCase, refinement: QueryGenerator[object]) -> Input:
    """The input that a refinement ends with; every query keeps the bounds."""
    search, drive = AskTellSearch(refinement), Drive()  # type: ignore[arg-type]
    while asked := search.ask():
        drive.queries += asked
        search.tell([case.evaluate(query.input, query.arms, query.kernels) for query in asked])
    require_within(of, drive)
    assert search.finding is not None
    return search.finding.input
