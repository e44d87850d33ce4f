"""A check as a document: `check.json`, schema `edgeflare.check/v1`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgeflare.models.run_pair import InterfaceDescription
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Amount, CountFromOne, plain_json
from edgeflare.record.request import DERIVED, Option
from edgeflare.release.causes.cause import Cause
from edgeflare.release.check_verdict import Name
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.gates import CheckGate
from edgeflare.release.sections import CheckSection

StoppedBy = Literal["time-limit", "interrupt", "sigterm", "infrastructure", "killed"]
"""What ends a check before all is measured."""


def _written(gates: dict[str, float]) -> str:
    return " --gate ".join(f"{name}<{limit:g}" for name, limit in sorted(gates.items()))


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a check is asked.

    Attributes:
        about: whether the pair is judged, or the device alone, where there is no original.
        fingerprint: the digest of the pair's files and settings.
        devices: names of the devices.
        limit: how many of the inputs are asked, at most; null for 10,000.
        gates: the limits, by the names of the gates.
        strict: whether each gate has to be decided for a model to ship.
        time_limit_seconds: seconds that the check may take.
        keep_inputs: whether the inputs that are looked into are kept, to be shown.
        near: whether inputs near to them are searched for.
        mend: whether a repair is tried where the file is to blame.

    """

    about: Annotated[Literal["pair", "device"], DERIVED]
    fingerprint: Annotated[str, DERIVED]
    devices: Annotated[tuple[str, ...], Option("--device", ", ".join)]
    limit: Annotated[CountFromOne | None, Option("--limit", more="larger")]
    gates: Annotated[dict[str, Amount], Option("--gate", _written)]
    strict: bool
    time_limit_seconds: Annotated[Amount, Option("--time-limit", more="longer")]
    keep_inputs: Annotated[bool, Option("--no-inputs", lambda kept: None if kept else "")]
    near: Annotated[bool, Option("--no-near", lambda near: None if near else "")]
    mend: bool


class CheckDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.check/v1"
):
    """Whether a compressed model may ship, and why.

    Attributes:
        verdict: whether the model may ship.
        sentence: why, without its full stop.
        next_step: what to do now, likewise.
        cause: what is wrong; null where nothing was found.
        devices_match_host: whether the devices compute the file as the host does, as far as the
            inputs tell.
        gates: how the limits for a release ended.
        sections: what was looked into, and how that ended.
        figures: all that was measured.
        edgeflare: version of EdgeFlare that wrote this.
        pair: name of the pair.
        interface: what its models take and give; null where inputs are drawn.
        plan: what was asked.
        stopped_by: what ended it before all was measured: time-limit, interrupt (Ctrl-C), sigterm,
            infrastructure, or killed, which it is while it is under way; null where nothing did.
        seconds: duration of the check in seconds.
        notes: what was assumed, a sentence each.

    """

    verdict: Name
    sentence: str
    next_step: str
    cause: Cause | None
    devices_match_host: bool
    gates: tuple[CheckGate, ...]
    sections: tuple[CheckSection, ...]
    figures: CheckFigures
    edgeflare: str
    pair: str
    interface: InterfaceDescription | None
    plan: CheckRequest
    stopped_by: StoppedBy | None
    seconds: Amount
    notes: tuple[str, ...]

    @property
    def shown_sections(self) -> list[CheckSection]:
        """The sections that people are shown: that of a repair where it is spoken of."""
        mend = self.plan.mend
        return [
            section
            for section in self.sections
            if section.name != "mend" or mend or section.command
        ]

    @property
    def passes(self) -> bool:
        """Whether nothing speaks against the model, or the device where that alone is judged."""
        alone = self.plan.about == "device" and self.devices_match_host
        return self.verdict == "ship" or (self.verdict == "undecided" and alone)


def check_bytes(document: CheckDocument) -> bytes:
    """Return a document as it is written."""
    return json_bytes(plain_json(document))


def load_check(path: Path) -> CheckDocument:
    """Return a document that was written."""
    return _READER.read(path)


def _contradictions(document: CheckDocument) -> Iterator[str]:
    failed = [gate.name for gate in document.gates if gate.state == "fail"]
    if document.verdict == "ship" and (failed or document.cause is not None):
        yield f"verdict is ship, against {failed[0] if failed else 'its own cause'}"
    if document.verdict == "do-not-ship" and document.cause is None:
        yield "verdict is do-not-ship without a cause"
    for n, device in enumerate(document.figures.devices):
        for at, changed_input in enumerate(device.decisions.changed_inputs):
            for head, view in enumerate(changed_input.answers):
                place = f"figures.devices[{n}].decisions.changed_inputs[{at}].answers[{head}]"
                yield from view.wrong(place)


_READER = DocumentReader(CheckDocument, _contradictions)
