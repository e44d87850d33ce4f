"""What looks wrong in a run: in the answers on seeds, and in where devices ran the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm, Outcome, answers_by_arm
from edgeflare.core.task import LEAST_SEEDS, Task
from edgeflare.pages.facts import count_of
from edgeflare.run.run_document import RunDevice

WARNINGS_KEY = "warnings"
"""The key of `about` under which the journal keeps them."""


MOST_TIED: Final = 0.1
"""Share of the inputs that may tie before it is said, and before changes by a tie count."""


def seed_warnings(
    task: Task, outcomes: Sequence[Outcome], labels: NDArray[np.int64] | None
) -> list[str]:
    """Return a line for each sign that an arm does not answer as a trained model does.

    Args:
        task: task of the pair.
        outcomes: outcomes of some seeds; at least one.
        labels: theirs, (outcomes,); or None.

    """
    by_arm = answers_by_arm(outcomes)
    lines = [
        *task.warnings(by_arm.get(Arm.ORIGINAL), by_arm[Arm.TWIN], labels),
        *_of_the_device(task, by_arm),
    ]
    for arm, answers in by_arm.items():
        tied = sum(answer.tied for answer in answers)
        if len(answers) >= LEAST_SEEDS and tied > MOST_TIED * len(answers):
            lines.append(
                f"the {arm}'s decision hangs on a tie of equal outputs on {tied} of {len(answers)}"
                " seeds: which of them wins says nothing"
            )
    return lines


def _of_the_device(task: Task, by_arm: Mapping[Arm, Sequence[Answer]]) -> list[str]:
    """Return the signs that the device shows and the twin, which runs the same file, does not."""
    if task.model_warnings("the twin", by_arm[Arm.TWIN]):
        return []
    lines = task.model_warnings("the device", by_arm.get(Arm.DEVICE, ()))
    why = "its twin shows no such sign, so look at the device's kernels"
    return [f"{line}; {why}" for line in lines]


def undelegated(devices: Sequence[RunDevice]) -> list[str]:
    """Return a line for each delegate that took no node, or accelerator that left some.

    That is no mistake: tflite-runtime 2.14 gives XNNPACK nothing of an 8-bit model. But then other
    kernels ran than the profile names, and what was found is of those.

    Args:
        devices: the run's.

    """
    lines = []
    for device in devices:
        name, what = device.name, device.provenance
        delegated, external = what.delegated_nodes, what.external_nodes
        if delegated is None or not what.total_nodes:
            continue  # it is not known
        nodes = count_of(what.total_nodes, "node")
        gave = f"{what.runtime} {what.runtime_version} gave it none of the {nodes}"
        if what.delegate and external == 0:
            lines.append(f"{name}: asked for the delegate {what.delegate}, but {gave}")
        if what.precision is not None and delegated < what.total_nodes:
            lines.append(
                f"{name}: asked for {what.kernels}, which took {delegated} of the"
                f" {nodes}: the CPU runs the others"
            )
        if what.kernels == "xnnpack" and delegated == 0:
            lines.append(f"{name}: asked for xnnpack, but {gave}: optimized built-ins ran")
    return lines
