"""The verdict of a check: from what was measured to one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, Literal

import msgspec

from edgeflare.core.query import Arm
from edgeflare.pages.facts import count_of
from edgeflare.release.causes.cause import UNDECIDED, Cause
from edgeflare.release.causes.first_cause import find_cause
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.gates import CheckGate
from edgeflare.release.harm import UNSEEN, far_unread

Name = Literal["ship", "do-not-ship", "undecided"]


class ShipVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a check comes to.

    Attributes:
        name: whether the model may ship.
        sentence: why, without its full stop.
        next: what to do now, likewise.
        cause: what is wrong; null where nothing was found.

    """

    name: Name
    sentence: str
    next: str
    cause: Cause | None


THE_CHECK: Final = "the check"
"""What was cut off where a check has not come to its end."""

LOST: Final = "lost"
"""The name under which it is noted why a device or a process was lost."""


LEAST_LOOKED_INTO: Final = 10
"""Inputs on which layers have to be looked into, where time ends before all are, for a model to
ship: a fault that shows at all shows on most of so many."""


def judge(
    figures: CheckFigures, gates: Sequence[CheckGate], devices: Sequence[str], *, strict: bool
) -> ShipVerdict:
    """Return the verdict.

    Args:
        figures: what was measured.
        gates: how the gates ended.
        devices: the names of those that were to be asked.
        strict: whether each gate has to be decided for a model to ship.

    """
    if figures.drawn:
        verdict = _of_drawn_inputs(figures, gates)
    elif not figures.devices or figures.data is None:
        verdict = None
    elif (cause := find_cause(figures, tuple(gates))) is not None:
        verdict = _by_cause(cause, _mending(figures))
    else:
        verdict = _without_a_cause(figures, gates, strict=strict)
    if verdict is not None and verdict.name == "do-not-ship":
        return verdict
    unknown = _not_known(figures, devices)
    if unknown is None and verdict is not None:
        return verdict
    why, what = unknown or ("it was stopped before the arms had answered", "go on with --resume")
    return ShipVerdict(name="undecided", sentence=f"Not all is known: {why}", next=what, cause=None)


def _not_known(figures: CheckFigures, devices: Sequence[str]) -> tuple[str, str] | None:
    """Return what has to be known for a verdict and is not, and what to do; None where all is."""
    again = "go on with --resume"
    if why := figures.missing.get(LOST):
        return why, again
    known = {device.decisions.device for device in figures.devices}
    known |= {drawn.device.name for drawn in figures.drawn}
    for name in devices:
        if name not in known:
            refused = figures.missing.get(f"answers of {name}")
            if refused is not None:
                what = f"leave it away, or see what it takes: edgeflare conform --device {name}"
                return f"{name} refuses the model: {refused}", what
            return f"{name} was not asked", f"{again}, and a longer --time-limit"
    if THE_CHECK in figures.cut:
        return "it was stopped before its end", again
    return _no_time(figures, f"{again}, and a longer --time-limit")


def _no_time(figures: CheckFigures, what: str) -> tuple[str, str] | None:
    """Return what of the file was not looked into for want of time, and what to do; None if all."""
    seen = 0 if figures.layers is None else figures.layers.inputs
    if "layers" in figures.cut and seen < LEAST_LOOKED_INTO:
        inputs = f" on more than {count_of(seen, 'input')}" if seen else ""
        return f"there was no time for the layers{inputs}", what
    if figures.file is None and figures.layers is None and not figures.drawn:
        return "there was no time for the files", what
    return None


def _without_a_cause(
    figures: CheckFigures, gates: Sequence[CheckGate], *, strict: bool
) -> ShipVerdict:
    data = figures.data
    assert data is not None  # noqa: S101 - it was looked at before
    open_gates = [gate for gate in gates if gate.state == "open"]
    beyond = [gate for gate in gates if not gate.within]
    undecided = [gate for gate in gates if gate.state in ("open", "not-checked")]
    if beyond or (strict and undecided):
        worst = (beyond or undecided)[0]
        return ShipVerdict(
            name="undecided",
            sentence=_undecided_gate(worst),
            next=_more(worst),
            cause=None,
        )
    if data.reference is Arm.TWIN:
        return _of_the_device_alone(figures)
    seen, known = figures.fewest_inputs, bool(data.labelled)
    inputs = f"{count_of(seen, 'input')}{'' if known else ' without labels'}"
    far = f"As far as {inputs} tell, it is " if open_gates or not known else "It is "
    unread = [gate for gate in gates if gate.state == "not-checked"]
    without = f"; not checked: {', '.join(dict.fromkeys(o.name for o in unread))}" if unread else ""
    return ShipVerdict(
        name="ship",
        sentence=f"{far}{_seen(figures)}{without}",
        next=_after_shipping(figures, gates, open_gates, labelled=known),
        cause=None,
    )


def _after_shipping(
    figures: CheckFigures,
    gates: Sequence[CheckGate],
    open_gates: Sequence[CheckGate],
    *,
    labelled: bool,
) -> str:
    if not labelled:
        changed = any(device.decisions.changes.changed for device in figures.devices)
        limited = any(gate.name == "changed" for gate in gates)
        limit = ", or a limit for what changes: --gate 'changed<0.05'"
        asked = "give labels with the inputs, so that the accuracy is known"
        return f"{asked}{limit if changed and not limited else ''}"
    if open_gates:
        return _more(open_gates[0])
    return "keep this folder as what the next one is compared with"


def _undecided_gate(gate: CheckGate) -> str:
    if gate.state == "not-checked":
        return f"{gate.name} could not be checked: {gate.sentence}"
    seen = gate.seen
    interval = "" if seen is None else f" ({seen.value:.2%}, {seen.low:.2%} to {seen.high:.2%})"
    return (
        f"So few inputs do not decide {gate.name}: {gate.sentence}{interval}, and the limit is"
        f" {gate.limit:.2%}"
    )


def _of_the_device_alone(figures: CheckFigures) -> ShipVerdict:
    names = " and ".join(device.decisions.device for device in figures.devices)
    changes = [device.kernels.changes for device in figures.devices]
    changed, inputs = (
        sum(change.changed for change in changes),
        sum(change.inputs for change in changes),
    )
    tied = sum(change.by_tie for change in changes)
    ties = f", {tied} by ties" if tied else ""
    return ShipVerdict(
        name="undecided",
        sentence=f"{names} computes the file as the host does: {changed} of"
        f" {count_of(inputs, 'decision')} are others{ties}; whether the model may ship is not"
        " known without its original",
        next="give the original, and inputs with labels",
        cause=None,
    )


def _of_drawn_inputs(figures: CheckFigures, gates: Sequence[CheckGate]) -> ShipVerdict:
    if (cause := find_cause(figures, tuple(gates))) is not None:
        return _by_cause(cause)
    names = " and ".join(drawn.device.name for drawn in figures.drawn)
    inputs = sum(drawn.inputs for drawn in figures.drawn)
    far = min((drawn.sqnr_db for drawn in figures.drawn if drawn.sqnr_db is not None), default=None)
    outputs = "its outputs are equal" if far is None else f"its outputs are {far:.0f} dB away"
    return ShipVerdict(
        name="undecided",
        sentence=f"{names} computes the file as the host does: on {count_of(inputs, 'drawn input')}"
        f" {outputs}; whether the model may ship is not known without its original and data",
        next="give the original, and inputs with labels",
        cause=None,
    )


def _mending(figures: CheckFigures) -> str:
    """Return what to do about a file that may be mended; empty for one that may not."""
    known = figures.mend
    if known is not None:
        return f"check what `repair` made, in the folder {known.folder}" if known.written else ""
    tried = "mend" in figures.missing or "mend" in figures.cut
    return "see with --mend what a repair gives" if figures.mendable and not tried else ""


def _by_cause(cause: Cause, otherwise: str = "") -> ShipVerdict:
    name: Name = "undecided" if cause.rule in UNDECIDED else "do-not-ship"
    sentence = f"{cause.sentence}; {cause.evidence}" if cause.evidence else cause.sentence
    what = f"{cause.next_step}; or {otherwise}" if otherwise else cause.next_step
    return ShipVerdict(name=name, sentence=sentence, next=what, cause=cause)


def computes_as_the_host(
    figures: CheckFigures,
    gates: Sequence[CheckGate],
    cause: Cause | None,
    devices: Sequence[str],
) -> bool:
    """Whether nothing speaks against the devices, as far as the inputs tell.

    Args:
        figures: what was measured.
        gates: how the gates ended.
        cause: what is wrong; None where nothing was found.
        devices: the names of those that were to be asked.

    """
    if not (figures.devices or figures.drawn) or (
        cause is not None and cause.rule in ("data", "failures", "kernels")
    ):
        return False
    return _not_known(figures, devices) is None and all(
        gate.within for gate in gates if gate.name == "kernel-changes"
    )


def _more(gate: CheckGate) -> str:
    if gate.inputs_to_decide is None:
        return f"give more inputs, to decide {gate.name}"
    return f"{count_of(gate.inputs_to_decide, 'input')} like these would decide {gate.name}"


def _seen(figures: CheckFigures) -> str:
    """Return what was seen on the device that does worst, in a line."""
    worst = max(figures.devices, key=lambda device: device.decisions.changes.how_bad)
    its, kernels = worst.decisions, worst.kernels.changes
    tied = f", {its.changes.by_tie} of them by ties" if its.changes.by_tie else ""
    where = f" on {its.device}" if len(figures.devices) > 1 else ""
    said = (
        f"{its.changes.changed} of {count_of(its.inputs, 'decision')} changed{where}{tied},"
        f" {kernels.strictly} by kernels"
    )
    constants = next((fault for fault in figures.faults if fault.kind == "constants"), None)
    if constants is not None:  # which no compression explains
        said += f"; {constants.sentence}, {UNSEEN}"
    doubts = () if figures.file is None else figures.file.notes  # such as that both are one file
    said += "".join(f"; {also}" for also in (*islice(far_unread(figures), 1), *doubts))
    if not (its.labelled and Arm.ORIGINAL in its.right):
        found = "these inputs show" if figures.faults else "was found"
        return f"without a fault that {found}: {said}"
    first, here = its.accuracy(Arm.ORIGINAL), its.accuracy(Arm.DEVICE)
    return f"right on {here:.1%} on {its.device}, {first:.1%} as the original; {said}"
