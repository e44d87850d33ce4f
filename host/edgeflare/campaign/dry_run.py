"""Some seeds evaluated before a search: how often the arms are right, and how often they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.non_finite_outputs import begins, non_finite_lines, non_finite_rows
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.panel import Panel, PanelDeviceLost
from edgeflare.campaign.unreset_twin import answers_without_reset
from edgeflare.core.domain import DescribedEncoder
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome, Query, answers_by_arm
from edgeflare.core.tensor import Tensor, dequantize, unpack_rows
from edgeflare.core.truths import mean_distances
from edgeflare.errors import InfrastructureError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_file import read_model, unread_inputs
from edgeflare.pages.facts import count_of
from edgeflare.run.harm import count_harms, harm_or_why_not, right_by_arm
from edgeflare.run.journal_notes import WithoutReset
from edgeflare.run.run_warnings import seed_warnings
from edgeflare.run.systematic.differences import systematic_differences
from edgeflare.run.systematic.figures import SystematicDifferences, order_warnings
from edgeflare.tasks.value_decoder import ValueAnswer
from edgeflare.untrusted_text import printable

MOST_SEEDS: Final = 64
"""Enough to see wrong preprocessing by, and few enough for a slow device to answer in seconds."""

_TOGETHER = 16

_SAID_AGAIN: Final = 24
"""Characters by which the beginning of a complaint is known."""

_SHOWN = 3
"""Seeds whose answers are written out."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the arms answer on the first seeds.

    Attributes:
        seeds: how many were evaluated.
        labelled: how many of them have a label or a target.
        right: number of labelled seeds on which each arm is right; empty where none has a label.
        deviating: number of seeds on which device and original, or device and twin where there is
            no original, differ.
        by_tie: number of deviating seeds that differ by a tie.
        apart: how far the compared arms' values are apart, a line; empty where none are compared.
        harm: who is right on those that deviate, see `count_harms`; empty where none has a label.
        warnings: what looks wrong, a line each.
        systematic: how the device differs in the same way on many of them; None where nothing is
            significant.
        stages: what the device's own stages change; None where it has none of its own.
        without_reset: what the twin answers where its variables are not reset; None without some.
        answers: what the arms read on the very first seeds, a line for each seed; empty where
            labels tell whether outputs are read as they are meant.
        truth_measure: what `distance` is, in words; empty where right and wrong say it all.
        distance: mean distance of each arm from the targets, over those that answered.
        given: what the models are given for an input, a line for the arms that are given the same;
            empty where the domain does not say so.

    """

    seeds: int
    labelled: int
    right: Mapping[Arm, int]
    deviating: int
    by_tie: int
    harm: Mapping[str, int]
    warnings: Sequence[str]
    systematic: SystematicDifferences | None = None
    stages: StageDifferences | None = None
    without_reset: WithoutReset | None = None
    apart: str = ""
    answers: Sequence[str] = ()
    truth_measure: str = ""
    distance: Mapping[Arm, float] = field(default_factory=dict)
    given: Sequence[str] = ()


def evaluate_first_seeds(opened: OpenedPair) -> DryRun:
    """Ask all arms about the first seeds, once each."""
    evaluated = _evaluated(opened)
    decoders = opened.panel.reading.decoders
    goal = Goal(Find.ANY if Arm.ORIGINAL in decoders else Find.KERNEL)
    outcomes = [query.outcome for query in evaluated]
    by_arm = answers_by_arm(outcomes)
    shown = opened.seeds.seed_ids[: len(evaluated)]
    known = opened.truths
    truths = [known[seed_id] for seed_id in shown]
    labelled, right = right_by_arm(outcomes, truths)
    labels = opened.seeds.labels_of(shown)
    deviating = [seed for seed in zip(outcomes, truths, strict=True) if _deviates(goal, seed[0])]
    systematic = systematic_differences(
        opened.panel.reading,
        goal.compared,
        evaluated,
        opened.pair.classes,
        None if labels is None else labels.tolist(),
    )
    return DryRun(
        seeds=len(evaluated),
        labelled=labelled,
        right=right,
        deviating=len(deviating),
        by_tie=sum(goal.tied_deviation(outcome) for outcome, _ in deviating),
        harm=count_harms(harm_or_why_not(goal, *seed) for seed in deviating) if labelled else {},
        warnings=[
            *_unread(opened.pair),
            *order_warnings(systematic),
            *_failing(opened, evaluated),
            *seed_warnings(opened.pair.interface.opened_task, outcomes, labels),
        ],
        systematic=systematic,
        stages=None if opened.stages is None else stage_differences(opened, len(evaluated)),
        without_reset=answers_without_reset(opened),
        answers=_described(opened, evaluated[:_SHOWN]) if decoders[Arm.TWIN].shows_seeds else (),
        apart=_apart(goal, outcomes),
        truth_measure=known.measure(),
        distance=mean_distances(by_arm, truths),
        given=_given(opened.panel),
    )


def _given(panel: Panel) -> list[str]:
    """Return what the models are given for an input, a line for arms that are given the same."""
    arms: dict[str, list[str]] = {}
    for arm in panel.arms:
        encoder = panel.encoder(arm)
        if isinstance(encoder, DescribedEncoder):
            arms.setdefault(encoder.describe(), []).append(arm)
    return [f"input of {' and '.join(some)}: {said}" for said, some in arms.items()]


def unread_by_model(pair: Pair) -> dict[str, tuple[str, ...]]:
    """Return the names of inputs that no operator reads, by "original" and "compressed model".

    Models that are no `.tflite` are left out.
    """
    files = {"original": pair.original_file, "compressed model": pair.executed}
    signature = pair.interface.invocation.signature
    return {
        model: unread_inputs(read_model(read_model_file(file), str(file)), signature)
        for model, file in files.items()
        if file is not None and file.suffix == ".tflite"
    }


def _unread(pair: Pair) -> list[str]:
    """Return a line for each model that does not read some of its inputs."""
    return [
        f"no operator of the {model} reads its input {', '.join(map(printable, names))}: what is"
        " given there changes nothing"
        for model, names in unread_by_model(pair).items()
        if names
    ]


def _deviates(goal: Goal, outcome: Outcome) -> bool:
    first, device = (outcome[arm] for arm in goal.compared)
    return first.differs(device)


def _apart(goal: Goal, outcomes: Sequence[Outcome]) -> str:
    """Return how far the values of the compared arms are apart, by which a tolerance is chosen."""
    pairs = [[outcome[arm] for arm in goal.compared] for outcome in outcomes]
    found = [
        first.distance(device)
        for first, device in pairs
        if isinstance(first, ValueAnswer) and first.failure is device.failure is None
    ]
    if not found:
        return ""
    return (
        f"distance between {' and '.join(goal.compared)} on them: median {median(found):.4g}, "
        f"greatest {max(found):.4g}"
    )


def _failing(opened: OpenedPair, evaluated: Sequence[EvaluatedQuery]) -> list[str]:
    """Return a line for each arm that has no answer to some of the seeds."""
    found = non_finite_rows(opened.panel.reading, evaluated)
    seeds = f"the first {count_of(len(evaluated), 'seed')}"
    lines = []
    if found:
        lines = non_finite_lines(found, opened.panel.arms, seeds, begins(opened, found))
    for arm in Arm:
        why = {
            at: failure
            for at, query in enumerate(evaluated)
            if arm in query.outcome.answers and at not in found.get(arm, {})
            if (failure := query.outcome[arm].failure) is not None
        }
        if why:
            kinds = ", ".join(sorted(set(why.values())))
            lines.append(
                f"{arm} has no answer to {len(why)} of {seeds} ({kinds}"
                f"{_detail(opened, arm, min(why))}): check the preprocessing and the keys of [task]"
            )
    return lines


def _detail(opened: OpenedPair, arm: Arm, place: int) -> str:
    """Return what the runtime says of a seed that an arm fails on, behind a colon."""
    part = slice(place, place + 1)
    seed_ids, panel = opened.seeds.seed_ids[part], opened.panel
    model = panel.device_of(seed_ids[0]) if arm is Arm.DEVICE else panel.host(arm)
    rows = model.rows(opened.seeds.inputs[part], seed_ids)
    said = model.evaluator.submit(rows).result().details.get(0, "")
    # The runtime says again what it said of earlier inputs.
    again = said.find(said[:_SAID_AGAIN], _SAID_AGAIN)
    return f": {said[: again if again > 0 else None]}" if said else ""


def _described(opened: OpenedPair, evaluated: Sequence[EvaluatedQuery]) -> list[str]:
    """Return what the arms answered to each seed, one line each."""
    decoders, classes = opened.panel.reading.decoders, opened.pair.classes
    return [
        f"seed {seed_id}: "
        + "; ".join(
            f"{arm} {decoders[arm].describe_answer(answer, classes)}"
            for arm, answer in query.outcome.answers.items()
        )
        for seed_id, query in zip(opened.seeds.seed_ids, evaluated, strict=False)
    ]


def _evaluated(opened: OpenedPair) -> list[EvaluatedQuery]:
    panel, inputs = opened.panel, opened.seeds.inputs[:MOST_SEEDS]
    evaluated: list[EvaluatedQuery] = []
    for begin in range(0, len(inputs), _TOGETHER):
        some = inputs[begin : begin + _TOGETHER]
        seed_ids = opened.seeds.seed_ids[begin : begin + len(some)]
        try:
            asked = panel.submit([Query(input_, panel.arms) for input_ in some], seed_ids)
            evaluated += asked.collect()
        except PanelDeviceLost as lost:
            raise InfrastructureError(str(lost)) from lost
    return evaluated


@dataclass(frozen=True, slots=True)
class StageDifferences:
    """What the device's own stages change on the first seeds.

    Attributes:
        seeds: how many were evaluated.
        decided: on how many the device's own decoding of its raw outputs gives another decision
            than the pair's decoding of the same outputs.
        inputs: the largest difference between what the device makes of a seed for the model, and
            what the pair makes of it; in real values of the model's inputs.

    """

    seeds: int
    decided: int
    inputs: float

    def lines(self) -> list[str]:
        """Return this as people read it: a line for each stage."""
        inputs = (
            f"the model's inputs on the device differ from the pair's by at most {self.inputs:.4g}"
            if self.inputs
            else "the model's inputs on the device are those of the pair"
        )
        return [
            f"output stage: the device's own decoding of the same raw outputs changes the decision"
            f" on {self.decided} of {count_of(self.seeds, 'seed')}",
            f"input stage: {inputs}",
        ]


def stage_differences(opened: OpenedPair, count: int) -> StageDifferences:
    """Evaluate the first seeds on the first device, and read the outputs in both ways.

    Args:
        opened: a pair whose devices have stages of their own.
        count: how many seeds.

    Raises:
        ValueError: the devices have no stages of their own.

    """
    if opened.stages is None:
        raise ValueError("no device has stages of its own")
    own, pairs = opened.stages.on_device, opened.stages.as_pair
    seeds, ids = opened.seeds.inputs[:count], opened.seeds.seed_ids[:count]
    given = own.given(seeds, ids)
    read = replace(own, evaluator=pairs.evaluator, decoder=pairs.decoder)
    answers = [list(model.decoder.read(model.submit(given).result())) for model in (own, read)]
    tensors = own.evaluator.signature.inputs
    return StageDifferences(
        seeds=count,
        decided=sum(answer.differs(other) for answer, other in zip(*answers, strict=True)),
        inputs=_largest_difference(tensors, given.rows, pairs.rows(seeds, ids)),
    )


def _largest_difference(
    tensors: Sequence[Tensor], first: NDArray[np.generic], second: NDArray[np.generic]
) -> float:
    arrays = zip(tensors, unpack_rows(tensors, first), unpack_rows(tensors, second), strict=True)
    return max(
        float(np.abs(dequantize(values, tensor) - dequantize(other, tensor)).max())
        for tensor, values, other in arrays
    )
