"""What the kernel sets of a device came to, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Provenance
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_document import RunDocument

Open = Callable[[Profile, ExitStack], OpenedPair]
"""Opens the pair on a device, for as long as the stack lasts."""


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
        return dict(Counter(pair for agreement in self.agreement for pair in agreement.apart))


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
    document = next(run.result for run in runs if run.result is not None)
    goal = document.plan.goal
    goals = [goal.unmutated if trigger.unmutated else goal for trigger in triggers]
    agreement = agreements(outcomes, goals)
    deviating = Counter(name for input_agreement in agreement for name in input_agreement.deviating)
    alone = Counter(input_agreement.alone for input_agreement in agreement)
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


def evaluate_on_each(
    profiles: Sequence[Profile],
    triggers: Sequence[StoredTrigger],
    opened_on: Open,
    stopped: Callable[[], bool],
) -> dict[str, list[Outcome]] | None:
    """Evaluate inputs on each kernel set, with the arms that a search would compare.

    Args:
        profiles: profiles of the kernel sets that take the model.
        triggers: the inputs.
        opened_on: opens the pair.
        stopped: whether the user wants to stop.

    Returns:
        By kernel set, one for each input; None if it was stopped before all were evaluated.

    """
    inputs = [trigger.input for trigger in triggers]
    seed_ids = [trigger.seed_id for trigger in triggers]
    outcomes: dict[str, list[Outcome]] = {profile.kernels: [] for profile in profiles}
    for profile in profiles if triggers else ():
        with ExitStack() as stack:
            opened = opened_on(profile, stack)
            arms = tuple(opened.panel.arms)
            evaluated = opened.evaluate(inputs, seed_ids, arms, stopped)
            outcomes[profile.kernels] = [query.outcome for query in evaluated]
        if len(outcomes[profile.kernels]) < len(inputs):
            return None
    return outcomes


@dataclass(frozen=True, slots=True)
class StoredTrigger:
    """An input on which a kernel set deviates, or did when it was stored.

    Attributes:
        run: name of the run's folder, that of the kernel set.
        image: the file's path in that run directory.
        seed_id: id of the seed that it was found from, which may be the input itself.
        sha256: SHA-256 of the file.
        input: what it holds.
        unmutated: whether it is the seed itself, on which every changed decision counts.

    """

    run: str
    image: str
    seed_id: int
    sha256: str
    input: Input
    unmutated: bool = False


def stored_triggers(runs: Mapping[str, Path]) -> list[StoredTrigger]:
    """Return the deviations of runs, by seed; of equal files of one seed the first.

    What models take beside an input belongs to its seed, so equal files of two seeds are two.

    Args:
        runs: the run directories by the names of their kernel sets.

    Raises:
        UserError: one is no run, or a file is gone or damaged.

    """
    found: dict[tuple[int, str], StoredTrigger] = {}
    for name, path in runs.items():
        past = PastRun.open(path)
        for entry in past.suite:
            past.files(entry)
            stored = past.directory.load_input(entry.file)
            trigger = StoredTrigger(
                name, entry.file, entry.seed_id, entry.sha256, stored, entry.distortion.l2 == 0.0
            )
            found.setdefault((entry.seed_id, entry.sha256), trigger)
    return sorted(found.values(), key=lambda other: (other.seed_id, other.run))


FEWEST = 3
"""Kernel sets of which one can stand alone: of two that differ, either is as alone as the other."""


@dataclass(frozen=True, slots=True)
class InputAgreement:
    """What the kernel sets decide on one input.

    Attributes:
        deviating: those on which the arms that are compared deviate.
        alone: the one that differs from all others, where these agree; None where there is none.
        apart: the pairs that decide differently, the earlier one first.

    """

    deviating: tuple[str, ...]
    alone: str | None
    apart: tuple[tuple[str, str], ...]


def agreements(
    outcomes: Mapping[str, Sequence[Outcome]], goals: Sequence[Goal]
) -> list[InputAgreement]:
    """Compare what kernel sets decided on the same inputs.

    Args:
        outcomes: an outcome for each input, by kernel set; with the arms that the goal compares.
        goals: what counts as a deviation, one for each input. Unless it counts ties, two kernel
            sets that differ by a tie agree.

    Returns:
        One for each input.

    """
    by_input = zip(zip(*outcomes.values(), strict=True), goals, strict=True)
    return [
        _agreement(dict(zip(outcomes, answers, strict=True)), goal) for answers, goal in by_input
    ]


def _agreement(outcomes: Mapping[str, Outcome], goal: Goal) -> InputAgreement:
    answers = {name: outcome[Arm.DEVICE] for name, outcome in outcomes.items()}
    names = list(answers)
    apart = tuple(
        (name, other)
        for at, name in enumerate(names)
        for other in names[at + 1 :]
        if _apart(answers[name], answers[other], goal)
    )
    alone = None
    if len(names) >= FEWEST and len(apart) == len(names) - 1:
        alone = next((name for name in names if all(name in pair for pair in apart)), None)
    return InputAgreement(
        deviating=tuple(
            name for name, outcome in outcomes.items() if goal.met(outcome) is not None
        ),
        alone=alone,
        apart=apart,
    )


def _apart(one: Answer, other: Answer, goal: Goal) -> bool:
    if one.failure is not None or other.failure is not None:
        return one.failure != other.failure
    return one.differs(other) and (goal.ties or not one.differs_by_tie(other))
