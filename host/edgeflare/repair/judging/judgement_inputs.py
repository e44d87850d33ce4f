"""The sets of inputs that repaired models are judged on, with the answers of the models before.

Sets are made from some seeds each: those to choose by from one part of the seeds, those that judge
what was chosen from another (see `split_seeds`), so that nothing is chosen on what judges it. The
seeds of a third part are there to fit repairs with.

Inputs on lines between two seeds: where decisions have borders, those near the original's (`tight`
and `wide`), and where answers differ by degrees, as values and masks do, any (`mixed`).

Inputs as they come: mutants of seeds near the compressed model's boundary. They are sampled by
`cross_boundary` with the answers of the twin in the device's place and without those of the
original, so that deviations are as frequent among them as among ordinary inputs of the same margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.plan_defaults import settle_plan
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome
from edgeflare.core.seeds import Seeds, is_labelled
from edgeflare.core.tensor import tensor_bytes
from edgeflare.diagnose.near_boundary import mixtures, near_boundary_inputs, near_other_decisions
from edgeflare.errors import UserError
from edgeflare.record.json_types import Count
from edgeflare.repair.shifts.boundary_set import NEAR_MARGIN, ROUNDS, cross_boundary
from edgeflare.run.plan import Plan
from edgeflare.strategies.operator_pool import domain_operators
from edgeflare.strategies.strategy import AskTellSearch, Start

AT_ONCE = 128
"""Searches that are told answers together at most; they find about 900 inputs."""

_FOUND = 12
"""Inputs near the boundary that each search is taken to find, by which no more searches are opened
than a small set needs. Few find more of classes; of values, where each output counts, none finds
fewer."""

_TwinAnswers = Callable[[Sequence[Input], Sequence[int]], Sequence[Answer]]
"""Returns the twin's answers to inputs, given the positions of their seeds."""


SetName = Literal["seeds", "tight", "wide", "mixed", "sampled", "fresh"]
"""The names of the sets, in the order in which they are shown."""

SEEDS: Final = "seeds"
TIGHT: Final = "tight"
WIDE: Final = "wide"
MIXED: Final = "mixed"
SAMPLED: Final = "sampled"
FRESH: Final = "fresh"

COUNT = 1600
"""Inputs of each near-boundary set, and the most of the sampled ones."""

_MOST_BYTES = 2**26
"""Bytes that the inputs of a set may have, and one model's outputs on them."""

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Inputs, and what the two models answer before any repair.

    Attributes:
        inputs: (n, *shape), of the pair's domain.
        seed_ids: (n,) int64, the seed that each was made from; of fresh inputs their positions.
        labels: (n,) int64, the true labels, of which one that is no class means unknown; None
            where there are none.
        original: the original's answers.
        before: those of the compressed model, on the host with the first kernel set.

    """

    inputs: NDArray[Any]
    seed_ids: NDArray[np.int64]
    labels: Labels | None
    original: Sequence[Answer]
    before: Sequence[Answer]


def known_labels(opened: OpenedPair) -> Labels:
    """Return a label of each seed: the true one where known, else the original's; -1 for none.

    Decisions that are no labels, such as texts, are all 0.

    Returns:
        (seeds,) int64.

    """
    seeds = opened.seeds
    labels = decisions(_answers(opened, seeds.inputs, seeds.seed_ids, Arm.ORIGINAL))
    if seeds.labels is None:
        return labels
    classes = opened.panel.reading.decoders[Arm.ORIGINAL].choices
    return np.where(is_labelled(seeds.labels, classes), seeds.labels, labels)


def true_labels(opened: OpenedPair, seeds: Seeds, test: str | None = None) -> Labels:
    """Return the label of each of some inputs, which all have to have one.

    Args:
        opened: a pair of classifiers.
        seeds: its seeds, or those of `--test`.
        test: the path of these; None for its seeds.

    Raises:
        UserError: one has none, or one that is no class.

    Returns:
        (seeds,) int64.

    """
    classes = opened.panel.reading.decoders[Arm.TWIN].choices
    labels = np.full(len(seeds), -1) if seeds.labels is None else seeds.labels
    unknown = int((~is_labelled(labels, classes)).sum())
    if unknown:
        of, inputs = (opened.pair.name, "seeds") if test is None else (f"--test {test}", "inputs")
        raise UserError(
            f"{of}: {unknown:,} of {len(seeds):,} {inputs} have no label, by which candidates are"
            " judged: give `labels` beside them"
        )
    return labels


def judged_sets(
    opened: OpenedPair,
    labels: Labels,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    count: int = COUNT,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[SetName, JudgedSet]:
    """Make the sets of some seeds: the seeds, those of lines between them, and `sampled`.

    Lines have `tight` and `wide` where decisions have borders, and `mixed` where they have none.
    Of large inputs and outputs there are fewer, so that memory does not grow with them.

    Args:
        opened: the pair, on the kernels of the device.
        labels: labels of all its seeds, as `known_labels` returns them.
        rows: positions of the seeds that all inputs are made from.
        rng: the generator of all that is drawn.
        count: inputs of each set of lines, and the most of the sampled ones.
        progress: is called with the number of sets that are made, and that of all.

    Raises:
        UserError: the original gives the known label to seeds of fewer than two labels, or decides
            the same on all of them.

    """
    ids, count = np.array(opened.seeds.seed_ids, np.int64), min(count, _most_inputs(opened))

    def made(
        inputs: NDArray[Any],
        of: NDArray[np.int64],
        true: Labels | None = None,
        before: Sequence[Answer] | None = None,
    ) -> JudgedSet:
        return _judged_set(opened, inputs, ids[of], true, before)

    def twin(inputs: Sequence[Input], of: Sequence[int]) -> list[Answer]:
        return _answers(opened, inputs, ids[list(of)].tolist(), Arm.TWIN)

    seeds = opened.seeds
    sets: dict[SetName, JudgedSet] = {}
    true = None if seeds.labels is None else seeds.labels[rows]
    sets[SEEDS] = made(seeds.inputs[rows], rows, true)
    progress(1, 4)
    for name, (inputs, of) in line_inputs(opened, labels, rows, count, rng).items():
        sets[name] = made(inputs, of)
    progress(3, 4)
    sampled, of, before = _sample_inputs(opened, rows, twin, count, rng)
    sets[SAMPLED] = made(sampled, of, before=before)
    progress(4, 4)
    return sets


def line_inputs(
    opened: OpenedPair,
    labels: Labels,
    rows: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> dict[SetName, tuple[NDArray[Any], NDArray[np.int64]]]:
    """Make inputs on lines between seeds, in the input space of the pair's domain.

    Args: as of `judged_sets`.

    Returns:
        By the name of the set, (n, *shape) inputs and the n positions of their seeds.

    """
    ids, seeds = opened.seeds.seed_ids, opened.seeds.inputs[rows]
    space = opened.pair.interface.domain.space

    def original(inputs: NDArray[Any], of: NDArray[np.int64]) -> list[Answer]:
        return _answers(opened, inputs, [ids[row] for row in of.tolist()], Arm.ORIGINAL)

    answers = original(seeds, rows)
    if not answers[0].bordered:
        mixed, of = mixtures(seeds, count, rng, space)
        return {MIXED: (mixed, rows[of])}
    if answers[0].counted:
        near = near_boundary_inputs(
            seeds,
            labels[rows],
            lambda inputs, of: decisions(original(inputs, rows[of])),
            count,
            rng,
            space,
        )
    else:

        def decides_as(inputs: NDArray[Any], of: NDArray[np.int64]) -> NDArray[np.bool_]:
            found = original(inputs, rows[of])
            pairs = zip(found, of.tolist(), strict=True)
            return np.array([not answer.differs(answers[at]) for answer, at in pairs], bool)

        near = near_other_decisions(seeds, decides_as, count, rng, space)
    return {TIGHT: (near.tight, rows[near.rows]), WIDE: (near.wide, rows[near.rows])}


def fresh_set(opened: OpenedPair, fresh: Seeds) -> JudgedSet:
    """Return the set of fresh inputs, which nobody made or chose.

    Args:
        opened: the pair.
        fresh: the inputs, as `opened.inputs.load` returns them.

    """
    return _judged_set(opened, fresh.inputs, np.arange(len(fresh)), fresh.labels)


def seeds_among(opened: OpenedPair, fresh: Seeds | None) -> int:
    """Return how many inputs of `--test`, where there are any, are seeds of the pair too."""
    if fresh is None:
        return 0
    seeds = {sha256(seed.tobytes()).digest() for seed in opened.seeds.inputs}
    return sum(sha256(one.tobytes()).digest() in seeds for one in fresh.inputs)


def seeds_among_said(count: int) -> str:
    """Return a sentence that says how many inputs of `--test` are seeds too; "" where none is."""
    if not count:
        return ""
    seeds = "input of --test is a seed" if count == 1 else "inputs of --test are seeds"
    return (
        f"{count:,} {seeds} too, with which candidates may be fitted, and counted as fresh all the"
        " same."
    )


def _most_inputs(opened: OpenedPair) -> int:
    """Return how many inputs a set may have, so that their answers have room in memory."""
    outputs = opened.panel.reading.decoders[Arm.ORIGINAL].outputs
    row = max(int(opened.seeds.inputs[0].nbytes), sum(map(tensor_bytes, outputs)))
    return max(2, _MOST_BYTES // row // 2 * 2)


def _judged_set(
    opened: OpenedPair,
    inputs: NDArray[Any],
    seed_ids: NDArray[np.int64],
    labels: Labels | None,
    before: Sequence[Answer] | None = None,
) -> JudgedSet:
    """Return inputs with the answers to them; the twin is asked where `before` has none of its."""
    arms = (Arm.ORIGINAL, Arm.TWIN) if before is None else (Arm.ORIGINAL,)
    asked = [query.outcome for query in opened.evaluate(list(inputs), seed_ids.tolist(), arms)]
    if before is None:
        before = [outcome[Arm.TWIN] for outcome in asked]
    return JudgedSet(inputs, seed_ids, labels, [one[Arm.ORIGINAL] for one in asked], before)


def _answers(
    opened: OpenedPair, inputs: Iterable[Input], seed_ids: Sequence[int], arm: Arm
) -> list[Answer]:
    evaluated = opened.evaluate(list(inputs), seed_ids, (arm,))
    return [query.outcome[arm] for query in evaluated]


def decisions(answers: Sequence[Answer]) -> Labels:
    """Return what answers decide, (n,) int64; -1 where there is no decision."""
    return np.array(
        [-1 if answer.decision is None else answer.decision for answer in answers], np.int64
    )


def _sample_inputs(
    opened: OpenedPair,
    rows: NDArray[np.int64],
    answers: _TwinAnswers,
    most: int,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[np.int64], list[Answer]]:
    """Sample mutants of seeds on which the twin's margin is below .25, ties included.

    The margin is that of probabilities; where decisions have no borders, all mutants count.
    Searches begin at all seeds, in a drawn order and within the default bounds and with the default
    operators of the pair's domain, at most four at each, until there are enough inputs; then `most`
    of them are drawn.

    Args:
        opened: the pair.
        rows: positions of the seeds.
        answers: the twin's answers.
        most: the most inputs to return.
        rng: the generator of all that is drawn.

    Returns:
        inputs: (n, *shape).
        rows: (n,) int64, the position of each one's seed.
        before: the twin's answers.

    """
    order = np.concatenate([rng.permutation(rows) for _ in range(ROUNDS)])
    near: list[tuple[int, Input, Answer]] = []
    at_once = min(AT_ONCE, -(-most // _FOUND))
    for at in range(0, len(order), at_once):
        if len(near) >= most:
            break
        near += _near(_starts(opened, order[at : at + at_once], answers, rng), answers)
    if len(near) > most:
        near = [near[at] for at in np.sort(rng.choice(len(near), most, replace=False))]
    seeds = opened.seeds.inputs
    inputs = np.array([mutant for _, mutant, _ in near], seeds.dtype).reshape(-1, *seeds.shape[1:])
    found = [answer for _, _, answer in near]
    return inputs, np.array([row for row, _, _ in near], np.int64), found


def _near(
    starts: Sequence[tuple[int, Start]], answers: _TwinAnswers
) -> list[tuple[int, Input, Answer]]:
    """Return the inputs near the boundary that searches query, each with its seed and its answer.

    All searches are told the answers to one query each in one batch.
    """
    near: list[tuple[int, Input, Answer]] = []
    searches = [(row, AskTellSearch(cross_boundary(start))) for row, start in starts]
    while searches:
        asked = [(row, search.ask()[0].input) for row, search in searches]
        told = answers([mutant for _, mutant in asked], [row for row, _ in asked])
        for (row, mutant), (_, search), answer in zip(asked, searches, told, strict=True):
            search.tell([Outcome({Arm.DEVICE: answer})])
            if answer.failure is None and (answer.lead() < NEAR_MARGIN or not answer.bordered):
                near.append((row, mutant, answer))
        searches = [(row, search) for row, search in searches if search.ask()]
    return near


def _starts(
    opened: OpenedPair, rows: NDArray[np.int64], answers: _TwinAnswers, rng: np.random.Generator
) -> list[tuple[int, Start]]:
    """Return what each search begins with, and the position of its seed."""
    pair, seeds = opened.pair, opened.seeds
    plan = settle_plan(Plan("boundary", Goal(), ()), seeds, opened.ensemble, pair)
    domain = pair.interface.domain
    bounds = plan.bounds(domain.space)
    pool = domain_operators(domain.name, plan.operators)
    operators = tuple(map(domain.bound, pool))
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


Rows = NDArray[np.int64]
"""Positions of seeds, rising."""

PARTS = 5
"""Three fifths fit, one chooses, one judges."""


@dataclass(frozen=True, slots=True)
class SeedSplit:
    """Positions of the seeds of each part; all inputs made from a seed belong to its part.

    Attributes:
        fit: three fifths; methods may look at them as they like.
        choose: one fifth; candidates are compared on them.
        judge: one fifth; only what was chosen is evaluated on them.

    """

    fit: Rows
    choose: Rows
    judge: Rows

    @property
    def sizes(self) -> SeedCounts:
        """How many seeds each part has."""
        return SeedCounts(len(self.fit), len(self.choose), len(self.judge))


class SeedCounts(msgspec.Struct, frozen=True):
    """How many seeds each part has.

    Attributes:
        fit: seeds to fit with.
        choose: seeds to choose by.
        judge: seeds to judge what was chosen.

    """

    fit: Count
    choose: Count
    judge: Count

    def __str__(self) -> str:
        return f"{self.fit} seeds to fit with, {self.choose} to choose by, {self.judge} to judge"


def split_seeds(labels: NDArray[np.int64], rng: np.random.Generator) -> SeedSplit:
    """Divide seeds at random, so that each part has its share of each label, to within one seed.

    Args:
        labels: (seeds,), by which they are stratified.
        rng: the generator of the division.

    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    place = np.arange(len(order)) % PARTS
    fit, choose, judge = (np.sort(order[chosen]) for chosen in (place < 3, place == 3, place == 4))
    return SeedSplit(fit, choose, judge)
