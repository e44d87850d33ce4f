"""A check as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from edgeflare.check.check_document import CheckDocument
from edgeflare.check.figures import ChangedInput, DeviceFigures, OutputFigures
from edgeflare.check.gates import State
from edgeflare.check.sections import SectionState
from edgeflare.check.verdict import Name
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.pages.page import (
    Block,
    Card,
    Cards,
    Facts,
    Illustration,
    Mark,
    Page,
    Section,
    Table,
)

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
    "not checked": "– not checked",
}

_OF_SECTIONS: Final[Mapping[SectionState, str]] = {
    "pass": "✔ pass",
    "attention": "? attention",
    "fail": "✖ fail",
    "not checked": "– not checked",
}

_SHOWN: Final = 3
"""Changed inputs that are shown where there is little room."""


def check_page(document: CheckDocument, inputs: Callable[[], str] = str) -> Page:
    """Return what a check says.

    Args:
        document: of the check.
        inputs: draws the inputs that are looked into, as HTML; nothing unless given.

    """
    devices = document.figures.devices
    return Page(
        kind="EdgeFlare check",
        name=document.pair,
        on=", ".join(document.asked.devices),
        question=f"May {document.pair} ship?",
        mark="pass" if document.passes else _MARKS[document.verdict],
        lead=_lead(document),
        words=[*_evidence(document), f"Next: {document.next}."],
        warnings=[*_stopped(document), *document.notes],
        sections=[
            Section(
                id="changed",
                title="Look at these",
                words="Inputs that the device decides otherwise: those first that it alone gets"
                " wrong, of these the most confident.",
                blocks=_looked_at(devices, inputs),
            ),
            Section(
                id="gates",
                title="Gates",
                words="A gate passes or fails where its interval of 95 % lies on one side of the"
                " limit. Else it is open, and so many inputs like these would decide it.",
                blocks=[_gates(document)],
            ),
            Section(id="sections", title="What was looked into", blocks=[_sections(document)]),
            Section(
                id="further", title="To look further", blocks=[_further(document)], brief=False
            ),
            Section(
                id="arms",
                title="Decisions",
                words="Harmed: inputs that the reference alone gets right. Helped: those that the"
                " device alone gets right.",
                blocks=[_decisions(devices), _losses(devices)],
                brief=False,
            ),
            Section(
                id="numbers",
                title="Numbers",
                words="SQNR: of the twin's output from the original's, and of the device's from"
                " the twin's.",
                blocks=[_numbers(devices)],
                brief=False,
            ),
            Section(
                id="cost",
                title="Cost",
                words="Time of an inference as the agent measures it, of one input each, in turns."
                " First: of a model that was just opened. Ratio: compressed over original, with its"
                " interval of 95 %.",
                blocks=[_costs(document)],
                brief=False,
            ),
            Section(
                id="drawn",
                title="Drawn inputs",
                words="The device's outputs beside the host's. Constant: the same for all inputs."
                " At its ends: values at an end of the range of the output.",
                blocks=[_drawn(document)],
                brief=False,
            ),
            Section(
                id="faults",
                title="Faults of the file",
                blocks=[_faults(document)],
                brief=False,
            ),
        ],
        source="check.json",
        version=document.edgeflare,
    )


def _lead(document: CheckDocument) -> str:
    cause = document.cause
    said = document.sentence if cause is None else cause.words
    if document.asked.about == "device" and document.as_the_host:
        return said
    return f"{_WORDS[document.verdict]}. {said}"


def _evidence(document: CheckDocument) -> list[str]:
    cause = document.cause
    if cause is None or not cause.evidence:
        return []
    return [f"{cause.evidence[:1].upper()}{cause.evidence[1:]}."]


def _stopped(document: CheckDocument) -> list[str]:
    by = {
        None: "",
        "budget": "its budget was up: give it more with --budget, and --resume",
        "interrupt": "Ctrl-C stopped it: go on with --resume",
        "sigterm": "SIGTERM stopped it: go on with --resume",
        "infrastructure": "a device or a process was lost: go on with --resume",
        "killed": "it is under way, or was killed: then go on with --resume",
    }[document.stopped_by]
    missed = ", ".join(document.figures.cut)
    return [f"This is not all, {by}{missed and f' (cut off: {missed})'}"] if by else []


def _sections(document: CheckDocument) -> Table:
    rows = [
        # Of what passes the first words say enough here; the sections below have the rest.
        (one.name, _OF_SECTIONS[one.state], one.words.partition(";")[0] if passes else one.words)
        for one in document.sections
        for passes in [one.state == "pass"]
        if one.name != "mend" or one.state != "not checked"
    ]
    return Table(title="", header=("section", "state", "what was seen"), rows=rows, numbers_from=3)


def _further(document: CheckDocument) -> Facts:
    return Facts("", [(one.name, one.command) for one in document.sections if one.command])


def _gates(document: CheckDocument) -> Table:
    several = len(document.asked.devices) > 1
    rows = [
        (
            one.title if several else one.name,
            _OF_GATES[one.state],
            one.words if one.seen is None else one.seen.in_words(),
            f"{one.limit:g}",
            "" if one.decided_by is None else f"{one.decided_by:,}",
        )
        for one in document.gates
    ]
    return Table(
        title="",
        header=("gate", "state", "seen", "limit", "decided by"),
        rows=rows,
        numbers_from=3,
        missed_least=("decided by",),
    )


def _looked_at(devices: tuple[DeviceFigures, ...], inputs: Callable[[], str]) -> list[Block]:
    changed = _changed(devices)
    kept = any(one.file for device in devices for one in device.decisions.changed_inputs)
    return [Illustration(inputs, changed) if kept else changed]


def _changed(devices: tuple[DeviceFigures, ...]) -> Cards:
    cards = [
        _card(one, device.decisions.device, several=len(devices) > 1)
        for device in devices
        for one in device.decisions.changed_inputs
    ]
    return Cards(cards, most=_SHOWN, noun="input")


def _card(one: ChangedInput, device: str, *, several: bool) -> Card:
    said = {str(arm): words for arm, words in one.said.items()}
    facts = (
        [(arm, words) for arm, words in said.items() if arm == "twin"] if "original" in said else []
    )
    return Card(
        id=f"{device}-{one.seed_id}" if several else f"input-{one.seed_id}",
        number=str(one.seed_id),
        title=f"{one.change}{f' on {device}' if several else ''}"
        + (f", right: {one.right}" if one.right else ""),
        facts=[*facts, *([("file", one.name)] if one.name != str(one.seed_id) else [])],
    )


def _costs(document: CheckDocument) -> Table:
    rows = [
        (
            one.device,
            which,
            *(f"{1e3 * seconds:.3g}" for seconds in (time.median, time.high, time.first)),
            "–" if one.ratio is None else f"{one.ratio[0]:.2f}",
            "–" if one.ratio is None else f"{one.ratio[1]:.2f} to {one.ratio[2]:.2f}",
            "–" if one.worker_bytes is None else f"{one.worker_bytes / 2**20:.0f}",
            "–" if one.arena_bytes is None else f"{one.arena_bytes / 2**10:.0f}",
        )
        for one in document.figures.costs
        for which, time in (("original", one.original), ("compressed", one.compressed))
        if time is not None
    ]
    return Table(
        title="",
        header=(
            *("device", "model", "median ms", "90 % ms", "first ms", "ratio", "interval"),
            *("worker MiB", "arena KiB"),
        ),
        rows=rows,
        numbers_from=2,
    )


def _drawn(document: CheckDocument) -> Table:
    rows = [
        (
            one.device.name,
            output.output,
            *(("–",) * 5 if output.error is None else _figures(output.error)),
            f"{output.not_finite}",
            "yes" if output.constant else "no",
            f"{output.railed:.1%}",
        )
        for one in document.figures.drawn
        for output in one.outputs
    ]
    return Table(
        title="",
        header=(
            *("device", "output", "inputs", "SQNR dB", "cosine", "RMSE", "largest error"),
            *("not finite", "constant", "at its ends"),
        ),
        rows=rows,
        numbers_from=2,
    )


def _decisions(devices: tuple[DeviceFigures, ...]) -> Table:
    rows = [
        (
            one.decisions.device,
            f"{one.decisions.inputs:,}",
            *(_right(one, arm) for arm in ("original", "twin", "device")),
            f"{one.decisions.changes.changed:,}",
            f"{one.decisions.changes.by_tie:,}",
            f"{one.decisions.changes.harmed:,}",
            f"{one.decisions.changes.helped:,}",
            f"{one.kernels.changes.strictly:,}",
        )
        for one in devices
    ]
    return Table(
        title="",
        header=(
            *("device", "inputs", "original right", "twin right", "device right", "changed"),
            *("by ties", "harmed", "helped", "by kernels"),
        ),
        rows=rows,
    )


def _right(device: DeviceFigures, arm: str) -> str:
    known = {str(one): count for one, count in device.decisions.right.items()}
    return f"{known[arm] / device.decisions.labelled:.1%}" if arm in known else "–"


def _losses(devices: tuple[DeviceFigures, ...]) -> Table:
    rows = [
        (one.name, device.decisions.device, str(one.inputs), str(one.left), str(one.came))
        for device in devices
        for one in device.decisions.losses
    ]
    return Table(
        title="Classes that are lost significantly",
        header=("class", "device", "inputs", "left", "came"),
        rows=rows,
        numbers_from=2,
    )


def _numbers(devices: tuple[DeviceFigures, ...]) -> Table:
    rows = [
        row
        for device in devices
        for one in device.outputs
        for row in _output_rows(one, device.decisions.device)
    ]
    return Table(
        title="",
        header=("output", "of", "inputs", "SQNR dB", "cosine", "RMSE", "largest error"),
        rows=rows,
        numbers_from=2,
    )


def _output_rows(one: OutputFigures, device: str) -> list[tuple[str, ...]]:
    sides = (("twin from original", one.compression), (f"{device} from twin", one.kernels))
    return [(one.output, what, *_figures(found)) for what, found in sides if found is not None]


def _figures(found: LayerError) -> tuple[str, ...]:
    return (
        str(found.inputs),
        "equal" if found.sqnr_db is None else f"{found.sqnr_db:.1f}",
        "–" if found.cosine is None else f"{found.cosine:.5f}",
        f"{found.rmse:.4g}",
        f"{found.largest:.4g}",
    )


def _faults(document: CheckDocument) -> Block:
    rows = [(one.place, one.kind, one.words, one.advice) for one in document.figures.faults]
    return Table.of_words(("place", "kind", "what is wrong", "what helps"), rows)
