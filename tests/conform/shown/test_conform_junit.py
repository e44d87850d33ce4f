"""Tests of edgeflare.conform.shown.conform_junit: valid, and what counts fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import xmlschema

from conformed_runs import HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.conform.shown.conform_junit import conform_junit

SCHEMAS = [
    xmlschema.XMLSchema(Path(__file__).parents[2] / "report" / name)
    for name in ("junit-10.xsd", "junit.xsd")
]


def suite_of(document: dict[str, Any]) -> ElementTree.Element:
    """The one suite, once the whole is valid."""
    data = conform_junit(document)
    for schema in SCHEMAS:
        schema.validate(data.decode())
    suite = ElementTree.fromstring(data).find("testsuite")  # noqa: S314 - ours
    assert suite is not None
    return suite


def outcomes(suite: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: "" if (child := case.find("*")) is None else child.attrib["message"]
        for case in suite.iter("testcase")
    }


def test_each_operator_and_type_is_a_case_and_what_counts_fails() -> None:
    suite = suite_of(constructed_conformance())
    assert outcomes(suite) == {
        "ADD uint8": "ADD uint8: wrong values when size ≥ 8, sum_ratio_log2 ≥ 7",
        "EXP int8": "",
        "SIGN float32": "the device refused all models",
    }
    figures = [suite.attrib[name] for name in ("tests", "failures", "skipped", "errors", "time")]
    assert figures == ["3", "1", "1", "0", "12.500"]
    text = suite.findtext("testcase/failure") or ""
    assert "by up to 255 steps; wrong: device, builtin; 50 models" in text
    assert "findings/000001.tflite" in text


def test_what_is_known_or_shared_passes() -> None:
    known = finding_entry(known="a vendor's")
    shared = finding_entry(2, verdict="shared", counted=False)
    suite = suite_of(constructed_conformance([known, shared]))
    assert (suite.attrib["failures"], outcomes(suite)["ADD uint8"]) == ("0", "")


def test_what_was_not_tried_of_a_model_is_skipped_with_the_reason() -> None:
    suite = suite_of(constructed_conformance(model=HALF_TRIED))
    said = "Mfcc × 2 (52 % of the arithmetic, the operator is not known)"
    assert outcomes(suite)["kws.tflite Mfcc 0, 2"] == said
    assert [suite.attrib[name] for name in ("tests", "skipped")] == ["4", "2"]
    suite = suite_of(constructed_conformance([], cells=[]))
    assert set(outcomes(suite).values()) == {"no model was tried"}


def test_several_findings_of_a_cell_are_one_failure_and_joined_operators_have_their_own() -> None:
    joined = finding_entry(3, operator="CONV_2D, ADD", type="float32", condition=[])
    several = [finding_entry(), finding_entry(2, condition=[]), joined]
    suite = suite_of(constructed_conformance(several))
    assert outcomes(suite)["ADD uint8"].endswith(", and 1 more")
    assert "2. ADD uint8: wrong values always" in (suite.findtext("testcase/failure") or "")
    assert outcomes(suite)["CONV_2D, ADD float32"] == "CONV_2D, ADD float32: wrong values always"
    assert suite.attrib["tests"] == "4"


def test_hostile_names_stay_text() -> None:
    hostile = "<b>&\x00\x1b]]>\ufffe"
    document = constructed_conformance([finding_entry(detail=hostile, condition=[hostile])])
    document["device"]["name"] = hostile
    suite = suite_of(document)
    assert "<b>&" in suite.attrib["name"]
    assert suite.attrib["failures"] == "1"
