"""What looks wrong in the answers on the seeds: of the host's models, and of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm, Outcome, answers_by_arm
from edgeflare.core.task import LEAST_SEEDS, Task

WARNINGS_KEY = "warnings"
"""The key of `about` under which the journal keeps them."""


MOST_TIED: Final = 0.1
"""Share of the inputs that may tie before it is said, and before changes by a tie count."""


def seed_warnings(
    task: Task, outcomes: Sequence[Outcome], labels: NDArray[np.int64] | None
) -> list[str]:
    """Return a line for each sign that an arm does not answer as a trained model does.

    Args:
        task: of the pair.
        outcomes: of some seeds; at least one.
        labels: theirs, (outcomes,); or None.

    """
    by_arm = answers_by_arm(outcomes)
    return [
        *task.warnings(by_arm.get(Arm.ORIGINAL), by_arm[Arm.TWIN], labels),
        *_of_the_device(task, by_arm),
        *(line for arm, answers in by_arm.items() for line in _ties(arm, answers)),
    ]


def _of_the_device(task: Task, by_arm: Mapping[Arm, Sequence[Answer]]) -> list[str]:
    """Return the signs that the device shows and the twin, which runs the same file, does not."""
    if task.model_warnings("the twin", by_arm[Arm.TWIN]):
        return []
    lines = task.model_warnings("the device", by_arm.get(Arm.DEVICE, ()))
    why = "its twin shows no such sign, so look at the device's kernels"
    return [f"{line}; {why}" for line in lines]


def _ties(arm: Arm, answers: Sequence[Answer]) -> list[str]:
    tied = sum(answer.tied for answer in answers)
    if len(answers) < LEAST_SEEDS or tied <= MOST_TIED * len(answers):
        return []
    return [
        f"the {arm}'s decision hangs on a tie of equal outputs on {tied} of {len(answers)} seeds:"
        " which of them wins says nothing"
    ]
