"""What counts against a model: faults of its file that do harm, and what devices do otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from edgeflare.core.query import Arm
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.pages.facts import count_of, number, significant
from edgeflare.release.figures.check_figures import CheckFigures, DrawnFigures
from edgeflare.release.figures.device_figures import DeviceFigures
from edgeflare.release.figures.file import FileFault, SeenLayers
from edgeflare.statistics.binomial import sign_test
from edgeflare.statistics.proportion import share


def counted_faults(figures: CheckFigures) -> list[FileFault]:
    """Return the faults that count: those that show in decisions, or that always do harm.

    A layer may be quantized coarsely, or have other constants, where no decision suffers.
    """
    harm = any(file_does_harm(device) for device in figures.devices)
    changed = any(_changes_for_certain(device, _OTHER_CONSTANTS) for device in figures.devices)
    return [
        fault
        for fault in figures.faults
        if harm or fault.kind in _ALWAYS or (fault.kind == "constants" and changed)
    ]


UNSEEN: Final = "whose harm these inputs do not show"
"""What is said of a fault of the file that does not count."""

_ALWAYS: Final = frozenset({"unread-input", "raw-state", "overflow", "not-finite"})
"""Kinds of faults that count whether they show in the decisions on these inputs or not."""

_OTHER_CONSTANTS: Final = 0.01
"""Share of decisions that has to change for certain where a layer has other constants than rounding
and pruning leave. They may help as many of these inputs as they harm."""

SURELY: Final = 0.05
"""Greatest p by which more inputs are harmed than helped."""


def file_does_harm(device: DeviceFigures) -> bool:
    """Whether the decisions of the compressed file itself are worse than the original's.

    Where what is right is known, that is a sign test. Elsewhere many decisions have to change.
    """
    known = device.decisions
    if known.by_file is None:
        return False
    changes = known.by_file
    if known.failures(Arm.TWIN) > known.failures(Arm.ORIGINAL):
        return True
    if any(loss.left <= changes.changed for loss in known.losses):  # and kernels are not to blame
        return True
    if known.labelled:
        return changes.net > 0 and sign_test(changes.helped, changes.harmed) < SURELY
    return _changes_for_certain(device, _LEAST_CHANGED)


_LEAST_CHANGED: Final = 0.02
"""Share of inputs that compression has to change, at least, where nobody knows what is right."""


def _changes_for_certain(device: DeviceFigures, least: float) -> bool:
    """Whether compression changes more than a share of the decisions, by the interval."""
    changes = device.decisions.by_file
    if changes is None or not changes.inputs:
        return False
    return share(changes.strictly, changes.inputs).low > least


def far_unread(figures: CheckFigures) -> Iterator[str]:
    """Yield the outputs that are far off though no decision hangs on them, in words."""
    for device in figures.devices:
        for output in device.outputs:
            errors = (("the original's", output.compression), ("the host's", output.kernels))
            for whose, error in () if output.read else errors:
                if error is not None and (far := _far_off(error, whose)):
                    yield f"{output.output}, which the task does not read, is {far}"


def _far_off(error: LayerError, whose: str) -> str:
    """Return how far an output is from what it should be, in words; empty where it is near."""
    if error.not_finite_here:
        inputs = count_of(error.inputs + error.not_finite, "input")
        return f"NaN or infinity on {error.not_finite_here} of {inputs}, where {whose} is finite"
    if error.snr_db is not None and error.snr_db < _LEAST_DB:
        return f"{number(error.snr_db, 0)} dB from {whose}"
    return ""


def failure_here(device: DrawnFigures) -> str:
    """Return what a device fails at and the host does not, in words; empty where at nothing."""
    if device.failed_alone:
        kinds = ", ".join(sorted(device.failed_here))
        return f"it fails ({kinds}) on {device.failed_alone} of {count_of(device.inputs, 'input')}"
    for output in device.outputs:
        if output.not_finite_alone:
            return (
                f"it puts out NaN or infinity as {output.output} on {output.not_finite_alone} of"
                f" {count_of(device.inputs, 'input')}"
            )
    return ""


def otherwise_here(device: DrawnFigures, layers: SeenLayers | None) -> str:
    """Return what a device computes otherwise than the host, in words; empty where nothing."""
    return next(
        chain(_otherwise_in_layers(device, layers), _otherwise_in_whole(device, layers)), ""
    )


def _otherwise_in_layers(device: DrawnFigures, layers: SeenLayers | None) -> Iterator[str]:
    wrong = () if layers is None else layers.on_device.get(device.device.name, ())
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield f"it computes {wrong[0]}{more} otherwise than the host, given the same"
    if layers is not None and (joined := layers.together.get(device.device.name)):
        yield (
            f"it computes {' and '.join(joined)} rightly by themselves, and otherwise than the host"
            " together"
        )


def _otherwise_in_whole(device: DrawnFigures, layers: SeenLayers | None) -> Iterator[str]:
    if device.unsteady:
        yield f"it gives {device.unsteady} of {device.repeated} other outputs the second time"
    for way in device.variants:
        if way.kind == "batch":
            continue  # items that depend on each other may be the model's own doing
        if way.failed:
            yield f"it has no answer to {way.failed} of {way.inputs} inputs {way.way}"
        if way.snr_db is not None and way.snr_db < _LEAST_DB:
            yield f"its outputs {way.way} are {way.snr_db:.0f} dB from those one by one"
    for output in device.outputs:
        if output.constant and not output.constant_on_host:
            yield f"it puts out the same as {output.output} for all inputs"
        seen = layers is not None and device.device.name in layers.on_device
        error = None if seen else output.error
        if error is not None and error.snr_db is not None and error.snr_db < _LEAST_DB:
            yield (
                f"its output {output.output} is {error.snr_db:.0f} dB from the host's, by up to"
                f" {significant(error.max_error)}"
            )


_LEAST_DB: Final = 10.0
"""SQNR in dB below which a whole output is wrong, where its layers cannot be seen: roundings of a
hundred layers that are right by themselves have come to 17 dB."""
