"""Suites of cases as CI servers read them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import xmlschema

from edgeflare.pages.junit import Suite, junit_xml

_SCHEMAS = Path(__file__).parents[1] / "report"

JENKINS = xmlschema.XMLSchema(_SCHEMAS / "junit-10.xsd")
"""What the xUnit plugin of Jenkins holds files to."""

SCHEMA = xmlschema.XMLSchema(_SCHEMAS / "junit.xsd")
"""Our own, which is stricter: what a test case must have for any reader to show it."""


def parsed_suite(suite: Suite) -> ElementTree.Element:
    """Return the only suite of JUnit's XML, once the whole is valid."""
    data = junit_xml(suite)
    JENKINS.validate(data.decode())
    SCHEMA.validate(data.decode())
    parsed = ElementTree.fromstring(data).find("testsuite")  # noqa: S314 - ours
    assert parsed is not None
    return parsed
