"""A survey as JUnit XML: a case for each gate, and one for each condition, for CI servers.

It keeps to what `report/junit_xml.py` says of readers.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from edgeflare.pages.facts import details
from edgeflare.survey.gates.judged_gates import HELD, NOT_HELD, DescribedGate
from edgeflare.survey.rates.rate_words import interval
from edgeflare.survey.rates.slices import SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument
from edgeflare.survey.shown.gate_words import gate_sentence, next_step
from edgeflare.survey.shown.survey_words import (
    ending,
    headline,
    rare_sentences,
    release_sentence,
    shown_plan,
)
from edgeflare.untrusted_text import for_xml

_EXTENSIVE = ("repetitions", "thresholds")
"""What is known of rare events in as many figures as no server shows."""


def survey_junit(document: SurveyDocument) -> bytes:
    """Return a survey as JUnit XML, in UTF-8.

    A gate that is not held fails, and so does one that is undecided, as they do for the exit code.
    A condition fails where a gate about it, or about a set that it is of, is not held or undecided;
    without gates all cases pass, since nothing says what a rate may be. The rates are
    properties, and so is what was found of rare events.

    Args:
        document: as `read_survey` returns it.

    """
    name = for_xml(document.pair.name)
    suite = Element("testsuite", name=f"edgeflare survey {name}")
    _add_properties(suite, document)
    kind, failed = f"edgeflare.survey.{name}", 0
    for gate in document.gates:
        case = _case(suite, kind, f"gate {gate.name}")
        failed += _add_failure(case, document, gate)
    missed = _missed_gates(document)
    for one in _by_condition(document):
        case = _case(suite, kind, f"condition {one.condition}")
        if one.condition in missed:
            failed += _add_failure(case, document, missed[one.condition])
    suite.attrib |= {
        "tests": str(len(suite.findall("testcase"))),
        "failures": str(failed),
        "errors": "0",
        "skipped": "0",
        "time": f"{document.seconds:.3f}",
    }
    root = Element("testsuites", name="edgeflare")
    root.append(suite)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _by_condition(document: SurveyDocument) -> list[SurveySlice]:
    """Return the slice of the unchanged inputs, and that of each condition."""
    return [document.unchanged, *document.by_condition.slices]


def _add_properties(suite: Element, document: SurveyDocument) -> None:
    known = {
        "edgeflare": document.edgeflare,
        "survey": headline(document),
        "sentence": release_sentence(document),
        "ended": ending(document),
        "rate": {str(one.condition): interval(one.rate) for one in _by_condition(document)},
        "rare events": _rare(document),
        "pair": document.pair,
        "plan": shown_plan(document),
        **{f"device {one.name}": one.provenance for one in document.devices},
    }
    properties = SubElement(suite, "properties")
    for name, value in details(known):
        SubElement(properties, "property", name=for_xml(name), value=for_xml(value))


def _rare(document: SurveyDocument) -> dict[str, Any]:
    """Return what was found of rare events, in words and figures; nothing without them."""
    rare = document.rare
    if rare is None:
        return {}
    figures = {
        key: value for key, value in msgspec.structs.asdict(rare).items() if key not in _EXTENSIVE
    }
    return {"found": " ".join(rare_sentences(document)), **figures}


def _case(suite: Element, kind: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=kind, name=for_xml(name), time="0")


def _add_failure(case: Element, document: SurveyDocument, gate: DescribedGate) -> bool:
    """Say why a gate is not held; return whether it failed."""
    if gate.state == HELD:
        return False
    message = for_xml(f"gate {gate_sentence(gate)}{next_step(document, gate)}")
    kind = "gate" if gate.state == NOT_HELD else "undecided"
    SubElement(case, "failure", message=message, type=kind).text = message
    return True


def _missed_gates(document: SurveyDocument) -> dict[str, DescribedGate]:
    """Return the last gate about each condition that is not held, or undecided."""
    missed = [gate for gate in document.gates if gate.state != HELD]
    return {name: gate for gate in missed for name in gate.conditions or ()}
