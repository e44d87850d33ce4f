"""Coverage and width of a survey's intervals, its ends, and how often a gate is passed wrongly.

    edgeflare survey PAIR --inputs NPZ --device NAME --device-queries 1000000 --out RUN
    python benchmarks/survey_estimates.py RUN [--repetitions 2000]

RUN is a survey in which the device was asked about every item, so that the truth is known. Its
stored answers are drawn from again, as a survey would ask for them. For each rate there are three
populations: all items, the items nearest to a tie of which about 10 % deviate, and all items with a
useless twin, whose margins are shuffled and which foretells nothing.

The first table has estimates after so many device queries, and gates whose limit is just below the
rate. The second has surveys that end at a precision, by the rule of `edgeflare survey`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.survey.gates.gate_judgement import JudgedGates, limit_evidence
from edgeflare.survey.items.survey_facts import (
    Fact,
    SurveyFacts,
    deviation,
    deviation_strict,
    kernel_strict,
    surprises,
)
from edgeflare.survey.items.survey_inputs import AskedInputs
from edgeflare.survey.phases.device_phase import StopRule
from edgeflare.survey.rates.rate_interval import Rate, rate
from edgeflare.survey.rates.slices import overall_rate
from edgeflare.survey.record.survey_journal import read_facts
from edgeflare.survey.record.survey_plan import SurveyPlan
from edgeflare.survey.sampling_design import SamplingDesign, SamplingRounds

Z = 1.96
CONFIDENCE = 0.95
BEYOND = 0.98
"""A gate's limit over the true rate, where the rate is just beyond the gate."""

MEASURES = {"strict": deviation_strict, "with ties": deviation, "kernel": kernel_strict}


@dataclass(frozen=True)
class ReplayedItems:
    """Items whose truth is known.

    Attributes:
        rate_name, name: for the tables.
        facts: what host and device say; the device was asked about every item.
        measured: returns the fact that is estimated.

    """

    rate_name: str
    name: str
    facts: SurveyFacts
    measured: Callable[[SurveyFacts], Fact]

    def __len__(self) -> int:
        return self.facts.items

    @property
    def rate(self) -> float:
        """The true rate."""
        return float(self.measured(self.facts).seen.mean())

    def drawn(self, counts: Sequence[int], seed: int) -> Iterator[SamplingDesign]:
        """Yield the design after each round; rounds end where so many items were asked, too."""
        facts, surprised = self.facts, surprises(self.facts)
        rng = np.random.default_rng([1, seed])
        design = SamplingDesign(facts.margin, facts.compression, facts.doubtful, rng)
        for count in counts:
            while missing := count - len(design.draws.items):
                items = design.draw(min(design.round_size, missing))
                design.tell(items, surprised[items])
                yield design


def main() -> int:
    arguments = parse()
    facts = read_facts(arguments.run)
    if not facts.asked.all():
        raise SystemExit(f"{arguments.run}: the device was not asked about every item")
    chosen = [one for one in populations(facts) if one.rate_name in arguments.rates]
    if arguments.queries:
        show_estimates(chosen, arguments)
    if arguments.precisions:
        show_ends([one for one in chosen if one.measured is deviation], arguments)
    return 0


def populations(facts: SurveyFacts) -> Iterator[ReplayedItems]:
    margin = np.random.default_rng(0).permutation(facts.margin)
    nothing = np.zeros_like(facts.compression)
    useless = replace(facts, margin=margin, compression=nothing, compression_tied=nothing)
    for name, measured in MEASURES.items():
        yield ReplayedItems(name, "all", facts, measured)
        yield ReplayedItems(name, "nearest to a tie", nearest(facts, measured), measured)
        yield ReplayedItems(name, "useless twin", useless, measured)


def nearest(facts: SurveyFacts, measured: Callable[[SurveyFacts], Fact]) -> SurveyFacts:
    """Return the items with the least margins of which a tenth deviates, or the nearest 1,000."""
    order = np.argsort(facts.margin, kind="stable")
    share = np.cumsum(measured(facts).seen[order]) / np.arange(1, len(order) + 1)
    count = max(1000, int(np.flatnonzero(share >= 0.1).max(initial=0)) + 1)
    values = {field.name: getattr(facts, field.name) for field in fields(facts)}
    some: dict[str, Any] = {
        name: value[order[:count]]
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }
    return replace(facts, cells=facts.cells[:1], inputs=count, **some)


def show_estimates(chosen: Sequence[ReplayedItems], arguments: argparse.Namespace) -> None:
    heading(
        "rate | population | items | truth | device queries | coverage | bias, sd | width |"
        " over Wilson's at equal queries | at equal information | plain sampling's queries |"
        " gate passed wrongly"
    )
    for population in chosen:
        counts = [count for count in sorted(arguments.queries) if count < len(population) / 2]
        gates = min(arguments.gates, arguments.repetitions) if population.rate else 0
        replays = [
            replayed(population, counts, seed, BEYOND * population.rate if seed < gates else None)
            for seed in range(arguments.repetitions)
        ]
        wrong = f"{sum(one.passed for one in replays) / gates:.1%}" if gates else "–"
        for at, queries in enumerate(counts):
            found = [one.rates[at] for one in replays]
            show_estimate(population, queries, found, wrong if queries == counts[-1] else "")


def show_estimate(
    population: ReplayedItems, queries: int, found: Sequence[Rate], wrong: str
) -> None:
    truth, items, width = population.rate, len(population), mean_width(found)
    spread = float(np.std([one.value for one in found]))
    bias = equal = "–"
    if spread > 1e-9:  # else all estimates are the same one
        bias = f"{(np.mean([one.value for one in found]) - truth) / spread:+.2f}"
        equal = f"{width / wilson(truth, truth * (1.0 - truth) / spread**2, None):.2f}"
    plain = queries_of_plain_sampling(truth, items, width)
    row(
        *(population.rate_name, population.name, f"{items:,}", f"{truth:.3%}", f"{queries:,}"),
        *(f"{coverage(found, truth):.1%}", bias, f"{width:.3%}"),
        *(f"{width / wilson(truth, queries, items):.2f}", equal),
        *(f"× {plain / queries:.1f}", wrong),
    )


@dataclass(frozen=True)
class ReplayedSurvey:
    """What one survey says: the rates after so many queries, and whether a gate was ever passed."""

    rates: list[Rate]
    passed: bool


def replayed(
    population: ReplayedItems, counts: Sequence[int], seed: int, gate: float | None
) -> ReplayedSurvey:
    """Survey once, and look at the gate, where there is one, each round until it is decided."""
    fact, asked = population.measured(population.facts), np.zeros(len(population), dtype=bool)
    rates: list[Rate] = []
    decided: bool | None = None
    for design in population.drawn(counts, seed):
        draws = design.draws
        if gate is not None and decided is None:
            decided = limit_evidence(fact, design.strata, draws, gate).decided(CONFIDENCE)
        if len(draws.items) == counts[len(rates)]:
            asked[draws.items] = True
            rates.append(rate(fact, design.sample_of(asked), confidence=CONFIDENCE))
    return ReplayedSurvey(rates, decided is True)


def show_ends(chosen: Sequence[ReplayedItems], arguments: argparse.Namespace) -> None:
    heading(
        "population | truth | precision | coverage at the end | device queries, mean | least | most"
        " | half width, mean | plain sampling's queries"
    )
    for population in chosen:
        for precision in arguments.precisions:
            show_end(population, precision, arguments.repetitions)


def show_end(population: ReplayedItems, precision: float, repetitions: int) -> None:
    facts = population.facts
    truth = overall(facts).value
    ends = [ended(facts, precision, seed) for seed in range(repetitions)]
    queries = [count for count, _ in ends]
    found = [one for _, one in ends]
    plain = queries_of_plain_sampling(truth, found[0].items, mean_width(found))
    row(
        *(population.name, f"{truth:.3%}", f"{precision:.2%}", f"{coverage(found, truth):.1%}"),
        *(f"{np.mean(queries):,.0f}", f"{min(queries):,}", f"{max(queries):,}"),
        *(f"{mean_width(found) / 2.0:.3%}", f"× {plain / np.mean(queries):.1f}"),
    )


def ended(facts: SurveyFacts, precision: float, seed: int) -> tuple[int, Rate]:
    """Return how often a survey asks the device until it ends, and the rate over all then."""
    rounds = SamplingRounds.of(facts, seed, None)
    stop = StopRule(
        SurveyPlan(
            cells=facts.cells,
            inputs=AskedInputs(None, facts.inputs, ""),
            precision=precision,
        ),
        JudgedGates(),
    )
    asked = np.zeros(facts.items, dtype=bool)
    while True:
        items = rounds.draw()
        asked[items] = True
        known = replace(facts, asked=asked)
        rounds.tell(items, known)
        found = overall_rate(known, rounds.design.sample_of(asked), CONFIDENCE)
        if stop.reached(known, rounds, found) is not None:
            return int(asked.sum()), found


def overall(facts: SurveyFacts) -> Rate:
    """Return the rate over all, which is the true one."""
    sample = SamplingRounds.of(facts, 0, None).design.sample_of(facts.asked)
    return overall_rate(facts, sample, CONFIDENCE)


def coverage(found: Sequence[Rate], truth: float) -> float:
    return sum(one.low <= truth <= one.high for one in found) / len(found)


def mean_width(found: Sequence[Rate]) -> float:
    return float(np.mean([one.high - one.low for one in found]))


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


def heading(columns: str) -> None:
    print()
    names = columns.split(" | ")
    row(*names)
    row(*["---"] * len(names))


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", metavar="RUN", type=Path)
    parser.add_argument("--rates", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--queries", type=int, nargs="*", default=[1500, 3000])
    parser.add_argument("--precisions", type=float, nargs="*", default=[0.02, 0.005, 0.002])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--gates", type=int, default=1000, help="surveys for each gate")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
