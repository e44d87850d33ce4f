"""A conformance run in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflare.conform.verdict.kernel_judgement import in_units
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.facts import count_of, in_words
from edgeflare.record.json_types import JsonValue, plain_json

if TYPE_CHECKING:  # a whole room, which every search would load
    from edgeflare.conform.record.conform_document import (
        ConformDocument,
        CoveredShare,
        FoundFault,
        ModelCoverage,
        StoredOperator,
        UntriedOperator,
    )

_PERCENT = 0.01


def headline(document: ConformDocument) -> str:
    """Return what the run comes to, in one line.

    Of a model that the user named it says first how much of its arithmetic was tried. Its file name
    may be a stranger's.
    """
    device = document.device
    new = [finding for finding in document.findings if finding.is_new]
    accepted = sum(
        finding.counted and finding.accepted is not None for finding in document.findings
    )
    operators = len({fault.operator for fault in new})
    said = (
        f"{count_of(len(new), 'fault')} in {count_of(operators, 'operator')}"
        if new
        else "no fault that is not accepted"
        if accepted
        else "no fault"
    )
    besides = f", {accepted} accepted" if accepted else ""
    runtime = f"{device.runtime} {device.runtime_version}, {device.kernels}"
    tried_models = count_of(document.models, "model")
    where = f"in {tried_models} of {cells_of(document.coverage.cells.covered)}"
    if document.graphs is not None and document.plan.graphs == "only":
        pairs = f"{count_of(document.graphs.pairs, 'pair')} of " if document.graphs.pairs else ""
        where = f"in {count_of(document.graphs.tried, 'graph')} of {pairs}operators"
    tried, model = "", document.model
    if model is not None:
        tried = f"{tried_words(model, 'was')}; "
        said += " in that" if tries_little(model) else ""
    return f"{device.name} ({runtime}): {tried}{said}{besides}, {where}"


def tried_words(model: ModelCoverage, verb: str) -> str:
    """Return how much of the user's model is tried, by its share of the arithmetic.

    Args:
        model: what the document says of it.
        verb: word before "tried", such as "was".

    """
    tried, of = model.arithmetic_tried, model.arithmetic
    operators = f"{model.operators_tried:,} of {count_of(model.operators, 'operator')}"
    if of and not tried:
        return f"nothing that computes in {model.file} {verb} tried ({operators})"
    share = f"{_share_words(tried, of)} of the arithmetic of {model.file}" if of else model.file
    return f"{share} {verb} tried ({operators})"


def tries_little(model: ModelCoverage) -> bool:
    """Return whether most of the arithmetic of the user's model was not tried."""
    return bool(2 * model.arithmetic_tried < model.arithmetic)


def _share_words(part: int, of: int) -> str:
    """Return a share in words, in which "all" and "none" are exact."""
    if part in (0, of):
        return "all" if part else "none"
    percent = round(100 * part / of)
    bounds = {0: "less than 1 %", 100: "more than 99 %"}
    return bounds.get(percent, f"{percent} %")


@dataclass(frozen=True, slots=True)
class FindingSection:
    """Findings that are shown together.

    Attributes:
        id: the section's anchor in a page.
        title: the section's title.
        findings: the findings, at least one.

    """

    id: str
    title: str
    findings: Sequence[FoundFault]


def finding_sections(document: ConformDocument) -> list[FindingSection]:
    """Return the findings in sections, those that count for the exit code first."""
    findings = document.findings
    counted = [finding for finding in findings if finding.counted]
    rest = [finding for finding in findings if not finding.counted]
    sections = (
        FindingSection("new", "The device fails", [fault for fault in counted if fault.is_new]),
        FindingSection(
            "accepted", "The device fails, as is accepted", [x for x in counted if not x.is_new]
        ),
        FindingSection(
            "shared", "Device and twin fail alike", [x for x in rest if x.verdict == "shared"]
        ),
        FindingSection(
            "undefined",
            "NaN, infinities and empty tensors",
            [x for x in rest if x.verdict not in ("shared", "host")],
        ),
        FindingSection("host", "The host fails", [x for x in rest if x.verdict == "host"]),
    )
    return [section for section in sections if section.findings]


def alike_findings(findings: Sequence[FoundFault]) -> list[list[FoundFault]]:
    """Return findings, those together that differ by one of the operators that are wrong together.

    They fail in the same way and hang together alike, such as ADD and SUB of two results of a
    SPLIT; so what is wrong is likely one cause.

    Args:
        findings: those of a section.

    Returns:
        Groups in the order of their first findings, each finding in the largest that has it.

    """
    among = Counter(kind for finding in findings for kind in _kinds(finding))
    groups: dict[object, list[FoundFault]] = {}
    for finding in findings:
        kind = max(_kinds(finding), key=lambda kind: among[kind], default=())
        groups.setdefault(kind if among[kind] > 1 else finding.number, []).append(finding)
    return list(groups.values())


def _kinds(finding: FoundFault) -> list[tuple[object, ...]]:
    """Return what findings have in common that differ by one operator, for each operator."""
    names = finding.operator.split(" then ")
    told = [words for words in finding.arrangement if not words.startswith("also ")]
    found: list[tuple[object, ...]] = []
    for at, name in enumerate(names if len(names) > 1 else ()):
        rest = (*names[:at], "…", *names[at + 1 :])
        wired = (re.sub(rf"\b{re.escape(name)}\b", "…", words) for words in told)
        found.append((finding.verdict, finding.symptom, at, rest, *wired))
    return found


def asked_besides_cells(document: ConformDocument) -> dict[str, JsonValue]:
    """Return what was asked, but for the operators and types, as plain values by name."""
    return {key: option for key, option in plain_json(document.plan).items() if key != "cells"}


def ending_sentence(document: ConformDocument) -> str:
    """Return why the run ended."""
    reasons = {
        "models": "all models that were asked for were drawn",
        "time-limit": "its time was up",
        **{by: f"it was stopped by {word}" for by, word in INTERRUPTED_BY.items()},
        "nothing-left": "there was nothing left to draw",
    }
    return f"It ended when {reasons[document.stopped_by]}."


_VERDICTS = {
    "device": "The device is wrong by exact arithmetic, where a kernel set of the host is right.",
    "host": "The device is right by exact arithmetic, and a kernel set of the host is wrong.",
    "shared": "The device is wrong by exact arithmetic, and the twin answers alike or as wrongly.",
    "undefined": "Device and exact answer differ where NaN, infinities or empty tensors are read.",
    "crash": "The process that runs the model dies.",
    "hang": "The model does not answer in time.",
}


def verdict_words(finding: FoundFault) -> str:
    """Return what a finding's verdict means."""
    if len(finding.smallest.operators) > 1 or finding.arrangement:
        besides = " The twin is, too." if finding.verdict == "shared" else ""
        return f"The operators are right alone, and wrong together.{besides}"
    return _VERDICTS[finding.verdict]


def settings_words(node: StoredOperator) -> list[tuple[str, str]]:
    """Return the settings of an operator, by name."""
    return [(name, _setting(value)) for name, value in node.settings.items()]


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " × ".join(map(str, value)) or "scalar"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def title_of(finding: FoundFault) -> str:
    """Return the operator and the type of a finding."""
    return f"{finding.operator} {finding.type}"


def condition_words(finding: FoundFault) -> str:
    """Return when a finding shows."""
    return ", ".join((*finding.condition, *finding.arrangement)) or "always"


def worst_words(finding: FoundFault) -> str:
    """Return how wrong a finding is at its worst."""
    if finding.symptom in ("wrong-shape", "crash", "hang", "corrupts", "neighbours"):
        return ""
    worst = finding.worst
    if worst is None or (finding.symptom == "not-finite" and not worst):
        return "not finite"
    if not finding.unit:
        return f"{worst:.0%} of the values" if worst >= _PERCENT else "less than 1 % of the values"
    return in_units(worst, finding.unit)


def wrong_words(finding: FoundFault) -> str:
    """Return which arms are wrong."""
    return ", ".join(finding.wrong)


def finding_sentence(finding: FoundFault) -> str:
    """Return what fails, how and when, in one line."""
    conditions = (*finding.condition, *finding.arrangement)
    when = f"when {', '.join(conditions)}" if conditions else "always"
    together = " together" if len(finding.smallest.operators) > 1 else ""
    where = f"; in {', '.join(finding.graphs)}" if finding.graphs else ""
    return f"{title_of(finding)}: {in_words(finding.symptom)}{together} {when}{where}"


def issue_words(finding: FoundFault) -> str:
    """Return what the world knows of a finding; empty of what is no fault of kernels."""
    if finding.issue is not None:
        return finding.issue.sentence
    if finding.verdict == "undefined":
        return ""
    return (
        f"none is known: `edgeflare export RUN {finding.number}` packs a bug_report.md, ready to"
        " paste"
    )


def witness_sentence(finding: FoundFault) -> str:
    """Return how wrong a finding is, which arms are, and how many models show it."""
    worst, wrong = worst_words(finding), wrong_words(finding)
    parts = (
        f"by up to {worst}" if finding.unit and worst != "not finite" else worst,
        f"wrong: {wrong}" if wrong else "",
        count_of(finding.failing, "model"),
        "" if finding.smallest.repeats else "its smallest model did not fail again",
        f"accepted: {finding.accepted}" if finding.accepted is not None else "",
    )
    return "; ".join(part for part in parts if part)


def coverage_sentence(document: ConformDocument) -> str:
    """Return what was covered."""
    coverage = document.coverage
    parts = [
        f"{_share(coverage.cells)} of operators and types",
        f"{_share(coverage.buckets)} of ranges of parameters",
    ]
    said = f"Covered, of what the device takes: {', '.join(parts)}."
    if (graphs := document.graphs) is not None:
        pairs = f", of {count_of(graphs.pairs, 'pair')} of operators" if graphs.pairs else ""
        turns = f", {graphs.in_turn} also in turns" if graphs.in_turn else ""
        said += f" {count_of(graphs.tried, 'graph')} tried{pairs}{turns}."
    return said


def model_sentence(document: ConformDocument) -> list[str]:
    """Return what was run of the model that the user named, in one sentence; none if there is none.

    Its file name and its operators' names may be a stranger's.
    """
    model = document.model
    if model is None:
        return []
    said = f"Of the operators of {model.file}, tried {model.tried:,} of"
    untried = "; ".join(untried_words(operator, model.arithmetic) for operator in model.untried)
    return [
        f"{said} {model.distinct:,} as they stand{f'; not tried: {untried}' if untried else ''}."
    ]


def untried_words(one: UntriedOperator, of: int) -> str:
    """Return an operator of the user's model that is not tried, with the reason.

    Args:
        one: the operator, as the document lists it.
        of: multiply-accumulates of the whole model.

    """
    times = f" × {len(one.places)}" if one.places[1:] else ""
    share = f"{_share_words(one.arithmetic, of)} of the arithmetic, " if one.arithmetic else ""
    return f"{one.operator}{times} ({share}{one.why})"


def refused_sentence(document: ConformDocument) -> list[str]:
    """Return what the device refused, in one sentence; none if it refused nothing."""
    cells = {(models.operator, models.type) for models in document.refused}
    always = {(models.operator, models.type) for models in document.refused if models.always}
    if not cells:
        return []
    return [
        f"The device refused models of {cells_of(len(cells))}, and all models of {len(always)}."
    ]


def _share(figure: CoveredShare) -> str:
    covered, of = figure.covered, figure.total
    percent = f"{100 * covered / of:.1f} %" if of else "all"
    return f"{percent} ({covered:,} of {of:,})"


def cells_of(number: int) -> str:
    """Return how many cells there are, in words."""
    return "1 operator and type" if number == 1 else f"{number:,} operators and types"
