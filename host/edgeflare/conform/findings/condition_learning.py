"""Conditions learned from models that failed and models that passed.

A condition is made of predicates of a vocabulary, each of which has a probability beforehand. A
fault shows in some of the models that meet its condition, at a rate that is not known, and in no
others: a kernel's wrong result may be hidden by rounding, saturation or luck. A condition is
therefore as good as the probability of what was seen given that, with the rate integrated out,
times its own probability beforehand; `score` is the negative logarithm of the two, in nats. All
failing models must meet it. A predicate that they share by chance gains nothing once a few
models have failed and a few without it have not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations
from math import ceil, floor, lgamma, log, log2

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.fault_condition import (
    FaultCondition,
    Predicate,
    Truths,
    written_number,
)
from edgeflare.conform.findings.settings_table import OF_TUPLES, SettingsTable, written_setting
from edgeflare.conform.specification.parameter import OperatorParameter, Setting

MARGIN = 1.0
"""Nats that a predicate has to gain beyond its own probability. With more, a true one that fewer
models speak for is left out; with less, chance adds false ones."""

COMPARISON_COST = 0.7
"""Nats more for a predicate over two parameters: faults of one are more usual."""

_DIVISORS = (2, 4, 8, 16)
"""The widths of vectors and of unrolled loops in kernels."""

_PLACES = (0, 1, -2, -1)
"""The dimensions of a shape that are looked at: the batch or rows, and channels or columns."""

_MOST_THRESHOLDS = 20
_COARSE = (*range(10), 12, 17, 24, 33, *range(16, 257, 16), 100, 127, 200, 255)
"""Thresholds of numbers with more settings: small ones, the widths of vectors, ends of types."""

_MOST_WORDS = 12
"""Settings that are asked for by name, the most usual ones."""

_RELATIONS = (">", "<", "=", "≠", "≥", "≤")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Predicates, the simpler of which are more likely.

    Attributes:
        predicates: no two alike.
        costs: the negative logarithm of how likely each is beforehand, in nats, (predicates,).

    """

    predicates: tuple[Predicate, ...]
    costs: NDArray[np.float64]

    def held(self, table: SettingsTable) -> Truths:
        """Return which predicate holds of which row: (predicates, rows)."""
        if not self.predicates:
            return np.zeros((0, len(table)), np.bool_)
        return np.stack([predicate.held(table) for predicate in self.predicates])


def vocabulary(parameters: Sequence[OperatorParameter], table: SettingsTable) -> Vocabulary:
    """Return the predicates that tell some models of an operator from others.

    Args:
        parameters: the operator's parameters, which say what may be compared with what.
        table: settings of models; their range says which thresholds there are.

    """
    names = table.names()
    topics = {
        name: [predicates for predicates in _topics(name, table) if predicates] for name in names
    }
    costs: dict[Predicate, float] = {}
    for several in topics.values():
        for topic in several:
            cost = log(len(names)) + log(len(several)) + log(len(topic)) + MARGIN
            costs.update((predicate, cost) for predicate in topic if predicate not in costs)
    compared = [
        predicate for predicate in _comparisons(parameters, table) if predicate not in costs
    ]
    dearer = log(max(1, len(names))) + log(max(1, len(compared))) + MARGIN + COMPARISON_COST
    costs.update((predicate, dearer) for predicate in compared)
    return Vocabulary(tuple(costs), np.array(list(costs.values())))


def _topics(name: str, table: SettingsTable) -> Iterator[list[Predicate]]:
    """Yield the predicates over one setting, by what they speak of."""
    settings = table.settings(name)
    if all(isinstance(setting, bool | str) for setting in settings):
        yield _of_words(name, settings)
    elif any(isinstance(setting, tuple | list) for setting in settings):
        yield _of_words(name, settings)
        of_all = [f"{of_tuple}({name})" for of_tuple in OF_TUPLES]
        for quantity in (*of_all, *(f"{name}[{place}]" for place in _PLACES)):
            numbers = table.numbers(quantity)
            yield _of_wholes(quantity, numbers)
            if quantity in (f"size({name})", f"{name}[-1]"):
                yield _of_remainders(quantity, numbers)
    elif any(isinstance(setting, float) for setting in settings):
        numbers = table.numbers(name)
        yield _of_reals(name, numbers)
        yield _of_reals(name, numbers, 1.5)
    else:
        yield _of_wholes(name, table.numbers(name))
        yield _of_remainders(name, table.numbers(name))


def _of_words(name: str, settings: Sequence[Setting]) -> list[Predicate]:
    usual = Counter(map(written_setting, settings)).most_common(_MOST_WORDS)
    words = sorted(word for word, _ in usual)
    if len(words) < 2:
        return []
    denied = [Predicate(name, "is not", word) for word in words if len(words) > 2]
    return [*(Predicate(name, "is", word) for word in words), *denied]


def _of_wholes(quantity: str, numbers: NDArray[np.float64]) -> list[Predicate]:
    distinct = np.unique(numbers[~np.isnan(numbers)])
    if len(distinct) < 2:
        return []
    low, high = int(distinct[0]), int(distinct[-1])
    values: Sequence[int] = range(low, high + 1)
    if len(values) > _MOST_THRESHOLDS:
        coarse = {sign * bound for bound in _COARSE for sign in (1, -1)}
        coarse |= {2**exponent for exponent in range(9, 31)}
        values = sorted({low, high, *(bound for bound in coarse if low < bound < high)})
    ends = {low, high, 0, 1, -1, 128} & {int(number) for number in distinct}
    known = [int(number) for number in distinct] if len(distinct) <= _MOST_WORDS else sorted(ends)
    # At an end, a threshold is the same as an equality.
    bounds = [("≥", value) for value in values if low < value < high]
    bounds += [("≤", value) for value in values if low < value < high]
    bounds += [("=", number) for number in known]
    bounds += [("≠", number) for number in sorted(ends)]
    return [Predicate(quantity, relation, str(bound)) for relation, bound in bounds]


def _of_remainders(quantity: str, numbers: NDArray[np.float64]) -> list[Predicate]:
    most = np.nanmax(np.abs(numbers), initial=0)
    return [
        Predicate(f"{quantity} % {divisor}", relation, "0")
        for divisor in _DIVISORS
        for relation in ("=", "≠")
        if most > divisor
    ]


def _of_reals(
    quantity: str, numbers: NDArray[np.float64], mantissa: float = 1.0
) -> list[Predicate]:
    """Return thresholds at powers of 2 times a number, which halves are between."""
    present = numbers[~np.isnan(numbers)]
    distinct = np.unique(present)
    if len(distinct) < 2:
        return []
    low, high = float(distinct[0]), float(distinct[-1])
    bounds: list[float] = []
    if high > 0:
        least = floor(log2(low)) if low > 0 else -12
        bounds += [
            mantissa * 2.0**at for at in range(max(least, -40), min(ceil(log2(high)), 40) + 1)
        ]
    if low <= 0 and mantissa == 1:
        bounds += [0.0, *(-(2.0**at) for at in range(-12, 11, 2))]
    usual = [written_number(bound) for bound in sorted(bounds) if low < bound <= high]
    few = [written_number(float(number)) for number in distinct if len(distinct) <= _MOST_WORDS]
    few = few if mantissa == 1 else []
    return [
        *(Predicate(quantity, relation, word) for word in usual for relation in ("≥", "<")),
        *(Predicate(quantity, "=", word) for word in few),
    ]


def _comparisons(
    parameters: Sequence[OperatorParameter], table: SettingsTable
) -> Iterator[Predicate]:
    names = set(table.names())
    units: dict[str, list[str]] = {}
    for known in parameters:
        if known.unit and known.name in names:
            units.setdefault(known.unit, []).append(known.name)
    for unit in units.values():
        yield from _between(unit)
        for pair in combinations(unit, 2):
            if any(isinstance(setting, float) for name in pair for setting in table.settings(name)):
                ratio = f"{pair[0]} / {pair[1]}"
                yield from _of_reals(ratio, table.numbers(ratio))
    tuples = [name for name in table.names() if isinstance(table.settings(name)[0], tuple | list)]
    for pair in combinations(tuples, 2):
        yield Predicate(pair[0], "equals", pair[1])
        yield Predicate(pair[0], "differs from", pair[1])
    for form in ("rank({})", "size({})", "{}[-1]", "{}[0]"):
        yield from _between([form.format(name) for name in tuples])


def _between(quantities: Sequence[str]) -> Iterator[Predicate]:
    for left, right in combinations(quantities, 2):
        for relation in _RELATIONS:
            yield Predicate(left, relation, right)


MOST_PREDICATES = 4
"""Most predicates of a condition."""

_BEAM = 60
"""Conditions that are extended by one more predicate."""

_KEPT = 4 * _BEAM
"""Conditions of each length that are remembered."""

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A condition, and how well it explains what was seen.

    Attributes:
        condition: met by all failing models.
        score: nats; the less the better.

    """

    condition: FaultCondition
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class ModelEvidence:
    """What is known of the models of an operator.

    Attributes:
        vocabulary: what conditions may be made of.
        failing: whether each predicate holds of each failing model: (predicates, failing models).
        passing: likewise (predicates, passing models).

    """

    vocabulary: Vocabulary
    failing: Truths
    passing: Truths


def hypotheses(evidence: ModelEvidence, most: int = 200) -> list[Hypothesis]:
    """Return the best conditions that all failing models meet, the best first.

    Args:
        evidence: evidence with at least one failing model.
        most: how many are returned at most.

    """
    shared = np.flatnonzero(evidence.failing.all(axis=1))
    passing = evidence.passing[shared].astype(np.float32)
    costs = evidence.vocabulary.costs[shared]
    failing, others = evidence.failing.shape[1], evidence.passing.shape[1]
    surprise = np.array([surprise_of(failing, some) for some in range(others + 1)])
    found: dict[Places, float] = {(): float(surprise[-1])}
    singles = costs + surprise[passing.sum(axis=1).astype(np.intp)]
    found.update(((at,), float(single)) for at, single in enumerate(singles))
    beam: list[Places] = [(int(at),) for at in np.argsort(singles, kind="stable")[:_BEAM]]
    for _ in range(MOST_PREDICATES - 1):
        beam = _extended(beam, passing, costs, surprise, found)
    order = nsmallest(most, found, key=lambda places: (found[places], len(places), places))
    named = [evidence.vocabulary.predicates[at] for at in shared]
    return [
        Hypothesis(FaultCondition.of([named[at] for at in places]), found[places])
        for places in order
    ]


def _extended(
    beam: list[Places],
    passing: NDArray[np.float32],
    costs: NDArray[np.float64],
    surprise: NDArray[np.float64],
    found: dict[Places, float],
) -> list[Places]:
    """Add the best conditions with one predicate more to what was found, and return them."""
    if not beam:
        return []
    chosen = np.array(beam)
    held = passing[chosen].prod(axis=1)
    met = (held @ passing.T).astype(np.intp)
    scores = surprise[met] + costs[chosen].sum(axis=1)[:, None] + costs[None, :]
    best: dict[Places, float] = {}
    # A condition can be found from each of its parts, and from itself.
    for flat in lowest(scores.ravel(), _KEPT * (len(beam[0]) + 2)).tolist():
        row, at = divmod(flat, scores.shape[1])
        if at in beam[row]:
            continue
        places = tuple(sorted((*beam[row], at)))
        if places not in best:
            best[places] = float(scores[row, at])
            if len(best) == _KEPT:
                break
    found.update(best)
    return sorted(best, key=lambda places: (best[places], places))[:_BEAM]


def lowest(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places of the lowest scores, the lowest first, the earlier of equal ones first."""
    if len(scores) > most:
        limit = np.partition(scores, most)[most]
        places = np.flatnonzero(scores <= limit)
        return places[np.argsort(scores[places], kind="stable")][:most]
    return np.argsort(scores, kind="stable")


def surprise_of(failing: int, passing: int) -> float:
    """Return how improbable so many failing and passing models are in one region, in nats.

    The rate is uniform beforehand: the integral of rate^failing · (1 - rate)^passing.
    """
    return lgamma(failing + passing + 2) - lgamma(failing + 1) - lgamma(passing + 1)
