"""Some seeds evaluated before a search: how often the arms are right, and how often they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.campaign.panel import PanelDeviceLost
from edgeflare.campaign.stage_differences import StageDifferences, stage_differences
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.outcome import answers_by_arm
from edgeflare.core.query import Query
from edgeflare.errors import InfrastructureError

MOST_SEEDS: Final = 64
"""Enough to see wrong preprocessing by, and few enough for a slow device to answer in seconds."""

_TOGETHER = 16

_SHOWN = 3
"""Seeds whose answers are written out."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the arms answer on the first seeds.

    Attributes:
        seeds: how many were evaluated.
        labelled: how many of them have a label.
        right: of those, how many each arm gives that label; empty where none has one.
        deviating: on how many device and original, or device and twin where there is no original,
            differ.
        warnings: what looks wrong, a line each.
        stages: what the device's own stages change; None where it has none of its own.
        answers: what the arms read on the very first seeds, a line for each seed; empty where
            labels tell whether outputs are read as they are meant.

    """

    seeds: int
    labelled: int
    right: Mapping[Arm, int]
    deviating: int
    warnings: Sequence[str]
    stages: StageDifferences | None = None
    answers: Sequence[str] = ()


def evaluate_first_seeds(opened: OpenedPair) -> DryRun:
    """Ask all arms about the first seeds, once each.

    Raises:
        InfrastructureError: a device or an arm of the host was lost.

    """
    evaluated = _evaluated(opened)
    decoders = opened.panel.reading.decoders
    known = opened.seeds.labels
    labels = [] if known is None else known[: len(evaluated)].tolist()
    labelled = [i for i, label in enumerate(labels) if 0 <= label < decoders[Arm.TWIN].choices]
    first = Arm.ORIGINAL if Arm.ORIGINAL in decoders else Arm.TWIN
    by_arm = answers_by_arm([one.outcome for one in evaluated])
    return DryRun(
        seeds=len(evaluated),
        labelled=len(labelled),
        right={
            arm: sum(evaluated[i].outcome[arm].decision == labels[i] for i in labelled)
            for arm in (opened.panel.arms if labelled else ())
        },
        deviating=sum(one.outcome[first].differs(one.outcome[Arm.DEVICE]) for one in evaluated),
        warnings=[
            *_failing(evaluated),
            *opened.pair.interface.opened_task.warnings(
                by_arm.get(Arm.ORIGINAL), by_arm[Arm.TWIN], np.array(labels) if labels else None
            ),
        ],
        stages=None if opened.stages is None else stage_differences(opened, len(evaluated)),
        answers=_described(opened, evaluated[:_SHOWN]) if decoders[Arm.TWIN].shows_seeds else (),
    )


def _failing(evaluated: Sequence[EvaluatedQuery]) -> list[str]:
    """Return a line for each arm that has no answer to some of the seeds."""
    lines = []
    for arm in Arm:
        answers = [one.outcome.answers[arm] for one in evaluated if arm in one.outcome.answers]
        why = [one.failure for one in answers if one.failure is not None]
        if why:
            lines.append(
                f"{arm} has no answer to {len(why)} of the first {len(answers)} seeds "
                f"({', '.join(sorted(set(why)))}): check the preprocessing and the keys of [task]"
            )
    return lines


def _described(opened: OpenedPair, evaluated: Sequence[EvaluatedQuery]) -> list[str]:
    """Return what the arms answered to each seed, one line each."""
    decoders, classes = opened.panel.reading.decoders, opened.pair.classes
    return [
        f"seed {at}: "
        + "; ".join(
            f"{arm} {decoders[arm].describe_answer(answer, classes)}"
            for arm, answer in one.outcome.answers.items()
        )
        for at, one in enumerate(evaluated)
    ]


def _evaluated(opened: OpenedPair) -> list[EvaluatedQuery]:
    panel, inputs = opened.panel, opened.seeds.inputs[:MOST_SEEDS]
    evaluated: list[EvaluatedQuery] = []
    for begin in range(0, len(inputs), _TOGETHER):
        seed_ids = range(begin, min(begin + _TOGETHER, len(inputs)))
        try:
            asked = panel.submit([Query(inputs[i], panel.arms) for i in seed_ids], seed_ids)
            evaluated += asked.collect()
        except PanelDeviceLost as lost:
            raise InfrastructureError(str(lost)) from lost
    return evaluated
