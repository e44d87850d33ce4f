"""A conformance run as cases: one for each operator and type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from edgeflare.conform.presentation.conform_words import (
    asked_besides_cells,
    coverage_sentence,
    ending_sentence,
    finding_sentence,
    headline,
    untried_words,
    witness_sentence,
)
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite


def conform_suite(document: ConformDocument) -> Suite:
    """Return a conformance run as cases.

    An operator fails in a type if a finding of it counts for the exit code. It is skipped if no
    model of it was tried, or the device refuses all; what was not tried of the user's model is a
    skipped case of its own.

    Args:
        document: as `read_conformance` returns it.

    """
    verdicts = {(one.operator, one.type): one.verdicts for one in document.cells}
    failing: dict[tuple[str, str], list[FoundFault]] = {}
    for finding in document.findings:
        if finding.is_new:
            failing.setdefault((finding.operator, finding.type), []).append(finding)
    names = dict.fromkeys([*document.request.cells, *failing])
    return Suite(
        command="conform",
        name=document.device.name,
        known={
            "edgeflare": document.edgeflare,
            "conformance": headline(document),
            "coverage": coverage_sentence(document),
            "ended": ending_sentence(document),
            "asked": asked_besides_cells(document),
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
    for one in model.untried:
        places = ", ".join(map(str, one.places))
        name = f"{model.file} {one.operator} {places}"
        yield JUnitCase(name=name, skipped=untried_words(one, model.arithmetic))


def _line(finding: FoundFault) -> str:
    said = (
        f"{finding.number}. {finding_sentence(finding)}",
        witness_sentence(finding),
        finding.detail,
        f"smallest model: {finding.smallest.file}",
    )
    return "; ".join(part for part in said if part)
