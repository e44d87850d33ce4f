"""What the kernel sets of a device came to, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from edgeflare.core.goal import Goal
from edgeflare.core.query import Outcome
from edgeflare.devices.provenance import Provenance
from edgeflare.matrix.agreement import InputAgreement, agreements
from edgeflare.matrix.cross_evaluation import StoredTrigger
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare.run.run_document import RunDocument


@dataclass(frozen=True, slots=True)
class KernelSetFigures:
    """What one kernel set came to.

    Attributes:
        kernels: name of the kernel set.
        device: name of the device with it.
        refused: why it refuses the model; empty where it does not, and then all else is known.
        provenance: what the agent said of itself, and of the model.
        seeds: number of the seeds that were tried.
        deviating_seeds: seeds that deviate themselves.
        findings: verified findings of its run.
        deviating: inputs of all runs on which it deviates.
        alone: inputs on which it differs from all other kernel sets, which agree.

    """

    kernels: str
    device: str
    refused: str = ""
    provenance: Provenance | None = None
    seeds: int = 0
    deviating_seeds: int = 0
    findings: int = 0
    deviating: int = 0
    alone: int = 0


@dataclass(frozen=True, slots=True)
class Matrix:
    """The kernel sets of a device.

    Attributes:
        command: "search" or "replay".
        pair: name of the pair.
        goal: the arms that were compared, and how.
        rows: one for each kernel set.
        triggers: the inputs on which a kernel set deviates, of all runs.
        agreement: what the kernel sets decide on each of them.

    """

    command: Literal["search", "replay"]
    pair: str
    goal: Goal
    rows: tuple[KernelSetFigures, ...]
    triggers: tuple[StoredTrigger, ...]
    agreement: tuple[InputAgreement, ...]

    def apart(self) -> dict[tuple[str, str], int]:
        """Return on how many inputs two kernel sets differ, by pair; of pairs that do."""
        return dict(Counter(pair for one in self.agreement for pair in one.apart))


def matrix_of(
    command: Literal["search", "replay"],
    runs: Sequence[KernelSetRun[RunDocument]],
    triggers: Sequence[StoredTrigger],
    outcomes: Mapping[str, Sequence[Outcome]],
) -> Matrix:
    """Return what the runs of the kernel sets and their evaluation of all inputs come to.

    Args:
        command: the command that made the runs.
        runs: one for each kernel set; at least one took the model.
        triggers: the inputs.
        outcomes: an outcome for each input, by kernel set.

    """
    document = next(one.result for one in runs if one.result is not None)
    goal = document.plan.goal
    goals = [goal.unmutated if one.unmutated else goal for one in triggers]
    agreement = agreements(outcomes, goals)
    deviating = Counter(name for one in agreement for name in one.deviating)
    alone = Counter(one.alone for one in agreement)
    rows = tuple(
        _figures(run, deviating[run.profile.kernels], alone[run.profile.kernels]) for run in runs
    )
    return Matrix(command, document.pair.name, goal, rows, tuple(triggers), tuple(agreement))


def _figures(run: KernelSetRun[RunDocument], deviating: int, alone: int) -> KernelSetFigures:
    kernels, device, document = run.profile.kernels, run.profile.name, run.result
    if document is None:
        return KernelSetFigures(kernels, device, run.refused)
    totals = document.totals
    return KernelSetFigures(
        kernels=kernels,
        device=device,
        provenance=document.devices[0].provenance,
        seeds=totals.seeds,
        deviating_seeds=totals.deviating_seeds,
        findings=totals.findings,
        deviating=deviating,
        alone=alone,
    )
