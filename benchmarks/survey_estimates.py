"""Coverage and width of a survey's intervals, and how often a gate is passed wrongly.

    edgeflare survey PAIR --inputs NPZ --device NAME --device-queries 1000000 --out RUN
    python benchmarks/survey_estimates.py RUN [--repetitions 2000]

RUN is a survey in which the device was asked about every item, so that the truth is known. Its
stored answers are drawn from again, as a survey would ask for them. For each rate there are three
populations: all items, the items nearest to a tie of which about 10 % deviate, and all items with a
useless twin, whose margins are shuffled and which foretells nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Fact, Rate
from edgeflare.survey.estimate.rate_interval import rate
from edgeflare.survey.estimate.sampling_design import SamplingDesign
from edgeflare.survey.estimate.sequential_test import limit_evidence
from edgeflare.survey.items.measures import deviation, deviation_with_ties, kernel, surprises
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.record.survey_journal import read_facts

Z = 1.96
BEYOND = 0.98
"""A gate's limit over the true rate, where the rate is just beyond the gate."""


@dataclass(frozen=True)
class ReplayedItems:
    """Items whose truth is known.

    Attributes:
        name: for the table.
        margin, foretold: what the host says, (items,).
        fact: the fact that is estimated.
        surprised: (items,) bool, where the device says anything that was not foretold.

    """

    name: str
    margin: NDArray[np.float64]
    foretold: NDArray[np.bool_]
    fact: Fact
    surprised: NDArray[np.bool_]

    @property
    def rate(self) -> float:
        """The true rate."""
        return float(self.fact.seen.mean())

    def design(self, rng: np.random.Generator) -> SamplingDesign:
        """Return a design that has drawn nothing yet."""
        return SamplingDesign(self.margin, self.foretold, np.zeros_like(self.foretold), rng)

    def ask(self, design: SamplingDesign, count: int) -> None:
        """Draw one round, and tell the design of it."""
        items = design.draw(count)
        design.tell(items, self.surprised[items])


def main() -> int:
    arguments = parse()
    print(
        "| rate | population | items | truth | device queries | coverage | width | over Wilson's"
        " at equal queries | at equal information | plain sampling's queries | gate passed wrongly"
        " |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for run in arguments.runs:
        facts = read_facts(run)
        if not facts.asked.all():
            raise SystemExit(f"{run}: the device was not asked about every item")
        for population in populations(facts):
            for queries in arguments.queries:
                if queries < len(population.margin) / 2:
                    show(population, queries, arguments.repetitions, arguments.gates)
    return 0


def populations(facts: SurveyFacts) -> Iterator[ReplayedItems]:
    rng = np.random.default_rng(0)
    facts_of = {"deviation": deviation, "with ties": deviation_with_ties, "kernel": kernel}
    for name, measured in facts_of.items():
        fact = measured(facts)
        everything = ReplayedItems(
            f"{name} | all", facts.margin, facts.compression, fact, surprises(facts)
        )
        yield everything
        yield nearest(everything, f"{name} | nearest to a tie")
        nothing = np.zeros_like(fact.seen)
        yield ReplayedItems(
            f"{name} | useless twin",
            rng.permutation(facts.margin),
            nothing,
            Fact(nothing, fact.seen),
            fact.seen,
        )


def nearest(of: ReplayedItems, name: str) -> ReplayedItems:
    """Return the items with the least margins of which a tenth deviates, or the nearest 1,000."""
    order = np.argsort(of.margin, kind="stable")
    share = np.cumsum(of.fact.seen[order]) / np.arange(1, len(order) + 1)
    count = max(1000, int(np.flatnonzero(share >= 0.1).max(initial=0)) + 1)
    one = order[:count]
    fact = Fact(of.fact.foretold[one], of.fact.seen[one])
    return ReplayedItems(name, of.margin[one], of.foretold[one], fact, of.surprised[one])


def show(population: ReplayedItems, queries: int, repetitions: int, gates: int) -> None:
    truth, items = population.rate, len(population.margin)
    found = [estimated(population, queries, seed) for seed in range(repetitions)]
    covered = sum(one.low <= truth <= one.high for one in found) / repetitions
    width = float(np.mean([one.high - one.low for one in found]))
    spread = float(np.std([one.estimate for one in found]))
    informed = truth * (1.0 - truth) / spread**2 if spread else float(items)
    plain = queries_of_plain_sampling(truth, items, width)
    wrong = sum(passed(population, queries, seed) for seed in range(gates)) / max(gates, 1)
    print(
        f"| {population.name} | {items:,} | {truth:.4%} | {queries:,} | {covered:.1%} |"
        f" {width:.3%} | {width / wilson(truth, queries, items):.2f} |"
        f" {width / wilson(truth, informed, None):.2f} | × {plain / queries:.1f} | {wrong:.1%} |",
        flush=True,
    )


def estimated(population: ReplayedItems, queries: int, seed: int) -> Rate:
    design = population.design(np.random.default_rng([1, seed]))
    while len(design.draws.items) < queries:
        population.ask(design, min(design.round_size, queries - len(design.draws.items)))
    asked = np.zeros(len(population.margin), dtype=bool)
    asked[design.draws.items] = True
    return rate(population.fact, design.sample_of(asked))


def passed(population: ReplayedItems, queries: int, seed: int) -> bool:
    """Return whether a gate just below the true rate is ever passed, looked at every round."""
    design = population.design(np.random.default_rng([2, seed]))
    while len(design.draws.items) < queries:
        population.ask(design, min(design.round_size, queries - len(design.draws.items)))
        found = limit_evidence(
            population.fact, design.strata, design.draws, BEYOND * population.rate
        )
        decided = found.decided(0.95)
        if decided is not None:
            return decided
    return False


def wilson(share: float, trials: float, items: int | None) -> float:
    """Return the width of Wilson's interval, less where the items are few."""
    finite = 1.0 if items is None else np.sqrt((items - trials) / (items - 1))
    half = Z / (trials + Z * Z) * np.sqrt(share * (1.0 - share) * trials + Z * Z / 4.0)
    return float(2.0 * half * finite)


def queries_of_plain_sampling(share: float, items: int, width: float) -> int:
    """Return how many items drawn plainly have an interval of that width."""
    low, high = 1, items
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wilson(share, middle, items) > width else (low, middle)
    return high


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, nargs="+", default=[500, 1500, 3000])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--gates", type=int, default=1000, help="surveys for each gate")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
