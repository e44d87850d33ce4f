"""Rare events by splitting beside brute force: rates, and how often the device was asked.

    python benchmarks/rare_events.py PAIR --inputs NPZ --points 400000 --rates 1e-3,1e-4

Brute force draws points of the field, asks all arms about each, and gives the strength of every
strict deviation. For each rate and each arm that the device is compared with, the event is a
deviation that is stronger than so many of the points have; splitting then estimates its rate with
generators of its own. The table is Markdown. What brute force found can be kept in --stored.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_choice import chosen_conditions
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import load_pair
from edgeflare.run.plan import Plan
from edgeflare.survey.rare_events.rare_rate import RarePlan, RareRate
from edgeflare.survey.rare_events.rare_survey import (
    RareEvent,
    RarePoints,
    RareSurvey,
    survey_rare_event,
)
from edgeflare.survey.rare_events.splitting import SplittingPlan

CHUNK = 4096
"""Points that are made before they are evaluated."""

REFERENCES = (Arm.ORIGINAL, Arm.TWIN)


def main() -> int:
    arguments = parse()
    pair, profile = load_pair(arguments.pair), find_profile(arguments.device)
    chosen = chosen_conditions(pair.interface.domain.name, arguments.conditions)
    conditions = [one.condition for one in chosen]
    with ExitStack() as stack:
        plan = Plan("boundary", Goal(), (profile.name,))
        opened = open_pair(
            pair, plan, [profile], stack, lambda inputs: inputs.load(arguments.inputs)
        )
        strengths = brute_force(opened, conditions, arguments)
        heading(opened, conditions, len(strengths[0]))
        for reference, found in zip(REFERENCES, strengths, strict=True):
            if reference.value not in arguments.references:
                continue
            for rate in arguments.rates:
                limit = strength_of_rate(found, rate)
                compare(opened, conditions, RareEvent(reference, limit), found, arguments)
            for limit in arguments.strengths:
                compare(opened, conditions, RareEvent(reference, limit), found, arguments)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, help="a pair's folder")
    parser.add_argument("--inputs", type=Path, required=True, help="inputs of the field")
    parser.add_argument("--conditions", default="common", help="as `edgeflare survey` takes them")
    parser.add_argument("--references", default="original,twin", help="what devices deviate from")
    parser.add_argument("--device", default="emulated-builtin")
    parser.add_argument("--points", type=int, default=400_000, help="of brute force")
    parser.add_argument("--rates", type=numbers, default=(1e-3, 1e-4), help="that events have")
    parser.add_argument("--strengths", type=numbers, default=(), help="of further events")
    parser.add_argument("--device-queries", type=int, default=RarePlan().device_queries)
    parser.add_argument("--repetitions", type=int, default=RarePlan().repetitions)
    parser.add_argument("--first", type=int, default=SplittingPlan().first)
    parser.add_argument("--particles", type=int, default=SplittingPlan().particles)
    parser.add_argument("--moves", type=int, default=SplittingPlan().moves)
    parser.add_argument("--rng-seeds", type=numbers, default=(0.0,), help="of the splittings")
    parser.add_argument("--stored", type=Path, help="keeps what brute force finds, or has it")
    return parser.parse_args()


def numbers(text: str) -> tuple[float, ...]:
    return tuple(float(one) for one in text.split(",") if one)


def brute_force(
    opened: OpenedPair, conditions: Sequence[Condition], arguments: argparse.Namespace
) -> list[NDArray[np.float64]]:
    """Return the strength of the strict deviation at each point, for each reference.

    It is 0 where there is none, and 1 where the device fails.
    """
    if arguments.stored is not None and arguments.stored.exists():
        with np.load(arguments.stored) as stored:
            return [stored[reference.value] for reference in REFERENCES]
    rows = [
        tuple(strength(outcome, reference) for reference in REFERENCES)
        for outcome in outcomes(opened, conditions, arguments.points)
    ]
    found = [np.asarray(column) for column in zip(*rows, strict=True)]
    if arguments.stored is not None:
        np.savez(arguments.stored, original=found[0], twin=found[1])
    return found


def outcomes(opened: OpenedPair, conditions: Sequence[Condition], count: int) -> Iterator[Outcome]:
    images = opened.seeds.inputs
    order = np.arange(len(images))
    points = RarePoints(
        images, conditions, opened.pair.interface.domain.space, order, lambda *_: np.zeros(0)
    )
    rng = np.random.default_rng(2**32)
    for begun in range(0, count, CHUNK):
        drawn = points.draw(min(CHUNK, count - begun), rng)
        made = [points.changed(one) for one in drawn]
        for one in opened.evaluate(made, [point.input for point in drawn], tuple(Arm)):
            yield one.outcome
        print(f"{begun + len(drawn)} points", file=sys.stderr, flush=True)


def strength(outcome: Outcome, reference: Arm) -> float:
    if not RareEvent(reference).happened(outcome):
        return 0.0
    told = outcome[reference].strength_against(outcome[Arm.DEVICE])
    return 1.0 if told is None else told


def strength_of_rate(strengths: NDArray[np.float64], rate: float) -> float:
    """Return a limit between two strengths, which the share of points nearest to a rate exceeds.

    Strengths of quantized probabilities are multiples of a step, so many are equal.
    """
    found, counts = np.unique(strengths, return_counts=True)
    above = np.cumsum(counts[::-1])[::-1]
    at = int(np.argmin(np.abs(np.log(above / (rate * len(strengths))))))
    return float(found[max(at - 1, 0)] + found[at]) / 2.0


def heading(opened: OpenedPair, conditions: Sequence[Condition], points: int) -> None:
    print(
        f"**{opened.pair.name}** on {opened.devices[0].profile.name}, {len(opened.seeds):,} inputs,"
        f" {len(conditions)} conditions; brute force has {points:,} points\n\n"
        "| event | brute force | splitting | ratio | asked | brute force for as much | ceiling"
        " | host's answers | s |\n|---|---|---|--:|--:|--:|--:|--:|--:|",
        flush=True,
    )


def compare(
    opened: OpenedPair,
    conditions: Sequence[Condition],
    event: RareEvent,
    strengths: NDArray[np.float64],
    arguments: argparse.Namespace,
) -> None:
    """Print a row for each splitting."""
    splitting = SplittingPlan(arguments.first, arguments.particles, moves=arguments.moves)
    plan = RarePlan(splitting, arguments.repetitions, arguments.device_queries)
    for seed in arguments.rng_seeds:
        begun = monotonic()
        rng = np.random.default_rng(int(seed))
        survey = survey_rare_event(opened, conditions, event, plan, rng)
        if survey.rate is not None:
            print(row(survey, survey.rate, strengths, monotonic() - begun), flush=True)


def row(survey: RareSurvey, rate: RareRate, strengths: NDArray[np.float64], seconds: float) -> str:
    event, least = survey.event, survey.event.strength or 0.0
    count, points = int((strengths > least).sum()), len(strengths)
    low = float(gammaincinv(count, 0.025)) / points if count else 0.0
    high = float(gammaincinv(count + 1, 0.975)) / points
    cells = (
        f"{event.reference}, strength > {least:.4f}",
        f"{count / points:.2e} ({low:.1e} to {high:.1e})",
        f"{rate.estimate:.2e} ({rate.low:.1e} to {rate.high:.1e})",
        f"{rate.estimate * points / count:.2f}" if count else "–",
        f"{rate.device_queries:,}",
        f"{needed(rate):,.0f}",
        f"{rate.ceiling:.1e}",
        f"{survey.host_queries:,}",
        f"{seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def needed(rate: RareRate) -> float:
    """Return how often brute force has to ask the device for as small a standard error."""
    error = float(np.std(rate.repetitions, ddof=1)) / np.sqrt(len(rate.repetitions))
    return rate.estimate * (1.0 - rate.estimate) / error**2 if error else np.nan


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
