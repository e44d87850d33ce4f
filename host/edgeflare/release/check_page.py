"""A check as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from edgeflare.core.query import Arm
from edgeflare.pages.facts import shortened
from edgeflare.pages.page import (
    Block,
    Bullets,
    Card,
    Cards,
    Illustration,
    Mark,
    Page,
    Row,
    Section,
    Table,
    TableCell,
)
from edgeflare.release.causes.cause import capitalized
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.check_verdict import Name
from edgeflare.release.figures.decisions import SHOWN, ChangedInput
from edgeflare.release.figures.device_figures import DeviceFigures
from edgeflare.release.gates import CheckGate, State
from edgeflare.release.measurement_tables import measured_sections
from edgeflare.release.sections import SECTION_OF, STATES

_MARKS: Final[Mapping[Name, Mark]] = {
    "ship": "pass",
    "do-not-ship": "fail",
    "undecided": "attention",
}

_WORDS: Final[Mapping[Name, str]] = {
    "ship": "May ship",
    "do-not-ship": "Do not ship",
    "undecided": "Undecided",
}

_OF_GATES: Final[Mapping[State, str]] = {
    "pass": "✔ pass",
    "fail": "✖ fail",
    "open": "? open",
    "not-checked": "– not checked",
}


def check_page(
    document: CheckDocument, drawn: Mapping[str, Callable[[], str]] = MappingProxyType({})
) -> Page:
    """Return what a check says.

    Args:
        document: document of the check.
        drawn: draws what only a browser shows, as HTML, by the id of the section.

    """
    devices = document.figures.devices
    return Page(
        kind="EdgeFlare check",
        name=document.pair,
        on=", ".join(document.plan.devices),
        question=f"May {document.pair} ship?",
        mark="pass" if document.passes else _MARKS[document.verdict],
        lead=_lead(document),
        words=[*_evidence(document), f"Next: {document.next_step}.", *_command(document)],
        warnings=[*_stopped(document), *_not_done(document)],
        sections=[
            Section(
                id="changed",
                title="Look at these",
                words="Inputs that the device decides otherwise: those first that it alone gets"
                " wrong, of these the most confident; those last that only the host decides"
                " otherwise.",
                blocks=_looked_at(devices, drawn.get("changed")),
            ),
            Section(
                id="gates",
                title="Gates",
                words="A gate passes or fails where its interval of 95 % lies on one side of the"
                " limit. Else it is open, and so many inputs like these would decide it.",
                blocks=[gates_table(document)],
            ),
            Section(
                id="assumed",
                title="Assumed",
                blocks=[Bullets(document.notes, most=_NOTES, brief=_BRIEF_NOTE)],
            ),
            Section(
                id="sections",
                title="What was looked into",
                blocks=[_instead(drawn.get("sections"), _sections(document))],
            ),
            *measured_sections(document, drawn),
        ],
        source="check.json",
        version=document.edgeflare,
    )


def _lead(document: CheckDocument) -> str:
    cause = document.cause
    said = document.sentence if cause is None else cause.sentence
    if document.plan.about == "device" and document.devices_match_host:
        return said
    return f"{_WORDS[document.verdict]}. {said}"


def _evidence(document: CheckDocument) -> list[str]:
    cause = document.cause
    if cause is None or not cause.evidence:
        return []
    return [f"{capitalized(cause.evidence)}."]


def _command(document: CheckDocument) -> Iterator[str]:
    """Yield the command that looks further into what is wrong."""
    cause = document.cause
    for section in document.sections:
        if cause is not None and section.command and section.name == SECTION_OF[cause.rule]:
            yield f"Look further: {section.command}"


def _stopped(document: CheckDocument) -> list[str]:
    by = {
        None: "",
        "time-limit": "its time was up: give it more with --time-limit, and --resume",
        "interrupt": "Ctrl-C stopped it: go on with --resume",
        "sigterm": "SIGTERM stopped it: go on with --resume",
        "infrastructure": "a device or a process was lost: go on with --resume",
        "killed": "it is under way, or was killed: then go on with --resume",
    }[document.stopped_by]
    missed = ", ".join(document.figures.cut)
    return [f"This is not all, {by}{missed and f' (cut off: {missed})'}"] if by else []


def _not_done(document: CheckDocument) -> Iterator[str]:
    """Yield what could not be looked into on a device, and why; the sections tell the rest."""
    for name, why in document.figures.missing.items():
        if name.startswith(("layers on ", "operators on ")):
            yield f"The {name} were not looked into: {why}"


def _sections(document: CheckDocument) -> Table:
    rows = [
        # Of what passes the first words say enough here; a browser shows all of them.
        (
            shown_section.name,
            STATES[shown_section.state],
            shown_section.sentence.partition(";")[0] if passes else shown_section.sentence,
        )
        for shown_section in document.shown_sections
        for passes in [shown_section.state == "pass"]
    ]
    return Table(
        title="",
        header=("section", "state", "what was seen"),
        rows=rows,
        numbers_from=3,
        brief=_BRIEF_SECTION,
    )


_BRIEF_SECTION: Final = 53
"""Characters with which a row of the sections is one line of a terminal of 80."""


def gates_table(document: CheckDocument) -> Table:
    """Return how the gates of a check ended, the worst first."""
    several = len(document.plan.devices) > 1
    rows: list[Row] = [
        (
            gate.name,
            *([TableCell(shortened(gate.device, _DEVICE), gate.device)] if several else []),
            _OF_GATES[gate.state],
            gate.sentence if gate.seen is None else gate.seen.in_words(),
            f"{gate.limit:g}",
            *(
                []
                if several
                else ["" if gate.inputs_to_decide is None else f"{gate.inputs_to_decide:,}"]
            ),
        )
        for gate in _worst_first(document.gates)
    ]
    return Table(
        title="",
        header=(
            *("gate", *(["device"] if several else []), "state", "seen", "limit"),
            *([] if several else ["decided by"]),
        ),
        rows=rows,
        numbers_from=4 if several else 3,
        missed_least=("decided by",),
        most=_GATES,
        order="worst",
        brief=_BRIEF_OF_SEVERAL if several else _BRIEF_GATE,
        note=_rounded_up(document),
    )


def _rounded_up(document: CheckDocument) -> str:
    """Return which gates are within their limits by an input more, in a sentence; or nothing."""
    several = len(document.plan.devices) > 1
    given = [
        f"{gate.title if several else gate.name} ({gate.allowed})"
        for gate in document.gates
        if gate.allowed
    ]
    if document.plan.strict or not given:
        return ""
    return f"Within the limit since that is rounded up to whole inputs: {', '.join(given)}."


_DEVICE: Final = 16
"""Characters of a device's name beside a gate, where there are several."""


def _worst_first(gates: Sequence[CheckGate]) -> list[CheckGate]:
    """Return gates by how they ended, and of these each kind's first before a second one of any."""
    seen: Counter[tuple[str, str]] = Counter()
    order: dict[CheckGate, tuple[int, int]] = {}
    for gate in gates:
        order[gate] = (_ORDER.index(gate.state), seen[gate.name, gate.state])
        seen[gate.name, gate.state] += 1
    return sorted(gates, key=order.__getitem__)


_ORDER: Final[Sequence[State]] = ("fail", "open", "not-checked", "pass")
"""How gates are listed."""

_GATES: Final = 4
"""Gates that are listed where there is little room."""

_BRIEF_GATE: Final = 30
"""Characters with which a row of the gates is one line of a terminal of 80."""

_BRIEF_OF_SEVERAL: Final = 26
"""Likewise of the gates of several devices."""


def _looked_at(devices: tuple[DeviceFigures, ...], draw: Callable[[], str] | None) -> list[Block]:
    cards = [
        _card(changed_input, device.decisions.device, several=len(devices) > 1)
        for device in devices
        for changed_input in device.decisions.changed_inputs
    ]
    changed = Cards(cards, most=SHOWN, noun="input", brief=_BRIEF_CARD)
    kept = any(
        changed_input.file
        for device in devices
        for changed_input in device.decisions.changed_inputs
    )
    return [_instead(draw if kept else None, changed)]


def _instead(draw: Callable[[], str] | None, block: Table | Cards) -> Block:
    """Return what only a browser shows, with a block for all others; or that alone."""
    return block if draw is None else Illustration(draw, block)


def _card(changed: ChangedInput, device: str, *, several: bool) -> Card:
    on = f" on {device}" if several else ""
    right = f"; right: {changed.right}" if changed.right else ""
    twin = f"; twin: {changed.said[Arm.TWIN]}" if Arm.ORIGINAL in changed.said else ""
    return Card(
        id=f"{device}-{changed.seed_id}" if several else f"input-{changed.seed_id}",
        number=shortened(changed.name, _NAME),
        title=f"{changed.change}{on}{right}{twin}",
    )


_NOTES: Final = 2
"""Assumptions that a terminal lists."""

_BRIEF_NOTE: Final = 76
"""Characters with which an assumption is one line of a terminal of 80."""

_NAME: Final = 16
"""Characters of a file's name."""

_BRIEF_CARD: Final = 62
"""Characters with which an input is one line of a terminal of 80."""
