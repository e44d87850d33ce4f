"""Inputs as they come: mutants of seeds near the compressed model's boundary.

They are sampled by `cross_boundary` with the answers of the twin in the device's place and without
those of the original, so that deviations are as frequent among them as among ordinary inputs of the
same margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.campaign.plan_defaults import settle_plan
from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.repair.shifts.boundary_crossing import cross_boundary
from edgeflare.repair.shifts.boundary_set import NEAR_MARGIN, ROUNDS
from edgeflare.run.plan import Plan
from edgeflare.search.operator_pool import domain_operators
from edgeflare.search.strategy import AskTellSearch, Start

AT_ONCE = 128
"""Searches that are told answers together; they find about 900 inputs."""

TwinAnswers = Callable[[Sequence[Input], Sequence[int]], Sequence[Answer]]
"""Returns the twin's answers to inputs, given the positions of their seeds."""


def sample_inputs(
    opened: OpenedPair,
    rows: NDArray[np.int64],
    answers: TwinAnswers,
    most: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Sample mutants of seeds on which the twin's margin is below .25, ties included.

    The margin is that of probabilities. Searches begin at all seeds, in a drawn order and within
    the default bounds and with the default operators of the pair's domain, at most four at each,
    until there are enough inputs; then `most` of them are drawn.

    Args:
        opened: the pair.
        rows: positions of the seeds.
        answers: the twin's answers.
        most: the most inputs to return.
        rng: the generator of all that is drawn.

    Returns:
        images: (n, H, W, C) uint8.
        rows: (n,) int64, the position of each one's seed.

    """
    order = np.concatenate([rng.permutation(rows) for _ in range(ROUNDS)])
    near: list[tuple[int, Input]] = []
    for at in range(0, len(order), AT_ONCE):
        if len(near) >= most:
            break
        near += _near(_starts(opened, order[at : at + AT_ONCE], answers, rng), answers)
    if len(near) > most:
        near = [near[at] for at in np.sort(rng.choice(len(near), most, replace=False))]
    shape = (-1, *opened.seeds.inputs.shape[1:])
    images = np.array([mutant for _, mutant in near], np.uint8).reshape(shape)
    return images, np.array([row for row, _ in near], np.int64)


def _near(starts: Sequence[tuple[int, Start]], answers: TwinAnswers) -> list[tuple[int, Input]]:
    """Return the inputs near the boundary that searches query, with the positions of their seeds.

    All searches are told the answers to one query each in one batch.
    """
    near: list[tuple[int, Input]] = []
    searches = [(row, AskTellSearch(cross_boundary(start))) for row, start in starts]
    while searches:
        asked = [(row, search.ask()[0].input) for row, search in searches]
        told = answers([mutant for _, mutant in asked], [row for row, _ in asked])
        for one, (_, search), answer in zip(asked, searches, told, strict=True):
            search.tell([Outcome({Arm.DEVICE: answer})])
            if answer.failure is None and answer.lead() < NEAR_MARGIN:
                near.append(one)
        searches = [(row, search) for row, search in searches if search.ask()]
    return near


def _starts(
    opened: OpenedPair, rows: NDArray[np.int64], answers: TwinAnswers, rng: np.random.Generator
) -> list[tuple[int, Start]]:
    """Return what each search begins with, and the position of its seed."""
    pair, seeds = opened.pair, opened.seeds
    plan = settle_plan(Plan("boundary", Goal(), ()), seeds, opened.ensemble, pair)
    domain = pair.interface.domain
    bounds = plan.bounds(domain.space)
    operators = domain_operators(domain.name, plan.operators)
    told = answers(list(seeds.inputs[rows]), rows.tolist())
    return [
        (
            row,
            Start(
                seeds.inputs[row],
                Outcome({Arm.DEVICE: answer}),
                Goal(),
                generator,
                bounds,
                operators=operators,
                space=domain.space,
            ),
        )
        for row, answer, generator in zip(rows.tolist(), told, rng.spawn(len(rows)), strict=True)
        if answer.failure is None
    ]
