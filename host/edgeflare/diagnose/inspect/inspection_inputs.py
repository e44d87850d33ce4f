"""The inputs of an inspection: near the original's boundary, and what a run found.

Only there do the two models differ. On one line between two seeds of different labels lie two
neighbours, one on each side of the original's boundary. Whether they deviate depends on the margin
first of all, so hypotheses are permuted among inputs of like margins (strata).

Lines between seeds, whose ends lie in one half of the seeds: to choose units on, or held out. What
is a property of a seed is one of every line that ends at it. So a line of one half has no seed in
common with a line of the other, or what was chosen on one would be right on the other by chance.
And no two lines that are held out have a seed in common, so that they are independent of each
other, as permutations and intervals take them to be. To choose on, seeds are used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import Input
from edgeflare.diagnose.inspect.behaviour_block import CHOOSING, HELD_OUT
from edgeflare.diagnose.near_boundary import Inputs, Lines, drawn_lines
from edgeflare.errors import UserError

MOST_CHOOSING: Final = 3
"""Lines to choose on for each that is held out, at most: where seeds are few, further ones between
the same seeds say little that is new."""

_Ends = NDArray[np.int64]
"""(lines, 2), the positions of the seeds that lines begin and end at."""

STRATA: Final = 4
"""Bins of margins, of equally many inputs each."""

LEAST_LINES: Final = 20
"""Lines in each half; fewer are too few for an interval."""

AT_ONCE: Final = 32
"""Inputs that are made together. The others are kept as lines: 1,600 of 224 × 224 × 3 values would
take 240 MB, and eight times that while they are made."""

FINDING_EVERY: Final = 10
"""Inputs to choose on for each finding among them, at least. All findings deviate, and more of them
would make what they have in common, such as noise, look like what deviations have."""

ScoresOf = Callable[[Inputs], NDArray[np.float64]]
"""Returns the original's scores of inputs: (n, *shape) to (n, choices)."""


@dataclass(frozen=True, slots=True)
class Found:
    """An input that a run found, and the id of the seed that it was made from."""

    seed: int
    input: Input


@dataclass(frozen=True, slots=True)
class InspectedInputs:
    """Inputs in the order in which they are inspected; they are made when they are asked for.

    Attributes:
        groups: (n,), the line that an input lies on; a finding is a group of its own.
        halves: (n,), whether it is to choose units on, or held out.
        strata: (n,), the bin of its margin.
        scores: (n, choices), the original's.

    """

    groups: NDArray[np.int64]
    halves: NDArray[np.int8]
    strata: NDArray[np.int64]
    scores: NDArray[np.float64]
    _places: _Places

    def __len__(self) -> int:
        return len(self.groups)

    def rows(self, rows: slice) -> Inputs:
        """Return some of the inputs, (n, *shape)."""
        return self._places.part(rows).inputs()

    def parts(self) -> Iterator[Inputs]:
        """Return all inputs, some at a time."""
        return (self.rows(part) for part in _parts(len(self)))


def inspected_inputs(
    seeds: Inputs,
    scores_of: ScoresOf,
    found: Sequence[Found],
    count: int,
    rng: np.random.Generator,
    ids: Sequence[int] | None = None,
) -> InspectedInputs:
    """Make inputs near the boundary, add what was found, and put all in a drawn order.

    Both halves are spread evenly over that order, so that any beginning of it has as large a part
    of each. Findings are to choose on only, and none of a seed that is held out.

    Args:
        seeds: (seeds, *shape).
        scores_of: the original's scores; called with 32 inputs at most.
        found: what a run found.
        count: inputs near the boundary, at most.
        rng: generator of all that is drawn.
        ids: ids of the seeds; None where they are their positions.

    Raises:
        UserError: there are too few lines between seeds of different labels.

    """
    labels = np.concatenate([_labels(scores_of(seeds[part])) for part in _parts(len(seeds))])
    drawn = seed_halves(labels, count // 2, rng)
    _require_lines(drawn, len(seeds), count)
    known = range(len(seeds)) if ids is None else ids
    held_out = {known[place] for place in drawn.held_out.reshape(-1).tolist()}
    free = [trigger.input for trigger in found if trigger.seed not in held_out]
    most = drawn.choosing.size // (FINDING_EVERY - 1)
    taken = [free[at] for at in rng.permutation(len(free))[:most].tolist()]
    lines = Lines(seeds, np.concatenate([drawn.held_out, drawn.choosing]))
    near = _neighbours(lines, labels, lambda inputs: _labels(scores_of(inputs)))
    others = np.arange(len(taken))
    groups = np.concatenate([near.line, len(lines.ends) + others])
    halves = np.where(groups < len(drawn.held_out), HELD_OUT, CHOOSING).astype(np.int8)
    order = _order(groups, len(drawn.held_out), rng)
    places = _Places(
        lines,
        taken,
        np.concatenate([near.line, -1 - others])[order],
        np.concatenate([near.share, np.zeros(len(taken))])[order],
    )
    scores = np.concatenate([scores_of(places.part(part).inputs()) for part in _parts(len(order))])
    # The bin of each margin, by how much the best score exceeds the second.
    ordered = np.sort(scores, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    edges = np.quantile(margins, np.linspace(0, 1, STRATA + 1)[1:-1])
    strata = np.searchsorted(edges, margins, side="right").astype(np.int64)
    return InspectedInputs(groups[order], halves[order], strata, scores, places)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where inputs lie: the number of a line and the share of it, or −1 − the finding's number."""

    lines: Lines
    found: Sequence[Input]
    line: NDArray[np.int64]
    share: NDArray[np.float64]

    def part(self, rows: slice) -> _Places:
        """Return some of them."""
        return _Places(self.lines, self.found, self.line[rows], self.share[rows])

    def inputs(self) -> Inputs:
        """Make the inputs."""
        made = self.lines.part(np.maximum(self.line, 0)).at(self.share)
        for at in np.flatnonzero(self.line < 0).tolist():
            made[at] = self.found[-1 - self.line[at]]
        return made


def _neighbours(
    lines: Lines, labels: NDArray[np.int64], label_of: Callable[[Inputs], NDArray[np.int64]]
) -> _Places:
    """Return where the two neighbours of each line lie, one after the other."""

    def decides_as(inputs: Inputs, seeds: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(label_of(inputs) == labels[seeds])

    numbers = np.arange(len(lines.ends))
    shares = [
        np.stack(lines.part(numbers[part]).bisected(decides_as), axis=1)
        for part in _parts(len(numbers))
    ]
    return _Places(lines, (), np.repeat(numbers, 2), np.concatenate(shares).reshape(-1))


def _order(groups: NDArray[np.int64], held_out: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a drawn order of inputs that spreads the groups of both halves evenly."""
    others = int(groups.max()) + 1 - held_out
    places = [(rng.permutation(size) + 0.5) / size for size in (held_out, others)]
    return np.argsort(np.concatenate(places)[groups], kind="stable")


def _require_lines(drawn: SeedHalves, seeds: int, count: int) -> None:
    fewest = min(len(drawn.choosing), len(drawn.held_out))
    if fewest < LEAST_LINES:
        raise UserError(
            f"{seeds} seeds and --max-inputs {count} give {fewest} lines between seeds of different"
            f" labels in a half, and {LEAST_LINES} are the least to inspect: raise --max-inputs to"
            f" {4 * LEAST_LINES} or more, or search a pair with {5 * LEAST_LINES} seeds or more, of"
            " several classes"
        )


def _labels(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(scores.argmax(1), np.int64)


def _parts(count: int) -> Iterator[slice]:
    return (slice(at, at + AT_ONCE) for at in range(0, count, AT_ONCE))


@dataclass(frozen=True, slots=True)
class SeedHalves:
    """Lines of each half, in a drawn order.

    Attributes:
        choosing: each pair of ends once.
        held_out: each end once.

    """

    choosing: _Ends
    held_out: _Ends


def seed_halves(labels: NDArray[np.int64], most: int, rng: np.random.Generator) -> SeedHalves:
    """Divide seeds at random, and draw lines between those of different labels within each half.

    As many are held out as to choose on, or all that the seeds allow.

    Args:
        labels: (seeds,), the original's.
        most: lines of both halves together.
        rng: generator of all that is drawn.

    """
    order = rng.permutation(len(labels))
    choosing, others = order[0::2], order[1::2]
    held_out = others[disjoint_lines(labels[others])][: most // 2]
    wanted = min(MOST_CHOOSING * len(held_out), most - len(held_out))
    return SeedHalves(choosing[drawn_lines(labels[choosing], wanted, rng)], held_out)


def disjoint_lines(labels: NDArray[np.int64]) -> _Ends:
    """Pair positions of different labels, each position once at most.

    Those that are left over are all of one label.

    Args:
        labels: (n,), in a drawn order, which decides the pairs.

    """
    waiting: list[int] = []  # all of one label
    pairs: list[tuple[int, int]] = []
    for position, label in enumerate(labels.tolist()):
        if waiting and labels[waiting[-1]] != label:
            pairs.append((waiting.pop(), position))
        else:
            waiting.append(position)
    return np.array(pairs, np.int64).reshape(-1, 2)
