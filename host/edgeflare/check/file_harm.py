"""Whether a compressed file does harm to decisions, and which of its faults count."""

from __future__ import annotations

from typing import Final

from edgeflare.check.figures.check_figures import CheckFigures
from edgeflare.check.figures.device_figures import DeviceFigures
from edgeflare.check.figures.file import FileFault
from edgeflare.core.query import Arm
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


_ALWAYS: Final = frozenset({"unread input", "raw state", "overflow", "not finite"})
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
