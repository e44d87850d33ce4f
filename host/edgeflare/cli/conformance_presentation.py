"""A conformance run, as `edgeflare report` shows and writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from edgeflare.cli.presentation import Reported, page_bytes
from edgeflare.conform.findings.accepted_findings import accepted_table
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.graphs.graph_arrangement import own_arrangement
from edgeflare.conform.presentation.conform_page import conform_page
from edgeflare.conform.presentation.conform_words import (
    asked_besides_cells,
    coverage_sentence,
    ending_sentence,
    finding_sentence,
    headline,
    untried_words,
    witness_sentence,
)
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault, read_conformance
from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.run.run_directory import RunDirectory


def reported_conformance(directory: RunDirectory) -> Reported:
    """Read a conformance run.

    Raises:
        UserError: it was cut off before its document was written.

    """
    document = read_conformance(directory)
    page = conform_page(document)
    return Reported(
        lambda: msgspec.to_builtins(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("conform.html", lambda: page_bytes(page)),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
            "--accepted": ("accepted.toml", lambda: accepted_text(document).encode()),
        },
        "a conformance run",
        lambda: conform_suite(document),
    )


def conform_suite(document: ConformDocument) -> Suite:
    """Return a conformance run as cases.

    An operator fails in a type if a finding of it counts for the exit code. It is skipped if no
    model of it was tried, or the device refuses all; what was not tried of the user's model is a
    skipped case of its own.

    Args:
        document: as `read_conformance` returns it.

    """
    verdicts = {(cell.operator, cell.type): cell.verdicts for cell in document.cells}
    failing: dict[tuple[str, str], list[FoundFault]] = {}
    for finding in document.findings:
        if finding.is_new:
            failing.setdefault((finding.operator, finding.type), []).append(finding)
    names = dict.fromkeys([*document.plan.cells, *failing])
    return Suite(
        command="conform",
        name=document.device.name,
        known={
            "edgeflare": document.edgeflare,
            "conformance": headline(document),
            "coverage": coverage_sentence(document),
            "ended": ending_sentence(document),
            "plan": asked_besides_cells(document),
            "host": msgspec.to_builtins(document.host),
            "device": msgspec.to_builtins(document.device),
        },
        cases=[
            *(_case(cell, verdicts.get(cell), failing.get(cell, [])) for cell in names),
            *_untried(document),
        ],
        seconds=document.seconds,
    )


def _case(
    cell: tuple[str, str], verdicts: Mapping[str, int] | None, findings: Sequence[FoundFault]
) -> JUnitCase:
    """Return the case of an operator and a type, given what became of its models."""
    skipped = ""
    if set(verdicts or {}) <= {"refused"}:
        skipped = "no model was tried" if verdicts is None else "the device refused all models"
    failure = None
    if findings:
        first = findings[0]
        rest = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
        title = f"{finding_sentence(first)}{rest}"
        failure = JUnitFailure(title, first.verdict, "\n".join(map(_line, findings)))
    return JUnitCase(name=" ".join(cell), failure=failure, skipped=skipped)


def _untried(document: ConformDocument) -> Iterator[JUnitCase]:
    """Yield the operators of the user's model that were not tried, and why not."""
    model = document.model
    if model is None:
        return
    for operator in model.untried:
        places = ", ".join(map(str, operator.places))
        name = f"{model.file} {operator.operator} {places}"
        yield JUnitCase(name=name, skipped=untried_words(operator, model.arithmetic))


def _line(finding: FoundFault) -> str:
    said = (
        f"{finding.number}. {finding_sentence(finding)}",
        witness_sentence(finding),
        finding.detail,
        finding.issue.sentence if finding.issue is not None else "",
        f"smallest model: {finding.smallest.file}",
    )
    return "; ".join(part for part in said if part)


def accepted_text(document: ConformDocument) -> str:
    """Return an `accepted.toml` that names the findings of a run that count.

    A bias is named without its condition. It is a mean, which some models show and others like
    them do not, so that another run learns another condition.

    Args:
        document: as `read_conformance` returns it.

    """
    device = document.device
    where = f"{device.name} {device.runtime} {device.runtime_version} {device.kernels}"
    return "\n".join(
        accepted_table(
            FindingKey(
                finding.operator, finding.type, finding.verdict, finding.symptom, finding.counted
            ),
            FaultCondition.parsed([] if finding.symptom == "biased" else finding.condition),
            finding.accepted or f"found on {where}: {finding.detail}",
            own_arrangement(finding.arrangement),
        )
        for finding in document.findings
        if finding.counted
    )
