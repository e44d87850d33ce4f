"""Cases as JUnit XML, for Jenkins, GitLab and GitHub's test reporters; and as GitHub's annotations.

There is no one standard of JUnit XML. This keeps to the schema of Jenkins's xUnit plugin, and of
that to what Ant's task writes too: a `testsuites` with a `testsuite`, in that first `properties`,
then each `testcase` with at most one `failure` or `skipped`. Times have three decimals: Jenkins
takes no more. Who reads it shows the text of a failure; its attribute `message` is the title, and
`type` groups failures. Annotations are lines that GitHub shows beside the job that prints them:
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from edgeflare.pages.facts import count_of, details
from edgeflare.untrusted_text import for_terminal, for_xml


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Cases of one command.

    Attributes:
        command: what made them; empty for a search.
        name: name of what they are about: a pair, or a device.
        known: what is known of it all, by name: parts of a document.
        cases: the cases, in their order.
        seconds: how long it took.

    """

    command: str = ""
    name: str
    known: object
    cases: Sequence[JUnitCase]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JUnitCase:
    """A case, which passed where it neither failed nor was skipped.

    Attributes:
        name: name of what was tried.
        failure: why it failed.
        skipped: why it was skipped, in a line; empty where it was not.
        seconds: how long it took.

    """

    name: str
    failure: JUnitFailure | None = None
    skipped: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class JUnitFailure:
    """Why a case failed: in a line, by which failures are grouped, and in full."""

    message: str
    type: str
    text: str


def junit_xml(suite: Suite) -> bytes:
    """Return cases as JUnit XML, in UTF-8."""
    name = for_xml(suite.name)
    element = Element("testsuite", name=" ".join(filter(None, ("edgeflare", suite.command, name))))
    properties = SubElement(element, "properties")
    for key, value in details(suite.known):
        SubElement(properties, "property", name=for_xml(key), value=for_xml(value))
    group = ".".join(filter(None, ("edgeflare", suite.command, name)))
    for case in suite.cases:
        seconds = "0" if not case.seconds else f"{case.seconds:.3f}"
        found = SubElement(
            element, "testcase", classname=group, name=for_xml(case.name), time=seconds
        )
        if case.failure is not None:
            message, text = for_xml(case.failure.message), for_xml(case.failure.text)
            SubElement(found, "failure", message=message, type=case.failure.type).text = text
        elif case.skipped:
            SubElement(found, "skipped", message=for_xml(case.skipped))
    element.attrib |= {
        "tests": str(len(suite.cases)),
        "failures": str(sum(case.failure is not None for case in suite.cases)),
        "errors": "0",
        "skipped": str(sum(case.failure is None and bool(case.skipped) for case in suite.cases)),
        "time": f"{suite.seconds:.3f}",
    }
    root = Element("testsuites", name="edgeflare")
    root.append(element)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


_MOST: Final = 10
"""Annotations of one kind that GitHub shows of a step, at most."""


def job_annotations(suite: Suite) -> Iterator[str]:
    """Yield a line for each case that failed, then one for each that was skipped, without its end.

    Where there are more than ten of a kind, the last one says how many more there are.

    Args:
        suite: the cases.

    """
    title = " ".join(filter(None, ("edgeflare", suite.command, suite.name)))
    failed = [
        (junit_case.name, junit_case.failure.message)
        for junit_case in suite.cases
        if junit_case.failure is not None
    ]
    skipped = [
        (junit_case.name, junit_case.skipped) for junit_case in suite.cases if junit_case.skipped
    ]
    for kind, told in (("error", failed), ("notice", skipped)):
        shown = told if len(told) <= _MOST else told[: _MOST - 1]
        for name, message in shown:
            yield f"::{kind} title={_property(f'{title}: {name}')}::{_text(message)}"
        if more := len(told) - len(shown):
            yield f"::{kind} title={_property(title)}::{count_of(more, 'more case')} like these"


def _text(text: str) -> str:
    plain = for_terminal(text)
    return plain.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
