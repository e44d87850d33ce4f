"""A conformance run as JUnit XML: a case for each operator and type, for CI servers.

It keeps to what `report/junit_xml.py` says of readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.shown.conform_words import (
    asked_besides_cells,
    coverage_sentence,
    ending_sentence,
    finding_sentence,
    headline,
    untried_words,
    witness_sentence,
)
from edgeflare.pages.facts import details
from edgeflare.untrusted_text import for_xml


def conform_junit(document: ConformDocument) -> bytes:
    """Return a conformance run as JUnit XML, in UTF-8.

    An operator fails in a type if a finding of it counts for the exit code. It is skipped if no
    model of it was tried, or the device refuses all; what was not tried of the user's model is a
    skipped case of its own.

    Args:
        document: as `read_conformance` returns it.

    """
    name = for_xml(document.device.name)
    suite = Element("testsuite", name=f"edgeflare conform {name}")
    _add_properties(suite, document)
    verdicts = {(one.operator, one.type): one.verdicts for one in document.cells}
    failing = _failing(document)
    names = list(dict.fromkeys([*document.request.cells, *failing]))
    for cell in names:
        case = SubElement(suite, "testcase", classname=f"edgeflare.conform.{name}", time="0")
        case.set("name", for_xml(" ".join(cell)))
        if cell in failing:
            _add_failure(case, failing[cell])
        elif set(verdicts.get(cell, {})) <= {"refused"}:
            why = "the device refused all models" if cell in verdicts else "no model was tried"
            SubElement(case, "skipped", message=why)
    for one, said in _untried(document):
        case = SubElement(suite, "testcase", classname=f"edgeflare.conform.{name}", time="0")
        case.set("name", for_xml(one))
        SubElement(case, "skipped", message=for_xml(said))
    suite.attrib |= {
        "tests": str(len(suite.findall("testcase"))),
        "failures": str(len(failing)),
        "errors": "0",
        "skipped": str(len(suite.findall("testcase/skipped"))),
        "time": f"{document.seconds:.3f}",
    }
    root = Element("testsuites", name="edgeflare")
    root.append(suite)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _untried(document: ConformDocument) -> Iterator[tuple[str, str]]:
    """Yield the operators of the user's model that were not tried, and why not."""
    model = document.model
    if model is None:
        return
    for one in model.untried:
        places = ", ".join(map(str, one.places))
        yield f"{model.file} {one.operator} {places}", untried_words(one, model.arithmetic)


def _failing(document: ConformDocument) -> dict[tuple[str, str], list[FoundFault]]:
    """Return the findings that count, by operator and type."""
    found: dict[tuple[str, str], list[FoundFault]] = {}
    for one in (one for one in document.findings if one.is_new):
        found.setdefault((one.operator, one.type), []).append(one)
    return found


def _add_failure(case: Element, findings: Sequence[FoundFault]) -> None:
    first = findings[0]
    rest = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    title = for_xml(f"{finding_sentence(first)}{rest}")
    failure = SubElement(case, "failure", message=title, type=first.verdict)
    failure.text = for_xml("\n".join(map(_line, findings)))


def _line(finding: FoundFault) -> str:
    said = (
        f"{finding.number}. {finding_sentence(finding)}",
        witness_sentence(finding),
        finding.detail,
        f"smallest model: {finding.smallest.file}",
    )
    return "; ".join(part for part in said if part)


def _add_properties(suite: Element, document: ConformDocument) -> None:
    known = {
        "edgeflare": document.edgeflare,
        "conformance": headline(document),
        "coverage": coverage_sentence(document),
        "ended": ending_sentence(document),
        "asked": asked_besides_cells(document),
        "host": msgspec.to_builtins(document.host),
        "device": msgspec.to_builtins(document.device),
    }
    properties = SubElement(suite, "properties")
    for name, value in details(known):
        SubElement(properties, "property", name=for_xml(name), value=for_xml(value))
