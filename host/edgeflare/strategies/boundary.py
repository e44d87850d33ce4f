"""Boundary bisection: searches between the decision boundaries of the two compared arms.

Two arms that disagree have decision boundaries that do not coincide, and a trigger lies between the
two. The search mutates the seed until the decision changes, bisects between the seed and that
mutant, and follows the boundary from there, held on it by the margin of the first arm, until the
second arm is on its other side. The host answers first; the device is queried where its surrogate
deviates (`surrogate`).

Paper: DFlare (TOSEM 2023) searches for the same inputs by increasing |p_f - p_g|, §3.3. Its choice
of mutation operators, §3.4, is what the ablation `boundary-mh` keeps.

Differences from the original
    Everything but the mutation operators. Mutants are not accepted by fitness but used as
    directions. Margins are differences of scores (logits, or logarithms of probabilities), so that
    a saturated softmax is no plateau.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product, starmap
from typing import Final

import numpy as np

from edgeflare.core.goal import Find, Trigger
from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, Outcome, Query
from edgeflare.strategies.boundary_parameters import BoundaryParameters
from edgeflare.strategies.boundary_walk import BoundaryPoint, BoundaryWalk, common_level
from edgeflare.strategies.mutation_loop import MetropolisHastings, Selection, Uniform
from edgeflare.strategies.narrow_pair import narrow_pair
from edgeflare.strategies.operator_pool import mutated
from edgeflare.strategies.strategy import QueryGenerator, Start
from edgeflare.strategies.surrogate_choice import search_surrogate


@dataclass(frozen=True)
class Boundary(BoundaryParameters):
    """Boundary bisection, mutation operators drawn uniformly."""

    summary = "bisect to the decision boundary and follow it"
    version = 3

    def search(self, start: Start) -> QueryGenerator[Trigger | None]:
        """Search by boundary bisection."""
        return BoundarySearch(start, Uniform(start.operators, start.rng), self).run()


@dataclass(frozen=True)
class BoundaryMH(BoundaryParameters):
    """Boundary bisection, mutation operators chosen by Metropolis-Hastings: the ablation."""

    summary = "boundary, operators by Metropolis-Hastings (ablation)"
    version = 3

    def search(self, start: Start) -> QueryGenerator[Trigger | None]:
        """Search by boundary bisection."""
        return BoundarySearch(start, MetropolisHastings(start.operators, start.rng), self).run()


class BoundarySearch:
    """A search from one seed; each method is one stage of an attempt."""

    def __init__(self, start: Start, selection: Selection, parameters: BoundaryParameters) -> None:
        self._start = start
        self._rng = start.rng
        self._selection = selection
        self._parameters = parameters
        self._surrogate = search_surrogate(
            start.goal,
            start.ensemble,
            start.outcome,
            start.donors,
            host_predicts=start.host_predicts,
        )
        self._space = start.space
        self._origin: Real = self._space.levels(start.seed)
        self._home = self._surrogate.sides(start.outcome)[0]
        self._seed = self._point(start.seed, start.outcome)
        self._names: list[str] = []
        self._descent: tuple[BoundaryPoint, list[str]] = self._seed, []
        self._failed = self._lone_ties = 0

    def run(self) -> QueryGenerator[Trigger | None]:
        """Attempt until a trigger is found."""
        try:
            while True:
                yield from self._attempt()
        except TriggerFound as found:
            return found.trigger

    def _attempt(self) -> QueryGenerator[None]:
        """Leap, shorten the leap, find the boundary in its direction, and follow it for a while.

        After a descent every other attempt leaps from where it ended, and not every one: what lies
        there may be the reason of the failure.
        """
        parameters = self._parameters
        begin, names = self._descent if self._failed % 2 else (self._seed, [])
        self._names = list(names)
        end = yield from self._leap(begin)
        if not end.outside:
            end = yield from self._descend(end)
            if not end.outside:
                self._failed += 1
                return
            self._descent = end, list(self._names)
            direction, guess = self._levels(end) - self._origin, 0.0  # as it is
        elif parameters.shortening_grid > 1:
            direction, guess, end = yield from self._shorten(end)
        else:
            direction, guess = self._levels(end) - self._origin, 0.0
        point, change, slope = yield from self._bisect(direction, guess, end)
        yield from self._follow(point, change, slope)
        self._failed += 1

    def _leap(self, begin: BoundaryPoint) -> QueryGenerator[BoundaryPoint]:
        """Mutate ever more times until the decision changes; keep mutants with a smaller margin.

        Returns:
            An input outside the seed's decision, or the one with the smallest margin.

        """
        parameters = self._parameters
        mutations = parameters.first_leap
        for _ in range(parameters.max_leaps):
            point = yield from self._evaluate(self._mutate(begin.input, mutations))
            if point.margin <= begin.margin:
                begin = point
                self._selection.reward()
            if point.outside:
                return point
            mutations = min(2 * mutations, parameters.longest_leap)
        return begin

    def _descend(self, begin: BoundaryPoint) -> QueryGenerator[BoundaryPoint]:
        """Reduce the margin block by block, where no leap within the bounds changes the decision.

        Returns:
            An input outside the seed's decision, or the one with the smallest margin.

        """
        parameters = self._parameters
        for _ in range(parameters.max_descents):
            leap = yield from self._evaluate(self._mutate(begin.input, parameters.first_leap))
            direction, length = yield from self._weight_blocks(begin, leap, parameters.descent_grid)
            end = yield from self._step_along(begin, direction, length)
            if end.outside:
                return end
            begin = min(begin, leap, end, key=lambda point: point.margin)
        return begin

    def _shorten(self, leap: BoundaryPoint) -> QueryGenerator[tuple[Real, float, BoundaryPoint]]:
        """Weight the blocks of a leap, taken one after the other, by what each does to the margin.

        Blocks behind the one that changes the decision are left out. Each is weighed where those
        before it are taken already, so that the last ones are weighed near the boundary.

        Returns:
            The direction, how far along it the margin should be a little below 0, and the input
            outside the seed's decision that has the fewest blocks.

        """
        direction = np.zeros_like(self._origin)
        gain, taken, point = 0.0, self._origin, self._seed
        change = self._levels(leap) - self._origin
        blocks = [b for b in self._blocks(change, self._parameters.shortening_grid) if b.any()]
        for number, block in enumerate(blocks, start=1):
            taken, before = taken + block, point
            last = number == len(blocks)
            point = leap if last else (yield from self._evaluate(self._space.nearest(taken)))
            length, drop = float((block**2).sum()), before.margin - point.margin
            if drop > 0.0:
                direction += block * (drop / length)
                gain += drop**2 / length
            if point.outside:
                break
        at = self._parameters.guess_overshoot * self._seed.margin / gain if gain > 0.0 else 0.0
        return direction, at, point

    def _weight_blocks(
        self, begin: BoundaryPoint, end: BoundaryPoint, grid: int
    ) -> QueryGenerator[tuple[Real, float]]:
        """Weight the blocks of a change by what each does to the margin for its length.

        Returns:
            The direction in which the margin falls fastest, of all that scale the blocks one by
            one, and how far along it the margin should be 0.

        """
        origin = self._levels(begin)
        direction = np.zeros_like(origin)
        gain = 0.0
        for block in self._blocks(self._levels(end) - origin, grid):
            length = float((block**2).sum())
            if length == 0.0:
                continue
            part = yield from self._evaluate(self._space.nearest(origin + block))
            drop = begin.margin - part.margin
            if drop > 0.0:
                direction += block * (drop / length)
                gain += drop**2 / length
        return direction, begin.margin / gain if gain > 0.0 else 0.0

    def _step_along(
        self, begin: BoundaryPoint, direction: Real, length: float
    ) -> QueryGenerator[BoundaryPoint]:
        """Step along a direction until the decision changes, within the bounds.

        Returns:
            An input outside the seed's decision, or the one with the smallest margin.

        """
        best = begin
        for _ in range(self._parameters.max_descent_steps):
            candidate = self._space.nearest(self._levels(begin) + length * direction)
            candidate = self._start.bounds.project(candidate, self._start.seed)
            if length == 0.0:
                break
            point = yield from self._evaluate(candidate)
            best = min(best, point, key=lambda point: point.margin)
            if point.outside:
                break
            length = min(length * self._extension(begin, point), _LONGEST)
        return best

    def _bisect(
        self, direction: Real, guess: float, outside: BoundaryPoint
    ) -> QueryGenerator[tuple[BoundaryPoint, Real, float]]:
        """Find the boundary along a direction from the seed, guided by the margin.

        Args:
            direction: the change of the seed, in levels.
            guess: how far along it the boundary should be, in multiples of it.
            outside: an input outside the seed's decision; the direction towards it is taken where
                the boundary along the other one is no nearer.

        Returns:
            The input on the boundary, the change of the seed that leads to it, and how fast the
            margin falls along that change.

        """
        parameters = self._parameters
        longest = parameters.max_shortened_length * float(
            np.linalg.norm(self._levels(outside) - self._origin)
        )
        low, high = (0.0, self._seed.margin), None
        at = guess
        for query in range(1, parameters.max_bisections + 1):
            if high is None and not 0.0 < at * float(np.linalg.norm(direction)) <= longest:
                direction = self._levels(outside) - self._origin
                low, high = (0.0, self._seed.margin), (1.0, outside.margin)
                halved = parameters.shortening_grid == 1
                at = 0.5 if halved else self._interpolate(low, high)
            point = yield from self._evaluate(self._space.nearest(self._origin + at * direction))
            if point.margin > 0.0:
                low = (at, point.margin)
            else:
                high = (at, point.margin)
            if abs(point.margin) < parameters.boundary_tolerance:
                break
            if high is None:
                at *= self._extension(self._seed, point)
            elif (high[0] - low[0]) * float(np.linalg.norm(direction)) < 1.0:
                break
            else:
                halve = query % parameters.halving_interval == 0
                at = (low[0] + (high[0] - low[0]) / 2) if halve else self._interpolate(low, high)
        if high is None:
            slope = (point.margin - self._seed.margin) / at
        else:
            slope = (high[1] - low[1]) / (high[0] - low[0])
        return point, at * direction, min(slope * at, -1e-3)

    def _follow(self, point: BoundaryPoint, change: Real, slope: float) -> QueryGenerator[None]:
        """Follow the boundary, between those of the two arms; see `BoundaryWalk`."""
        parameters = self._parameters
        of_kernels = self._start.goal.find is Find.KERNEL
        if of_kernels:
            # What the twin rounds is no finding then, and where it rounds the device is asked:
            # staying there took half as many device queries again on an int8 LeNet-5.
            parameters = replace(parameters, hold_steps=0, max_stride=1.0)
        walk = BoundaryWalk(point, slope, parameters)
        sideways = np.zeros_like(change)
        for _ in range(parameters.max_steps):
            if walk.needs_direction:
                sideways = self._sideways(point.input, change)
                walk.turn()
            along, stride = walk.step()
            aim = self._levels(point) + stride * sideways + along * change
            rise = None if of_kernels else change / walk.slope
            point = yield from self._evaluate(self._space.dithered(aim, self._rng), rise)
            walk.arrive(point)
            if walk.is_lost:
                return

    def _sideways(self, candidate: Input, change: Real) -> Real:
        """Return a step to the side: the direction of some mutations, orthogonal to the change."""
        parameters = self._parameters
        growth = 1.0 + parameters.step_growth * self._failed
        share = parameters.step_length * min(growth, parameters.max_step_growth)
        mutant = self._mutate(candidate, parameters.direction_mutations)
        step = self._space.levels(mutant) - self._space.levels(candidate)
        length = float(np.linalg.norm(change))
        step = step - change * (float((step * change).sum()) / length**2)
        size = float(np.linalg.norm(step))
        return step * (share * length / size) if size > 0.0 else step

    def _evaluate(
        self, candidate: Input, rise: Real | None = None
    ) -> QueryGenerator[BoundaryPoint]:
        """Query the host about an input, and the device if its surrogate gives a reason to.

        Args:
            candidate: the input.
            rise: the change of it by which the first arm's margin rises by 1, in levels; None where
                that is not known.

        """
        surrogate = self._surrogate
        point, outcome = yield from self._ask_host(candidate)
        if surrogate.decide(outcome):
            if surrogate.is_vague(outcome):
                yield from self._ask_around(point.input, outcome)
            elif rise is None:
                yield from self._ask_device(point.input, outcome)
            else:
                yield from self._ask_device(*(yield from self._deepen(point, outcome, rise)))
        return point

    def _deepen(
        self, point: BoundaryPoint, outcome: Outcome, rise: Real
    ) -> QueryGenerator[tuple[Input, Outcome]]:
        """Try a deviation farther behind the first arm's boundary, if the one found is just behind.

        Returns:
            The stronger of the two, and its outcome.

        """
        goal, parameters, surrogate = self._start.goal, self._parameters, self._surrogate
        strength = goal.strength(surrogate.substitute(outcome))
        if strength is None or abs(point.margin) >= parameters.weak_margin:
            return point.input, outcome
        missing = float(np.sign(point.margin)) * parameters.deeper_target - point.margin
        aim = self._levels(point) + missing * rise
        deeper, other = yield from self._ask_host(self._space.dithered(aim, self._rng))
        stronger = surrogate.decide(other) and strength < (
            goal.strength(surrogate.substitute(other)) or 0.0
        )
        return (deeper.input, other) if stronger else (point.input, outcome)

    def _ask_around(self, candidate: Input, outcome: Outcome) -> QueryGenerator[None]:
        """Ask the device where the twin's decision changes next to a near-tie, if it does there."""
        twin, parameters = outcome[Arm.TWIN], self._parameters
        pair = yield from narrow_pair(self._start, candidate, twin, parameters)
        self._lone_ties = 0 if pair else self._lone_ties + 1
        asked: Sequence[Input] = pair or ()
        if self._lone_ties == parameters.max_lone_ties:
            self._lone_ties, asked = 0, (candidate,)
        for near in asked:
            _, answered = yield from self._ask_host(near)
            yield from self._ask_device(near, answered)

    def _ask_host(self, candidate: Input) -> QueryGenerator[tuple[BoundaryPoint, Outcome]]:
        candidate = self._start.bounds.project(candidate, self._start.seed)
        (outcome,) = yield (Query(candidate, self._surrogate.arms, self._surrogate.kernels),)
        return self._point(candidate, outcome), outcome

    def _ask_device(self, candidate: Input, outcome: Outcome) -> QueryGenerator[None]:
        """Ask the device about an input that the host has answered, unless the device has, too.

        Raises:
            TriggerFound: it is a finding.

        """
        if Arm.DEVICE not in outcome.answers:
            (answered,) = yield (Query(candidate, (Arm.DEVICE,), again=True),)
            outcome = Outcome({**outcome.answers, **answered.answers}, outcome.members)
        kind = self._start.goal.met(outcome)
        self._surrogate.update(outcome)
        if kind is not None:
            raise TriggerFound(Trigger(candidate, kind, outcome, tuple(self._names)))

    def _point(self, candidate: Input, outcome: Outcome) -> BoundaryPoint:
        first, second = self._surrogate.sides(outcome)
        margins = first.margin(self._home), second.margin(self._home)
        outside, level = first.differs(self._home), common_level(first)
        return BoundaryPoint(candidate, outside, *margins, second.tied, level)

    def _mutate(self, candidate: Input, times: int) -> Input:
        for _ in range(times):
            operator = self._selection.choose()
            self._names.append(operator.name)
            candidate = mutated(operator, candidate, self._rng)
        return candidate

    def _levels(self, point: BoundaryPoint) -> Real:
        return self._space.levels(point.input)

    def _blocks(self, change: Real, grid: int) -> list[Real]:
        """Return the change restricted to each block of the input, `grid` along each axis."""
        blocks = []
        axes = (np.array_split(np.arange(n), grid) for n in self._space.cells(change.shape))
        for part in starmap(np.ix_, product(*axes)):
            block = np.zeros_like(change)
            block[part] = change[part]
            blocks.append(block)
        return blocks

    def _extension(self, begin: BoundaryPoint, end: BoundaryPoint) -> float:
        """Return the factor by which to extend a step so that the margin should be below 0."""
        parameters = self._parameters
        drop = begin.margin - end.margin
        if not drop > 0.0:  # nan too
            return parameters.blind_extension
        overshoot = parameters.descent_overshoot
        return min(parameters.max_extension, max(overshoot, overshoot * begin.margin / drop))

    def _interpolate(self, low: tuple[float, float], high: tuple[float, float]) -> float:
        """Return where between two (position, margin) the margin should be 0.

        The margin of `low` may be far greater than that of `high`, where scores of probabilities
        end; it is capped, and a least share of the interval is kept from either end.
        """
        parameters = self._parameters
        most = parameters.max_margin_ratio * max(-high[1], 0.5)
        margin = min(low[1], most)
        share = margin / (margin - high[1])
        least = parameters.min_interpolation
        return low[0] + (high[0] - low[0]) * min(max(share, least), 1 - least)


_LONGEST: Final = 1e9
"""Longest multiple of a direction that is tried: beyond, products are infinite in the end."""


class TriggerFound(Exception):  # noqa: N818 - it ends a search, and is no error
    """Ends a search from within any of its stages.

    Attributes:
        trigger: what was found.

    """

    def __init__(self, trigger: Trigger) -> None:
        super().__init__()
        self.trigger = trigger
