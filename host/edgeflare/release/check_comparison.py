"""Two or more checks side by side, such as those of two releases: what got better or worse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from edgeflare.core.query import Arm
from edgeflare.pages.facts import in_words, significant
from edgeflare.pages.page import Table
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.figures.device_figures import DeviceFigures
from edgeflare.release.gates import CheckGate, State

_RANK: Final[Mapping[State, int]] = {"fail": 0, "open": 1, "pass": 2}
"""How good the end of a gate is, where it was checked."""

_UNKNOWN: Final = "–"
"""What stands for a figure that a check has not."""


class GateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A gate that ended otherwise in a later check.

    Attributes:
        gate: name of the gate, with the device where it is about one.
        before: how it ended in the first check.
        after: how it ended in the last one.
        better: whether that is better.

    """

    gate: str
    before: State
    after: State
    better: bool


def gate_changes(first: CheckDocument, last: CheckDocument) -> Iterator[GateChange]:
    """Yield the gates that were checked twice and ended otherwise, the worse first.

    Devices are told apart by their order, since a later one may have another name.
    """
    changes = [
        GateChange(
            gate=gate.title,
            before=its.state,
            after=gate.state,
            better=_RANK[gate.state] > _RANK[its.state],
        )
        for its, gate in _ended_otherwise(first, last)
        if its.state in _RANK and gate.state in _RANK
    ]
    yield from sorted(changes, key=lambda change: change.better)


def _ended_otherwise(
    first: CheckDocument, last: CheckDocument
) -> Iterator[tuple[CheckGate, CheckGate]]:
    """Yield the gates of two checks that ended otherwise by the same limit."""
    before = {_place(gate, first): gate for gate in first.gates}
    for gate in last.gates:
        its = before.get(_place(gate, last))
        if its is not None and its.state != gate.state and its.limit == gate.limit:
            yield its, gate


def _place(gate: CheckGate, document: CheckDocument) -> tuple[str, int]:
    devices = document.plan.devices
    return gate.name, devices.index(gate.device) if gate.device in devices else -1


def comparison_table(documents: Mapping[str, CheckDocument]) -> Table:
    """Return checks side by side, by the names of their folders."""
    given = list(documents.values())
    names = list(dict.fromkeys((gate.name, at) for each in given for gate, at in _placed(each)))
    rows: list[tuple[str, ...]] = [
        ("verdict", *(document.verdict for document in given)),
        (
            "cause",
            *(
                _UNKNOWN if document.cause is None else document.cause.sentence
                for document in given
            ),
        ),
        ("devices", *(", ".join(document.plan.devices) for document in given)),
        ("inputs", *(_inputs(document) for document in given)),
        *(
            (_name(name, at, given), *(_state(document, name, at) for document in given))
            for name, at in names
        ),
        *_figures(given),
    ]
    return Table.of_words(("", *documents), rows)


def _figures(given: Sequence[CheckDocument]) -> Iterator[tuple[str, ...]]:
    """Yield rows of figures that no gate is about; those that no check has are left out."""
    rows = {
        "right": [_of_device(document, _right) for document in given],
        "changed": [_of_device(document, _changed) for document in given],
        "by kernels": [
            _of_device(document, lambda device: str(device.kernels.changes.strictly))
            for document in given
        ],
        "SQNR by compression": [_of_device(document, _sqnr) for document in given],
        "bytes": [_bytes(document) for document in given],
        "median ms": [_milliseconds(document) for document in given],
        "near": [_near(document) for document in given],
    }
    yield from ((name, *cells) for name, cells in rows.items() if {*cells} != {_UNKNOWN})


def _of_device(document: CheckDocument, of: Callable[[DeviceFigures], str]) -> str:
    """Return a figure of each device of a check, in their order."""
    return ", ".join(map(of, document.figures.devices)) or _UNKNOWN


def _right(device: DeviceFigures) -> str:
    its = device.decisions
    right = its.right.get(Arm.DEVICE)
    return _UNKNOWN if right is None else f"{right / its.labelled:.1%}"


def _changed(device: DeviceFigures) -> str:
    changes = device.decisions.changes
    return f"{changes.changed} ({changes.harmed} harmed, {changes.helped} helped)"


def _sqnr(device: DeviceFigures) -> str:
    found = [output.compression for output in device.outputs if output.compression is not None]
    known = [error.snr_db for error in found if error.snr_db is not None]
    return f"{min(known):.1f} dB" if known else _UNKNOWN


def _bytes(document: CheckDocument) -> str:
    file = document.figures.file
    return _UNKNOWN if file is None else f"{file.compressed_bytes:,}"


def _milliseconds(document: CheckDocument) -> str:
    known = [cost.compressed for cost in document.figures.costs if cost.compressed is not None]
    return ", ".join(significant(1e3 * time.median_seconds) for time in known) or _UNKNOWN


def _near(document: CheckDocument) -> str:
    near = document.figures.near
    if near is None or near.model.nearness_db is None:
        return _UNKNOWN
    return f"{near.model.nearness_db:.0f} dB ({near.model.found} of {near.model.seeds})"


def _placed(document: CheckDocument) -> Iterator[tuple[CheckGate, int]]:
    for gate in document.gates:
        yield gate, _place(gate, document)[1]


def _name(name: str, at: int, given: Sequence[CheckDocument]) -> str:
    several = any(len(document.plan.devices) > 1 for document in given)
    return f"{name} ({at + 1})" if several and at >= 0 else name


def _inputs(document: CheckDocument) -> str:
    data = document.figures.data
    return _UNKNOWN if data is None else f"{data.inputs:,}"


def _state(document: CheckDocument, name: str, at: int) -> str:
    for gate, place in _placed(document):
        if (gate.name, place) == (name, at):
            seen = "" if gate.seen is None else f" {gate.seen.in_words()}"
            return f"{in_words(gate.state)}{seen}"
    return _UNKNOWN


def changes_in_words(documents: Mapping[str, CheckDocument]) -> list[str]:
    """Return what got better or worse from the first check to the last, a sentence each."""
    (before, first), *_, (after, last) = documents.items()
    said = [
        f"{'better' if change.better else 'worse'}: {change.gate} was {change.before} in {before},"
        f" and is {change.after} in {after}"
        for change in gate_changes(first, last)
    ]
    if first.verdict != last.verdict:
        said.insert(
            0, f"the verdict was {first.verdict} in {before}, and is {last.verdict} in {after}"
        )
    said += _not_alike(first, last)
    return said or ["no gate ended otherwise"]


def _not_alike(first: CheckDocument, last: CheckDocument) -> Iterator[str]:
    """Yield why two checks are not to be compared in all."""
    if first.pair != last.pair:
        yield f"they are of different pairs: {first.pair} and {last.pair}"
    if _inputs(first) != _inputs(last):
        yield f"they have {_inputs(first)} and {_inputs(last)} inputs"
    for its, gate in _ended_otherwise(first, last):
        if "not-checked" in (its.state, gate.state):
            yield f"{gate.title} was {in_words(its.state)}, and is {in_words(gate.state)}"
    for name in dict.fromkeys((*first.plan.gates, *last.plan.gates)):
        one, other = first.plan.gates.get(name), last.plan.gates.get(name)
        if one != other:
            yield f"the limit of {name} was {_limit(one)}, and is {_limit(other)}"


def _limit(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:g}"
