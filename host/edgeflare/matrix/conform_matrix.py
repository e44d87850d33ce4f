"""Conformance runs on the kernel sets of a device: which operators each gets wrong, shown and kept.

The document of such runs, or of findings tried again on each kernel set, is a `matrix.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from edgeflare.conform.finding_replay import RetryOutcome
from edgeflare.conform.presentation.conform_words import (
    finding_sentence,
    model_sentence,
    tried_words,
    worst_words,
)
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare.matrix.matrix import FEWEST
from edgeflare.pages.facts import in_words
from edgeflare.pages.page import Bullets, Section, Table
from edgeflare.record.json_types import Count, CountFromOne
from edgeflare_protos import __version__

if TYPE_CHECKING:
    from edgeflare.conform.finding_replay import RetriedFinding
    from edgeflare.conform.record.conform_document import ConformDocument, FoundFault


Cell = tuple[str, str]
"""An operator and a type."""

State = Literal["right", "wrong", "refused", "not-tried"]

_FAILS: Final = ("device", "shared", "crash", "hang")
"""Verdicts by which the device is wrong, whoever is wrong beside it."""

_LEGEND: Final = (
    "Taken: operators and types of which it runs a model. Wrong: those whose answers are not what"
    " exact arithmetic allows, also where the twin is as wrong. Alone: those that all other kernel"
    " sets which take them get right. Faults: findings that count for the exit code."
)

_RETRY_LEGEND: Final = (
    "Still: the model fails as it did; otherwise: in another way. Mended: it does not fail. Alone:"
    " the only kernel set on which it fails."
)


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one kernel set makes of an operator and type.

    Attributes:
        state: what became of its models.
        worst: how wrong the worst is, in words; empty where none is.

    """

    state: State
    worst: str = ""


@dataclass(frozen=True, slots=True)
class ConformFigures:
    """What one kernel set came to.

    Attributes:
        kernels: name of the kernel set.
        device: name of the device with it.
        runtime: package of the runtime that ran it.
        runtime_version: version of that package.
        models: models that were run.
        taken: operators and types of which it took a model.
        refused: operators and types of which it refused all models.
        wrong: operators and types that it gets wrong.
        alone: those of `wrong` that all other kernel sets which take them get right.
        new: findings that count for the exit code: the twin does not have them, and they are not
            known.
        tried: how much of the user's model was tried, and why not the rest, in sentences; empty
            where none was named.

    """

    kernels: str
    device: str
    runtime: str
    runtime_version: str
    models: Count
    taken: Count
    refused: Count
    wrong: Count
    alone: Count
    new: Count
    tried: str = ""


@dataclass(frozen=True, slots=True)
class ConformMatrix:
    """The kernel sets of a device.

    Attributes:
        rows: one for each kernel set.
        cells: what each kernel set makes of each operator and type that one gets wrong, by name.
        alone: the kernel set that stands alone with a cell, by cell.
        refused: why a kernel set opens no model at all, by name.

    """

    rows: tuple[ConformFigures, ...]
    cells: Mapping[Cell, Mapping[str, CellResult]]
    alone: Mapping[Cell, str]
    refused: Mapping[str, str]


def conform_matrix(runs: Sequence[KernelSetRun[ConformDocument]]) -> ConformMatrix:
    """Compare conformance runs on the kernel sets of a device.

    Args:
        runs: one for each kernel set.

    """
    done: dict[str, ConformDocument] = {
        run.profile.kernels: run.result for run in runs if run.result is not None
    }
    results = {kernels: dict(_results(document)) for kernels, document in done.items()}
    wrong = sorted(
        {cell for by in results.values() for cell, result in by.items() if result.state == "wrong"}
    )
    untried = CellResult("not-tried")
    cells = {
        cell: {kernels: by.get(cell, untried) for kernels, by in results.items()} for cell in wrong
    }
    alone = {cell: one for cell, by in cells.items() if (one := _alone(by)) is not None}
    rows = (_figures(kernels, done[kernels], by, alone) for kernels, by in results.items())
    refused: dict[str, str] = {run.profile.kernels: run.refused for run in runs if run.refused}
    return ConformMatrix(tuple(rows), cells, alone, refused)


def _results(document: ConformDocument) -> Iterator[tuple[Cell, CellResult]]:
    refused = {(models.operator, models.type) for models in document.refused if models.always}
    for verdicts in document.cells:
        cell = (verdicts.operator, verdicts.type)
        yield cell, CellResult("refused" if cell in refused else "right")
    worst: dict[Cell, list[FoundFault]] = {}
    for found in document.findings:
        if found.verdict in _FAILS:
            worst.setdefault((found.operator, found.type), []).append(found)
    for cell, findings in worst.items():
        finding = max(findings, key=_size)
        yield cell, CellResult("wrong", worst_words(finding) or in_words(finding.symptom))


def _size(finding: FoundFault) -> tuple[bool, float]:
    """Return what orders findings of one cell by how bad they are: no answer is the worst."""
    error = finding.worst
    return finding.verdict in ("crash", "hang"), float("inf") if error is None else error


def _alone(by: Mapping[str, CellResult]) -> str | None:
    taken = {kernels: cell for kernels, cell in by.items() if cell.state in ("right", "wrong")}
    wrong = [kernels for kernels, cell in taken.items() if cell.state == "wrong"]
    return wrong[0] if len(wrong) == 1 and len(taken) >= FEWEST else None


def _figures(
    kernels: str,
    document: ConformDocument,
    by: Mapping[Cell, CellResult],
    alone: Mapping[Cell, str],
) -> ConformFigures:
    device = document.device
    # What fails joined alone is no operator and type, and has been taken by nobody.
    states = [by[cell.operator, cell.type].state for cell in document.cells]
    model, tried = document.model, ""
    if model is not None:
        tried = " ".join([f"{tried_words(model, 'was')}.", *model_sentence(document)])
    return ConformFigures(
        kernels=kernels,
        device=device.name,
        runtime=device.runtime,
        runtime_version=device.runtime_version,
        models=document.models,
        taken=len(states) - states.count("refused"),
        refused=states.count("refused"),
        wrong=states.count("wrong"),
        alone=sum(alone.get((cell.operator, cell.type)) == kernels for cell in document.cells),
        new=sum(finding.is_new for finding in document.findings),
        tried=tried,
    )


@dataclass(frozen=True, slots=True)
class RetryMatrix:
    """What became of findings on the kernel sets of a device.

    Attributes:
        kernels: the kernel sets.
        findings: as the document of their run has them.
        outcomes: what became of each finding on each kernel set, (findings, kernel sets).
        alone: the one kernel set on which each finding fails; None where that is not so.

    """

    kernels: tuple[str, ...]
    findings: tuple[FoundFault, ...]
    outcomes: tuple[tuple[RetryOutcome, ...], ...]
    alone: tuple[str | None, ...]


def retry_matrix(runs: Sequence[KernelSetRun[Sequence[RetriedFinding]]]) -> RetryMatrix:
    """Compare what became of the same findings on several kernel sets."""
    done = [(run.profile.kernels, run.result) for run in runs if run.result is not None]
    kernels = tuple(name for name, _ in done)
    by_finding = list(zip(*(found for _, found in done), strict=True))
    outcomes = tuple(tuple(finding.outcome for finding in several) for several in by_finding)
    return RetryMatrix(
        kernels,
        tuple(several[0].finding for several in by_finding),
        outcomes,
        tuple(_failing_alone(kernels, outcome) for outcome in outcomes),
    )


def _failing_alone(kernels: Sequence[str], outcomes: Sequence[str]) -> str | None:
    fails = [
        name
        for name, outcome in zip(kernels, outcomes, strict=True)
        if outcome in ("still", "otherwise")
    ]
    return fails[0] if len(fails) == 1 and "mended" in outcomes else None


def conform_matrix_section(matrix: ConformMatrix) -> Section:
    """Return a row for each kernel set, and a row for each operator that one gets wrong.

    Of a model that the user named, how much of its arithmetic was tried comes first.
    """
    header = ("kernels", "runtime", "models", "taken", "refused", "wrong", "alone", "faults")
    figures = Table(
        title="",
        header=header,
        rows=list(map(_row_figures, matrix.rows)),
        note=_LEGEND,
        numbers_from=2,
        missed_least=("runtime",),
    )
    heads = ("operator", *(row.kernels for row in matrix.rows), "alone")
    cells = [_cell(matrix, cell, tuple(by.values())) for cell, by in matrix.cells.items()]
    return Section(
        id="matrix",
        title="Operators on the kernel sets of a device",
        blocks=[
            Bullets([f"{row.kernels}: {row.tried}" for row in matrix.rows if row.tried]),
            figures,
            Table.of_words(heads, cells, title="What one gets wrong"),
            Bullets([f"{kernels}: {why}" for kernels, why in matrix.refused.items()]),
        ],
    )


def retry_matrix_section(matrix: RetryMatrix) -> Section:
    """Return a row for each finding, with what became of it on each kernel set."""
    header = ("", "finding", *matrix.kernels, "alone")
    rows = [
        (f"{finding.number}", finding_sentence(finding), *outcomes, alone or "")
        for finding, outcomes, alone in zip(
            matrix.findings, matrix.outcomes, matrix.alone, strict=True
        )
    ]
    table = Table.of_words(header, rows, note=_RETRY_LEGEND)
    return Section(id="matrix", title="Findings on the kernel sets of a device", blocks=[table])


def _row_figures(figures: ConformFigures) -> tuple[str, ...]:
    counts = (
        figures.models,
        figures.taken,
        figures.refused,
        figures.wrong,
        figures.alone,
        figures.new,
    )
    runtime = f"{figures.runtime} {figures.runtime_version}"
    return figures.kernels, runtime, *(f"{count:,}" for count in counts)


def _cell(matrix: ConformMatrix, cell: Cell, results: Sequence[CellResult]) -> tuple[str, ...]:
    shown = (
        result.worst if result.state == "wrong" else _STATES[result.state] for result in results
    )
    return " ".join(cell), *shown, matrix.alone.get(cell, "")


_STATES: Final = {"right": "·", "refused": "refused", "not-tried": "–"}


class ConformMatrixDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.matrix/v1"
):
    """Conformance runs on the kernel sets of a device.

    Attributes:
        edgeflare: version that wrote it.
        command: the command that made the runs.
        kernel_sets: a row for each that opens models.
        refused: why a kernel set opens no model at all, by name.
        cells: the operators and types that a kernel set gets wrong.

    """

    edgeflare: str
    command: Literal["conform"] = "conform"
    kernel_sets: tuple[ConformFigures, ...]
    refused: Mapping[str, str]
    cells: tuple[WrongCell, ...]


class WrongCell(msgspec.Struct, frozen=True, kw_only=True):
    """An operator and a type that a kernel set gets wrong.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        kernel_sets: what each makes of it, by name.
        alone: the one that all others which take it get right; null for none.

    """

    operator: str
    type: str
    kernel_sets: Mapping[str, CellResult]
    alone: str | None


def conform_matrix_document(matrix: ConformMatrix) -> ConformMatrixDocument:
    """Return the result of conformance runs."""
    return ConformMatrixDocument(
        edgeflare=__version__,
        kernel_sets=matrix.rows,
        refused=dict(matrix.refused),
        cells=tuple(
            WrongCell(
                operator=operator,
                type=type_,
                kernel_sets=dict(by),
                alone=matrix.alone.get((operator, type_)),
            )
            for (operator, type_), by in matrix.cells.items()
        ),
    )


class RetryMatrixDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.matrix/v1"
):
    """Findings of a conformance run, tried again on the kernel sets of a device.

    Attributes:
        edgeflare: version that wrote it.
        command: the command that tried them.
        findings: a row for each finding, in the order of the run.

    """

    edgeflare: str
    command: Literal["replay"] = "replay"
    findings: tuple[RetriedRow, ...]


class RetriedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a conformance run.

    Attributes:
        number: the finding's number in that run.
        operator: name of the operator.
        type: the operator's type.
        kernel_sets: what became of it, by the name of the kernel set.
        alone: the one that alone fails; null for none.

    """

    number: CountFromOne
    operator: str
    type: str
    kernel_sets: Mapping[str, RetryOutcome]
    alone: str | None


def retry_matrix_document(matrix: RetryMatrix) -> RetryMatrixDocument:
    """Return what became of the findings of a conformance run."""
    rows = zip(matrix.findings, matrix.outcomes, matrix.alone, strict=True)
    return RetryMatrixDocument(
        edgeflare=__version__,
        findings=tuple(
            RetriedRow(
                number=finding.number,
                operator=finding.operator,
                type=finding.type,
                kernel_sets=dict(zip(matrix.kernels, outcomes, strict=True)),
                alone=alone,
            )
            for finding, outcomes, alone in rows
        ),
    )
