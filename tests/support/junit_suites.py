"""Suites of cases as CI servers read them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from edgeflare.pages.junit import Suite, junit_xml

_SCHEMAS = Path(__file__).parents[1] / "report"


@cache
def schemas() -> tuple[Any, Any]:
    """What the xUnit plugin of Jenkins holds files to, and our own.

    Ours is stricter: what a test case must have for any reader to show it.
    """
    import xmlschema  # noqa: PLC0415 - slow, and all workers import this

    jenkins, ours = (_SCHEMAS / name for name in ("junit-10.xsd", "junit.xsd"))
    return xmlschema.XMLSchema(jenkins), xmlschema.XMLSchema(ours)


def parsed_suite(suite: Suite) -> ElementTree.Element:
    """Return the only suite of JUnit's XML, once the whole is valid."""
    data = junit_xml(suite)
    for schema in schemas():
        schema.validate(data.decode())
    parsed = ElementTree.fromstring(data).find("testsuite")  # noqa: S314 - ours
    assert parsed is not None
    return parsed
