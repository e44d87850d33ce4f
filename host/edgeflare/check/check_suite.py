"""A check as cases: one for each gate."""

from __future__ import annotations

from edgeflare.check.check_document import CheckDocument
from edgeflare.check.gates import CheckGate
from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite


def check_suite(document: CheckDocument) -> Suite:
    """Return a check as cases.

    The first is the verdict, which fails unless the model may ship. A gate that is open is no
    failure: the verdict says what becomes of it.
    """
    verdict = None
    if not document.passes:
        verdict = JUnitFailure(document.sentence, document.verdict, document.next)
    return Suite(
        command="check",
        name=document.pair,
        known={
            "edgeflare": document.edgeflare,
            "verdict": document.verdict,
            "sentence": document.sentence,
            "next": document.next,
            "asked": document.asked,
            **{
                f"device {one.kernels.device.name}": one.kernels.device.provenance
                for one in document.figures.devices
            },
        },
        cases=[JUnitCase(name="verdict", failure=verdict), *map(_case, document.gates)],
        seconds=document.seconds,
    )


def _case(gate: CheckGate) -> JUnitCase:
    name = f"gate {gate.title}"
    if gate.state == "fail":
        return JUnitCase(name=name, failure=JUnitFailure(gate.words, gate.name, _seen_of(gate)))
    if gate.state == "not checked":
        return JUnitCase(name=name, skipped=gate.words)
    return JUnitCase(name=name)


def _seen_of(gate: CheckGate) -> str:
    """Return what was seen of a gate, with its interval and its limit."""
    limit = f"limit {gate.limit:g}"
    if gate.seen is None:
        return f"{gate.words}; {limit}"
    return f"{gate.words}: {gate.seen.in_words()}; {limit}"
