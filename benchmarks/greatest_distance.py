"""How far apart strategies bring the two models of a pair whose outputs are values: a table.

    OPENBLAS_NUM_THREADS=1 python benchmarks/greatest_distance.py PAIR [--strategies random,climb]
        [--set climb.elite=4] [--rng-seeds 0,1] [--queries N] [--half even] [--each]

From each seed that does not deviate by itself every strategy spends all of its queries, since no
deviation counts as a finding: one would have to be infinitely strong. Operators and bounds are the
defaults of `edgeflare search`. A strategy asks the arms that it always asks, its twin where that
stands for the device; the inputs on which these are farthest apart are shown to the device at the
end, `emulated-xnnpack`, and the distance of original and device is what counts.

The table has medians over the seeds: over all, and over each half of them, so that parameters can
be chosen on one half and shown on the other. `over` is the median over that of the first strategy
with the same run seed. `--half` searches from one half alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.campaign_record import describe_run
from edgeflare.campaign.chain import chain_generator
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.cli.option_values import read_parameters, read_whole_numbers
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import load_pair
from edgeflare.run.plan import Plan
from edgeflare.strategies.operator_pool import domain_operators
from edgeflare.strategies.strategy import AskTellSearch, Start, Strategy
from edgeflare.strategies.strategy_registry import find_strategy
from edgeflare.tasks.value_decoder import ValueAnswer

DEVICE = "emulated-xnnpack"

ENDLESS = Goal(min_strength=inf)
"""A goal that no deviation meets."""


def main() -> None:
    arguments = parse()
    names = arguments.strategies.split(",")
    given = read_parameters(arguments.set, names)
    strategies = {name: find_strategy(name).create(given.get(name, {})) for name in names}
    with ExitStack() as stack:
        plan = Plan(names[0], Goal(), (DEVICE,))
        opened = open_pair(load_pair(arguments.pair), plan, [find_profile(DEVICE)], stack)
        plan = describe_run(opened, plan).plan
        seeds = agreeing_seeds(opened)
        halves = {"even": list(seeds)[::2], "odd": list(seeds)[1::2]}
        chosen = sorted(halves.get(arguments.half, seeds))
        print("| strategy | run seed | seeds | median | even | odd | mean | over |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|")
        for rng_seed in read_whole_numbers("--rng-seeds", arguments.rng_seeds):
            first = 0.0
            for name, strategy in strategies.items():
                starts = {at: start_of(opened, plan, at, seeds[at], rng_seed) for at in chosen}
                reached = greatest_distances(opened, starts, strategy, arguments.queries)
                first = first or float(np.median(list(reached.values())))
                figures = figures_of(reached, list(halves.values()), first)
                print(f"| {name} | {rng_seed} | {len(reached)} | {figures} |", flush=True)
                if arguments.each:
                    print(*(f"{at}: {reached[at]:.3f}" for at in chosen), file=sys.stderr)


def figures_of(reached: Mapping[int, float], halves: Sequence[list[int]], first: float) -> str:
    """Return the cells of the table that say how far a strategy came; `first` is a median."""
    everything = list(reached.values())
    parts = [[reached[at] for at in half if at in reached] for half in halves]
    medians = [f"{np.median(part):.3f}" if part else "–" for part in (everything, *parts)]
    return " | ".join(
        (*medians, f"{np.mean(everything):.3f}", f"{np.median(everything) / first:.2f}")
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, metavar="PAIR")
    parser.add_argument("--strategies", default="random,climb", metavar="NAME,NAME")
    parser.add_argument("--set", action="append", default=[], metavar="STRATEGY.NAME=VALUE")
    parser.add_argument("--rng-seeds", default="0", metavar="N,N")
    parser.add_argument("--queries", type=int, default=300, metavar="N")
    parser.add_argument("--half", choices=("even", "odd"))
    parser.add_argument("--each", action="store_true", help="the distance of each seed, to stderr")
    return parser.parse_args()


def agreeing_seeds(opened: OpenedPair) -> Mapping[int, Outcome]:
    """Return what all arms answered about each seed that does not deviate by itself, by its id."""
    inputs = list(opened.seeds.inputs)
    answered = opened.evaluate(inputs, range(len(inputs)), opened.panel.arms)
    outcomes = dict(enumerate(one.outcome for one in answered))
    return {at: one for at, one in outcomes.items() if Goal().unmutated.met(one) is None}


def start_of(opened: OpenedPair, plan: Plan, at: int, outcome: Outcome, rng_seed: int) -> Start:
    """Return what a campaign begins a search from a seed with, and the goal that none meets."""
    domain = opened.pair.interface.domain
    return Start(
        opened.seeds.inputs[at],
        outcome,
        ENDLESS,
        rng=chain_generator(rng_seed, at),
        bounds=plan.bounds(domain.space),
        operators=tuple(map(domain.bound, domain_operators(domain.name, plan.operators))),
        paper_operators=domain.paper_operators(),
        published_operators=domain.published_operators(),
        space=domain.space,
    )


@dataclass(slots=True)
class OpenSearch:
    """A search under way: what it has spent, and the input on which the arms are farthest apart."""

    search: AskTellSearch
    farthest: NDArray[np.generic]
    distance: float = -inf
    queries: int = 0

    def tell(self, outcomes: list[Outcome]) -> None:
        """Keep the input on which the arms that were asked are the farthest apart."""
        asked = self.search.ask()
        for query, outcome in zip(asked, outcomes, strict=True):
            self.queries += not query.again
            second = Arm.DEVICE if Arm.DEVICE in outcome.answers else Arm.TWIN
            apart = distance(outcome[Arm.ORIGINAL], outcome[second])
            if apart > self.distance:
                self.farthest, self.distance = query.input, apart
        self.search.tell(outcomes)


def greatest_distances(
    opened: OpenedPair, starts: Mapping[int, Start], strategy: Strategy, queries: int
) -> dict[int, float]:
    """Return how far original and device are apart at the farthest from each seed, by its id."""
    searches = {
        at: OpenSearch(AskTellSearch(strategy.search(one)), one.seed) for at, one in starts.items()
    }
    pipeline = opened.pipeline()
    while left := {
        at: asked
        for at, one in searches.items()
        if one.queries < queries and (asked := one.search.ask())
    }:
        ids = [at for at, asked in left.items() for _ in asked]
        pipeline.put(None, [query for asked in left.values() for query in asked], ids)
        answered = iter(pipeline.take().evaluated)
        for at, asked in left.items():
            searches[at].tell([next(answered).outcome for _ in asked])
    inputs = [one.farthest for one in searches.values()]
    shown = opened.evaluate(inputs, list(searches), ENDLESS.needed)
    return {
        at: distance(*(one.outcome[arm] for arm in ENDLESS.compared))
        for at, one in zip(searches, shown, strict=True)
    }


def distance(one: Answer, other: Answer) -> float:
    """Return the distance of two answers by the pair's task."""
    if not (isinstance(one, ValueAnswer) and isinstance(other, ValueAnswer)):
        raise EdgeFlareError("the pair's task compares no values: give one whose task does")
    return one.distance(other)


if __name__ == "__main__":
    try:
        main()
    except EdgeFlareError as error:
        sys.exit(f"greatest_distance: {error}")
