"""The steps of a repair by shifts: from a run's seeds and triggers to a model or a refusal."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.repair.repair_cost import Cost, measure, outputs_on
from edgeflare.repair.repair_progress import ReportProgress
from edgeflare.repair.repaired_pair import MODEL
from edgeflare.repair.shifts.boundary_set import BoundarySet, gather
from edgeflare.repair.shifts.cross_validation import (
    ABSTAINING,
    MIXTURE_ONLY,
    PERCEPTRON,
    SECOND,
    SHIFTS,
    JudgedRepairer,
    evaluate,
)
from edgeflare.repair.shifts.fresh_inputs import (
    FreshCounts,
    FreshInputs,
    ask_fresh,
    load_fresh,
)
from edgeflare.repair.shifts.mixture import Mixture
from edgeflare.repair.shifts.model_to_repair import (
    ModelToRepair,
    read_model_to_repair,
    require_probabilities,
)
from edgeflare.repair.shifts.perceptron import (
    require_scikit_learn,
    second_class,
    train,
    train_abstaining,
)
from edgeflare.repair.shifts.repair_samples import Samples
from edgeflare.repair.shifts.run_to_repair import (
    RunInputs,
    RunToRepair,
    evaluate_run_inputs,
    open_run_to_repair,
)
from edgeflare.repair.shifts.shift_effects import fold_rows, shift_effects
from edgeflare.repair.shifts.shift_fitting import Fitted, fit
from edgeflare.repair.shifts.shifts import Shifts, append, standalone
from edgeflare.repair.shifts.training_inputs import TrainingInputs, training_inputs
from edgeflare.replay.past_run import PastRun

STANDALONE = "shifts.tflite"
"""The shifts without the model, for one that cannot be edited."""


@dataclass(frozen=True, slots=True)
class ShiftRequest:
    """The settings of a repair by shifts.

    Attributes:
        rounds: searches from each seed for near-boundary inputs.
        mixture: the shares of inputs by which repairers are judged.
        test: file or folder of fresh inputs, or None.

    """

    rounds: int
    mixture: Mixture
    test: Path | None


@dataclass(frozen=True, slots=True)
class Shifted:
    """A repaired model, and how it compares with the model before on the devices.

    Attributes:
        model: content of its file.
        standalone: content of a file with the shifts alone.
        cost: size and speed before and after, on the first device.
        asked: number of inputs that the devices evaluated.
        same_labels: those of them on which the device gave the label that the host computes by
            applying the shifts to the outputs of the model before.

    """

    model: bytes
    standalone: bytes
    cost: Cost
    asked: int
    same_labels: int


@dataclass(frozen=True, slots=True)
class ShiftRepair:
    """The outcome of a repair by shifts.

    Attributes:
        run_inputs: the run's seeds and triggers.
        boundary_set: inputs near the boundary.
        training: both, as repairers are trained with them.
        repairers: the effect of each repairer on held-out folds, by name.
        ceiling: the largest net that shifts reach on the inputs that they are fitted to.
        fitted: the shifts, fitted to all inputs.
        fresh: fresh inputs, and their counts before and after each repairer; None where no fresh
            inputs were given.
        repaired: the repaired model, or None where none is to be written.
        verified: number of inputs that a repaired model was evaluated on, kept or not.
        why: why a model is written, or not.
        devices: name and provenance of each device, as plain JSON values.

    """

    run_inputs: RunInputs
    boundary_set: BoundarySet
    training: TrainingInputs
    repairers: Mapping[str, JudgedRepairer]
    ceiling: float
    fitted: Fitted
    fresh: tuple[FreshInputs, Mapping[str, FreshCounts]] | None
    repaired: Shifted | None
    verified: int
    why: str
    devices: Sequence[Mapping[str, object]]


def repair_by_shifts(
    past: PastRun,
    pair: Pair,
    profiles: Sequence[Profile],
    request: ShiftRequest,
    progress: ReportProgress,
) -> ShiftRepair:
    """Repair the deviations of a run, if there is a gain; nothing is written.

    Args:
        past: the run.
        pair: as `past.pair` returns it.
        profiles: the devices to ask.
        request: the settings.
        progress: is called as the steps go on.

    Raises:
        UserError: the run has too few triggers, its models are gone or cannot be repaired.
        InfrastructureError: a device or a worker process is lost for good.

    """
    require_scikit_learn()
    model = _read_model(pair)
    with ExitStack() as stack:
        run = open_run_to_repair(past, pair, profiles, stack)
        require_probabilities(run.decoder, str(pair.compressed))
        fresh_inputs = None if request.test is None else load_fresh(run, request.test)
        run_inputs = evaluate_run_inputs(run)
        boundary_set = gather(run, run_inputs, request.rounds, partial(progress, "look"))
        training = training_inputs(run_inputs, boundary_set, request.mixture)
        effects = shift_effects(training)
        repairers = evaluate(training, effects, partial(progress, "train"))
        rows = fold_rows(training.folds(0))
        fitted = fit(effects, rows)
        fresh = None
        if request.test is not None and fresh_inputs is not None:
            asked = ask_fresh(run, request.test, fresh_inputs, partial(progress, "test"))
            mixture_only = fit(effects.mixture_only, rows[effects.mixed])
            both = {MIXTURE_ONLY: mixture_only.shifts, SHIFTS: fitted.shifts}
            fresh = asked, _counted(asked, training, both)
        gained, why = verdict(repairers[SHIFTS], fitted, fresh)
        repaired, verified = None, 0
        if gained:
            progress("measure", 0, 1)
            made = _append(run, run_inputs, model, fitted.shifts)
            verified = made.asked
            progress("measure", 1, 1)
            repaired, why = kept(made, why)
        devices = [
            {"name": device.profile.name, "provenance": device.provenance.to_json()}
            for device in run.opened.devices
        ]
    return ShiftRepair(
        run_inputs=run_inputs,
        boundary_set=boundary_set,
        training=training,
        repairers=repairers,
        ceiling=effects.ceiling,
        fitted=fitted,
        fresh=fresh,
        repaired=repaired,
        verified=verified,
        why=why,
        devices=devices,
    )


def _read_model(pair: Pair) -> ModelToRepair:
    try:
        content = pair.compressed.read_bytes()
    except OSError as error:
        raise UserError(f"{pair.compressed} cannot be read: {error.strerror}") from None
    return read_model_to_repair(content, str(pair.compressed))


def _counted(
    fresh: FreshInputs, training: TrainingInputs, shifts: Mapping[str, Shifts]
) -> dict[str, FreshCounts]:
    """Count deviations on fresh inputs, with repairers that were trained with all inputs."""
    return {
        "before": fresh.before(),
        PERCEPTRON: fresh.after_labels(train(training, 0)),
        ABSTAINING: fresh.after_labels(train_abstaining(training, 0)),
        SECOND: fresh.after_labels(second_class),
        **{name: fresh.after(partial(_scores, one)) for name, one in shifts.items()},
    }


def _scores(shifts: Shifts, samples: Samples) -> NDArray[np.generic]:
    return shifts.apply(samples.raw, samples.tensor)


def verdict(
    judged: JudgedRepairer,
    fitted: Fitted,
    fresh: tuple[FreshInputs, Mapping[str, FreshCounts]] | None,
) -> tuple[bool, str]:
    """Say whether a repairer is to be written, and why."""
    net = judged.net
    interval = f"{100 * net.low:+.1f} to {100 * net.high:+.1f} points"
    if not fitted.pairs:
        return False, "no shift of a boundary gains anything on inputs that it was not fitted to"
    if net.low <= 0.0:
        return False, (
            "the net on held-out inputs is not surely above zero "
            f"({100 * net.value:+.1f} points, 95 % interval {interval})"
        )
    if judged.sampled_induced > judged.sampled_repaired:
        return False, (
            f"of held-out inputs as they come {judged.sampled_induced:.1f} begin to deviate, and "
            f"{judged.sampled_repaired:.1f} no longer do"
        )
    if fresh is not None:
        before, after = fresh[1]["before"].deviations, fresh[1][SHIFTS].deviations
        if after > before:
            return False, f"on fresh data {after} inputs would deviate instead of {before}"
    return True, (
        f"on held-out inputs {100 * net.value:.1f} of 100 fewer deviate (95 % interval {interval})"
    )


def kept(repaired: Shifted, why: str) -> tuple[Shifted | None, str]:
    """Return a repaired model if its labels on the devices are as computed, and the reason."""
    if repaired.same_labels == repaired.asked:
        return repaired, why
    return None, (
        "on the device the same labels as were worked out came on "
        f"{repaired.same_labels} of {repaired.asked} inputs only"
    )


def _append(
    run: RunToRepair, run_inputs: RunInputs, model: ModelToRepair, shifts: Shifts
) -> Shifted:
    """Append the shifts to the model, and compare it with the one before on all devices."""
    before, devices = run.opened.pair.compressed, run.opened.devices
    content = append(before.read_bytes(), shifts, model, str(before))
    images = np.concatenate([run_inputs.seed_images, run_inputs.trigger_images])
    inputs = run.opened.inputs.encoder().encode(images)
    same = 0
    with tempfile.TemporaryDirectory() as folder:
        after = Path(folder) / MODEL
        after.write_bytes(content)
        for device in devices:
            was = shifts.apply(outputs_on(device, before, inputs), model.output)
            now = outputs_on(device, after, inputs)
            same += int((was.argmax(axis=1) == now.argmax(axis=1)).sum())
        cost = measure(devices[0], before, after, inputs)
    return Shifted(content, standalone(shifts, model), cost, len(inputs) * len(devices), same)
