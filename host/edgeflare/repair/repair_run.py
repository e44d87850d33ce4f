"""A run repaired: everything from its seeds and triggers to a repaired model, or a plain no."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.models.preprocess import Encoder
from edgeflare.repair.boundary_set import BoundarySet, gather
from edgeflare.repair.cross_validation import (
    ABSTAINING,
    PERCEPTRON,
    RECKLESS,
    SECOND,
    SHIFTS,
    JudgedRepairer,
    evaluate,
)
from edgeflare.repair.fresh_inputs import FreshCounts, FreshInputs, ask_fresh, load_fresh
from edgeflare.repair.mixture import Mixture
from edgeflare.repair.model_to_repair import (
    ModelToRepair,
    read_model_to_repair,
    require_probabilities,
)
from edgeflare.repair.perceptron import (
    require_scikit_learn,
    second_class,
    train,
    train_abstaining,
)
from edgeflare.repair.repair_cost import Cost, measure, outputs_on
from edgeflare.repair.repair_samples import Samples
from edgeflare.repair.run_to_repair import (
    KnownInputs,
    RunToRepair,
    evaluate_known_inputs,
    open_run_to_repair,
)
from edgeflare.repair.shift_effects import fold_rows, shift_effects
from edgeflare.repair.shift_fitting import Fitted, fit
from edgeflare.repair.shifts import Shifts, append, standalone
from edgeflare.repair.training_inputs import TrainingInputs, training_inputs
from edgeflare.replay.past_run import PastRun

MODEL = "repaired.tflite"

ALONE = "shifts.tflite"
"""The shifts without the model, for one that cannot be edited."""

Tell = Callable[[str, int, int], None]
"""Is told what is being done, how much of it, and how much there is."""


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What is asked of a repair.

    Attributes:
        rounds: searches from each seed for near-boundary inputs.
        mixture: what a repairer is judged by.
        test: fresh inputs, or None.

    """

    rounds: int
    mixture: Mixture
    test: Path | None


@dataclass(frozen=True, slots=True)
class Repaired:
    """A repaired model, and what became of it on the devices.

    Attributes:
        model: its file.
        alone: the file of the shifts alone.
        cost: beside the model before, on the first device.
        asked: inputs that it was asked about, all devices together.
        same_labels: those of them on which it gave the label that the host works out from what
            the model before gave there.

    """

    model: bytes
    alone: bytes
    cost: Cost
    asked: int
    same_labels: int


@dataclass(frozen=True, slots=True)
class Repair:
    """A run that was repaired, or could not be.

    Attributes:
        known: its seeds and triggers.
        near: the third set.
        material: both, as repairers see them.
        columns: the repairers on held-out folds, by name.
        ceiling: the largest net that shifts reach on the inputs that they are fitted to.
        fitted: the shifts, fitted to everything.
        fresh: deviations on fresh inputs, before and by repairer; None where none were given.
        repaired: the repaired model, or None where none is to be kept.
        verified: inputs that a repaired model was asked about, whether it is kept or not.
        why: why it was written, or not.
        devices: name and provenance of each device, as plain JSON values.

    """

    known: KnownInputs
    near: BoundarySet
    material: TrainingInputs
    columns: Mapping[str, JudgedRepairer]
    ceiling: float
    fitted: Fitted
    fresh: tuple[FreshInputs, Mapping[str, FreshCounts]] | None
    repaired: Repaired | None
    verified: int
    why: str
    devices: Sequence[Mapping[str, object]]


def repair(
    past: PastRun, pair: Pair, profiles: Sequence[Profile], wanted: RepairRequest, tell: Tell
) -> Repair:
    """Repair the deviations of a run, if there is a gain; nothing is written.

    Args:
        past: the run.
        pair: as `past.pair` returns it.
        profiles: the devices to ask.
        wanted: what is asked.
        tell: is told how far it is.

    Raises:
        UserError: the run has too few triggers, its models are gone or cannot be repaired.
        InfrastructureError: a device or a worker process is lost for good.

    """
    require_scikit_learn()
    target = _target(pair)
    with ExitStack() as stack:
        subject = open_run_to_repair(past, pair, profiles, stack)
        require_probabilities(subject.decoder, str(pair.compressed))
        inputs = None if wanted.test is None else load_fresh(subject, wanted.test)
        known = evaluate_known_inputs(subject)
        near = gather(subject, known, wanted.rounds, lambda *far: tell("look", *far))
        material = training_inputs(known, near, wanted.mixture)
        gains = shift_effects(material)
        columns = evaluate(material, gains, lambda *far: tell("train", *far))
        rows = fold_rows(material.folds(0))
        fitted = fit(gains, rows)
        fresh = None
        if wanted.test is not None and inputs is not None:
            asked = ask_fresh(subject, wanted.test, inputs, lambda *far: tell("test", *far))
            reckless = fit(gains.mixture_only, rows[gains.mixed])
            both = {RECKLESS: reckless.shifts, SHIFTS: fitted.shifts}
            fresh = asked, _counted(asked, material, both)
        gained, why = verdict(columns[SHIFTS], fitted, fresh)
        repaired, verified = None, 0
        if gained:
            tell("measure", 0, 1)
            made = _append(subject, known, target, fitted.shifts)
            verified = made.asked
            tell("measure", 1, 1)
            repaired, why = kept(made, why)
        devices = [
            {"name": device.profile.name, "provenance": device.provenance.to_json()}
            for device in subject.opened.devices
        ]
    return Repair(
        known,
        near,
        material,
        columns,
        gains.ceiling,
        fitted,
        fresh,
        repaired,
        verified,
        why,
        devices,
    )


def _target(pair: Pair) -> ModelToRepair:
    try:
        content = pair.compressed.read_bytes()
    except OSError as error:
        raise UserError(f"{pair.compressed} cannot be read: {error.strerror}") from None
    return read_model_to_repair(content, str(pair.compressed))


def _counted(
    fresh: FreshInputs, material: TrainingInputs, shifts: Mapping[str, Shifts]
) -> dict[str, FreshCounts]:
    """Count deviations on fresh inputs, with repairers that were trained with everything."""
    return {
        "before": fresh.before(),
        PERCEPTRON: fresh.after_labels(train(material, 0)),
        ABSTAINING: fresh.after_labels(train_abstaining(material, 0)),
        SECOND: fresh.after_labels(second_class),
        **{name: fresh.after(partial(_scores, one)) for name, one in shifts.items()},
    }


def _scores(shifts: Shifts, samples: Samples) -> NDArray[np.generic]:
    return shifts.apply(samples.raw, samples.tensor)


def verdict(
    column: JudgedRepairer,
    fitted: Fitted,
    fresh: tuple[FreshInputs, Mapping[str, FreshCounts]] | None,
) -> tuple[bool, str]:
    """Say whether a repairer is to be written, and why."""
    net = column.net
    interval = f"{100 * net.low:+.1f} to {100 * net.high:+.1f} points"
    if not fitted.pairs:
        return False, "no shift of a boundary gains anything on inputs that it was not fitted to"
    if net.low <= 0.0:
        return False, (
            "the net on held-out inputs is not surely above zero "
            f"({100 * net.value:+.1f} points, 95 % interval {interval})"
        )
    if column.unled_broken > column.unled_mended:
        return False, (
            f"of held-out inputs as they come {column.unled_broken:.1f} begin to deviate, and "
            f"{column.unled_mended:.1f} no longer do"
        )
    if fresh is not None:
        before, after = fresh[1]["before"].deviations, fresh[1][SHIFTS].deviations
        if after > before:
            return False, f"on fresh data {after} inputs would deviate instead of {before}"
    return True, (
        f"on held-out inputs {100 * net.value:.1f} of 100 fewer deviate (95 % interval {interval})"
    )


def kept(repaired: Repaired, why: str) -> tuple[Repaired | None, str]:
    """Return a repaired model if it does on the devices what it was judged by, and why or not."""
    if repaired.same_labels == repaired.asked:
        return repaired, why
    return None, (
        "on the device the same labels as were worked out came on "
        f"{repaired.same_labels} of {repaired.asked} inputs only"
    )


def _append(
    subject: RunToRepair, known: KnownInputs, target: ModelToRepair, shifts: Shifts
) -> Repaired:
    """Append the shifts to the model, and try it on all devices."""
    before, devices = subject.opened.pair.compressed, subject.opened.devices
    content = append(before.read_bytes(), shifts, target, str(before))
    images = np.concatenate([known.seed_images, known.trigger_images])
    inputs = Encoder(subject.opened.pair.preprocess, target.inputs[0]).encode(images)
    same = 0
    with tempfile.TemporaryDirectory() as folder:
        after = Path(folder) / MODEL
        after.write_bytes(content)
        for device in devices:
            was = shifts.apply(outputs_on(device, before, inputs), target.output)
            now = outputs_on(device, after, inputs)
            same += int((was.argmax(axis=1) == now.argmax(axis=1)).sum())
        cost = measure(devices[0], before, after, inputs)
    alone = standalone(shifts, target)
    return Repaired(content, alone, cost, len(inputs) * len(devices), same)
