"""What looks wrong in the answers of the host's models on the seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome, answers_by_arm
from edgeflare.core.task import Task

WARNINGS_KEY = "warnings"
"""The key of `about` under which the journal keeps them."""


def seed_warnings(
    task: Task, outcomes: Mapping[int, Outcome], labels: NDArray[np.int64] | None
) -> list[str]:
    """Return a line for each sign that the models do not answer as trained ones do.

    Args:
        task: of the pair.
        outcomes: of some seeds, by id; at least one.
        labels: (N,) of all seeds, or None.

    """
    by_arm = answers_by_arm(list(outcomes.values()))
    known: NDArray[Any] | None = None if labels is None else labels[list(outcomes)]
    return task.warnings(by_arm.get(Arm.ORIGINAL), by_arm[Arm.TWIN], known)
