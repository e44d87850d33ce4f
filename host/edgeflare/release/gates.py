"""The gates of a check: their limits, and whether its figures keep them.

A limit is the one by default, or what pairs, teams and users say instead. A gate fails only if its
interval lies beyond the limit, and passes only if it lies within. Between the two it is open: so
few inputs do not decide it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from pathlib import Path
from typing import Final, Literal

import msgspec

from edgeflare.core.query import Arm
from edgeflare.errors import UserError, suggestion
from edgeflare.models.pair_file import gates_of_file
from edgeflare.pages.csv_rows import csv_text
from edgeflare.pages.facts import count_of
from edgeflare.record.json_types import Amount, Count
from edgeflare.release.figures.check_figures import CheckFigures, DrawnFigures
from edgeflare.release.figures.condition_cells import FieldCell, FieldFigures
from edgeflare.release.figures.decisions import DecisionChanges
from edgeflare.release.figures.device_figures import DeviceFigures
from edgeflare.release.harm import counted_faults, failure_here, otherwise_here
from edgeflare.statistics.proportion import (
    ShareEstimate,
    inputs_to_decide,
    paired_difference,
    share,
    written_limit,
)


@dataclass(frozen=True, slots=True)
class GateKind:
    """A kind of gate.

    Attributes:
        limit: the largest value that passes, where the user says nothing; None where nothing is
            held to it then.
        words: what is limited, for `--help` and docs.

    """

    limit: float | None
    words: str


LIMITS: Final[Mapping[str, GateKind]] = {
    "failures": GateKind(0, "inputs without an answer, or with one that is not finite"),
    "accuracy-drop": GateKind(0.01, "share of right decisions that is lost"),
    "net-harm": GateKind(0.01, "share of inputs harmed less those helped"),
    "kernel-changes": GateKind(0.005, "share decided otherwise than by the host, but for ties"),
    "class-loss": GateKind(0.05, "share of a class that is lost, where that is significant"),
    "faults": GateKind(0, "faults of the file that show in its decisions"),
    "field-loss": GateKind(
        0.05, "share of right decisions lost under a condition of the field, where significant"
    ),
    "changed": GateKind(None, "share decided otherwise than by the original, but for ties"),
}
"""The gates by name."""


def read_limits(
    given: Sequence[str], of_pair: Mapping[str, float] | None = None, team: Path | None = None
) -> dict[str, float]:
    """Return the limits by the names of their gates, the user's in place of the others.

    Args:
        given: such as "accuracy-drop<0.02", in place of all others; "NAME<inf" leaves a gate out.
        of_pair: limits of a `pair.toml`, by name; infinity leaves a gate out.
        team: a file with a table `[gates]`, in place of those of the pair; None without.

    Raises:
        UserError: one is no gate, or the file is not what it should be; says which there are.

    """
    limits = {name: kind.limit for name, kind in LIMITS.items()}
    files = [("[gates]", of_pair or {})]
    if team is not None:
        files.append((str(team), gates_of_file(team)))
    for source, found in files:
        for name, limit in found.items():
            limits[_known(name, source)] = _from_0(name, limit, source)
    for text in given:
        match = _GIVEN.fullmatch(text.strip())
        if match is None:
            raise UserError(f"--gate {text!r}: expected NAME<NUMBER, such as 'accuracy-drop<0.02'")
        name, number = match.groups()
        limits[name] = _number(name, number)
    return {name: limit for name, limit in limits.items() if limit is not None and isfinite(limit)}


_GIVEN: Final = re.compile(r"([a-z-]+)\s*<=?\s*(inf|[0-9.eE+-]+%?)")


def _number(name: str, number: str) -> float:
    try:
        limit = written_limit(number)
    except ValueError:
        limit = -1.0
    return _from_0(_known(name, "--gate"), limit, "--gate", number)


def _known(name: str, source: str) -> str:
    if name not in LIMITS:
        raise UserError(
            f"{source}: there is no gate {name!r}{suggestion(name, LIMITS)}; gates are "
            + ", ".join(LIMITS)
        )
    return name


def _from_0(name: str, limit: float, source: str, written: str = "") -> float:
    if not limit >= 0:
        raise UserError(f"{source} {name}: {written or limit!r} is no number from 0 up")
    if isfinite(limit) and limit > 1 and name not in _COUNTS:
        raise UserError(
            f"{source} {name}: {written or limit!r} is more than all: give a share, such as 0.05"
        )
    return limit


_COUNTS: Final = frozenset({"failures", "faults"})
"""Gates whose limit is a number of things, and no share."""


State = Literal["pass", "fail", "open", "not-checked"]


class CheckGate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate, and how it ended.

    Attributes:
        name: name of the gate, such as accuracy-drop.
        device: name of the device that it is about; empty where it is about the file.
        limit: the largest value that passes.
        state: how it ended.
        seen: the figure that it is about; null where that is not known.
        sentence: what was seen, a sentence without its full stop.
        inputs_to_decide: how many inputs like these would decide it; null where it is decided, or
            none would.

    """

    name: str
    device: str
    limit: Amount
    state: State
    seen: ShareEstimate | None
    sentence: str
    inputs_to_decide: Count | None = None

    @property
    def title(self) -> str:
        """Name of the gate, with the device where it is about one."""
        return f"{self.name} on {self.device}" if self.device else self.name

    @property
    def within(self) -> bool:
        """Whether what was seen lies within the limit, though its interval may not.

        The limit is rounded up to whole inputs: 1 % of 60 inputs allows one of them.
        """
        if self.state == "open" and self.seen is not None:
            return self.seen.value * self.seen.inputs <= self._most(self.seen.inputs) + _ROUNDING
        return self.state != "fail"

    @property
    def allowed(self) -> str:
        """The inputs within the limit, such as "1 of 60", where it is rounded up for them.

        Empty where nothing hangs on that.
        """
        seen = self.seen
        if seen is None or self.state != "open" or not self.within or seen.value <= self.limit:
            return ""
        return f"{self._most(seen.inputs)} of {seen.inputs:,}"

    def _most(self, inputs: int) -> int:
        return ceil(self.limit * inputs - _ROUNDING)


_ROUNDING: Final = 1e-9
"""Error by which a count of inputs may exceed a whole number in floating point."""


def judged_gates(figures: CheckFigures, limits: Mapping[str, float]) -> tuple[CheckGate, ...]:
    """Return how the gates ended, in the order of `LIMITS`, for each device."""
    found: list[CheckGate] = []
    for name in LIMITS:
        if name not in limits:
            continue
        if figures.drawn:
            found += _drawn_gates(name, limits[name], figures)
            continue
        if name == "faults":
            found.append(_faults_gate(figures, limits[name]))
            continue
        if name == "field-loss":
            found.append(_field_gate(figures, limits[name]))
            continue
        found += (_JUDGES[name](name, limits[name], device) for device in figures.devices)
    return tuple(found)


def _drawn_gates(name: str, limit: float, figures: CheckFigures) -> Iterator[CheckGate]:
    """Yield how a gate ended for each device that was given drawn inputs."""
    if name not in ("failures", "kernel-changes"):
        return
    for device in figures.drawn:
        why = failure_here(device) if name == "failures" else otherwise_here(device, figures.layers)
        yield CheckGate(
            name=name,
            device=device.device.name,
            limit=limit,
            state="fail" if why else "pass",
            seen=None,
            sentence=why or _as_on_host(name, device),
        )


def _as_on_host(name: str, device: DrawnFigures) -> str:
    if name == "failures":
        return f"an answer to each of {count_of(device.inputs, 'input')} that the host answers"
    return f"nothing is computed otherwise than by rounding, on {count_of(device.inputs, 'input')}"


def _faults_gate(figures: CheckFigures, limit: float) -> CheckGate:
    if figures.file is None and figures.layers is None:
        return _not_checked("faults", "", limit, "neither the files nor their layers were seen")
    found = counted_faults(figures)
    words = found[0].sentence if found else "no fault of the file shows in its decisions"
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return CheckGate(
        name="faults",
        device="",
        limit=limit,
        state="fail" if len(found) > limit else "pass",
        seen=None,
        sentence=f"{words}{more}",
    )


def _field_gate(figures: CheckFigures, limit: float) -> CheckGate:
    known = figures.field
    if known is None:
        why = figures.missing.get("field", "no condition was tried")
        return _not_checked("field-loss", "", limit, why)
    if not known.ranked:
        return _not_checked("field-loss", "", limit, "the original works in no cell")
    lost = next(known.lost(limit), None)
    return CheckGate(
        name="field-loss",
        device="",
        limit=limit,
        state="fail" if lost else "pass",
        seen=None,
        sentence=_of_cell(*(lost or (known, known.ranked[0]))),
    )


def _of_cell(known: FieldFigures, cell: FieldCell) -> str:
    return (
        f"{cell.condition} at severity {cell.severity} costs {cell.net:.1%} net, beside"
        f" {max(0.0, known.unchanged.net):.1%} without it"
    )


def _not_checked(name: str, device: str, limit: float, why: str) -> CheckGate:
    return CheckGate(
        name=name, device=device, limit=limit, state="not-checked", seen=None, sentence=why
    )


def _failures(name: str, limit: float, device: DeviceFigures) -> CheckGate:
    known = device.decisions
    failed = known.failures(Arm.DEVICE, Arm.TWIN)
    return CheckGate(
        name=name,
        device=known.device,
        limit=limit,
        state="fail" if failed > limit else "pass",
        seen=None,
        sentence=f"{failed} of {known.inputs} inputs without a finite answer",
    )


def _accuracy_drop(name: str, limit: float, device: DeviceFigures) -> CheckGate:
    known = device.decisions
    if why := _no_truth(device):
        return _not_checked(name, known.device, limit, why)
    changes = known.changes
    first, its = known.accuracy(Arm.ORIGINAL), known.accuracy(Arm.DEVICE)
    words = f"right on {first:.1%} as the original, on {its:.1%} here"
    return _by_interval(name, known.device, limit, _net(changes, known.labelled), words)


def _net_harm(name: str, limit: float, device: DeviceFigures) -> CheckGate:
    known = device.decisions
    if why := _no_truth(device):
        return _not_checked(name, known.device, limit, why)
    changes = known.changes
    words = f"{changes.harmed} of {known.labelled} inputs harmed, {changes.helped} helped"
    return _by_interval(name, known.device, limit, _net(changes, known.labelled), words)


def _net(changes: DecisionChanges, labelled: int) -> Callable[[float], ShareEstimate]:
    """Return what tells the share of net harm of so many times as many inputs."""
    return lambda times: paired_difference(
        round(times * changes.harmed), round(times * changes.helped), round(times * labelled)
    )


def _strictly(changes: DecisionChanges) -> Callable[[float], ShareEstimate]:
    """Return what tells the share of strict changes of so many times as many inputs."""
    return lambda times: share(round(times * changes.strictly), round(times * changes.inputs))


def _no_truth(device: DeviceFigures) -> str:
    """Return why nobody knows what is right; empty where it is known, and held against."""
    if Arm.ORIGINAL not in device.decisions.right:
        return "no input has a label" if device.decisions.by_file else "there is no original"
    return ""


def _kernel_changes(name: str, limit: float, device: DeviceFigures) -> CheckGate:
    changes = device.kernels.changes
    words = f"{changes.strictly} of {changes.inputs} decisions are others than the host's"
    return _by_interval(name, device.decisions.device, limit, _strictly(changes), words)


def _changed(name: str, limit: float, device: DeviceFigures) -> CheckGate:
    changes = device.decisions.changes
    if device.decisions.by_file is None:
        return _not_checked(name, device.decisions.device, limit, "there is no original")
    words = f"{changes.strictly} of {changes.inputs} decisions changed"
    return _by_interval(name, device.decisions.device, limit, _strictly(changes), words)


def _class_loss(name: str, limit: float, device: DeviceFigures) -> CheckGate:
    known = device.decisions
    worst = max(known.losses, key=lambda class_loss: class_loss.share, default=None)
    if worst is None:
        return CheckGate(
            name=name,
            device=known.device,
            limit=limit,
            state="pass",
            seen=None,
            sentence="no class is lost significantly",
        )
    return CheckGate(
        name=name,
        device=known.device,
        limit=limit,
        state="fail" if worst.share > limit else "pass",
        seen=paired_difference(worst.left, worst.came, worst.inputs),
        sentence=f"{worst.name} is lost on {worst.left} of {worst.inputs} inputs, and won on"
        f" {count_of(worst.came, 'other')} (p = {worst.p_corrected:.2g})",
    )


def _by_interval(
    name: str, device: str, limit: float, at: Callable[[float], ShareEstimate], words: str
) -> CheckGate:
    """Return how a gate ended.

    Args:
        name: name of the gate.
        device: name of the device that it is about; empty where it is about the file.
        limit: the largest value that passes.
        at: returns the figure of so many times as many inputs of the same kind.
        words: what was seen.

    """
    seen = at(1.0)
    state: State = "open"
    if seen.low > limit:
        state = "fail"
    elif seen.high <= limit:
        state = "pass"
    return CheckGate(
        name=name,
        device=device,
        limit=limit,
        state=state,
        seen=seen,
        sentence=words,
        inputs_to_decide=inputs_to_decide(at, limit) if state == "open" else None,
    )


_Judge = Callable[[str, float, DeviceFigures], CheckGate]


_JUDGES: Final[Mapping[str, _Judge]] = {
    "failures": _failures,
    "accuracy-drop": _accuracy_drop,
    "net-harm": _net_harm,
    "kernel-changes": _kernel_changes,
    "class-loss": _class_loss,
    "changed": _changed,
}

_COLUMNS: Final = ("gate", "device", "state", "limit", "seen", "low", "high", "inputs", "words")


def gates_csv(gates: Iterable[CheckGate]) -> str:
    """Return gates as comma-separated values with a header (RFC 4180), a row each."""
    return csv_text(_COLUMNS, (_row(gate) for gate in gates))


def _row(gate: CheckGate) -> dict[str, object]:
    seen = gate.seen
    return {
        "gate": gate.name,
        "device": gate.device,
        "state": gate.state,
        "limit": gate.limit,
        "seen": None if seen is None else seen.value,
        "low": None if seen is None else seen.low,
        "high": None if seen is None else seen.high,
        "inputs": None if seen is None else seen.inputs,
        "words": gate.sentence,
    }
