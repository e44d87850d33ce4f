"""The document of a conformance run, from what came of its models."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.conform.drafts.coverage import Coverage, CoverageFigure
from edgeflare.conform.execution.model_opener import HOST_KERNELS
from edgeflare.conform.record.conform_document import (
    CellVerdicts,
    ConformCoverage,
    ConformDocument,
    CoveredShare,
    HostKernels,
    ModelCoverage,
    RefusedModels,
    StoppedBy,
)
from edgeflare.conform.record.conform_finding import ConformFinding, kept_error
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.rounds.conformance import Conformance


def conform_outcome(
    header: ConformHeader,
    conformance: Conformance,
    coverage: Coverage,
    findings: Sequence[ConformFinding],
    model: ModelCoverage | None,
    stopped_by: StoppedBy,
    seconds: float,
    devices: Sequence[str] = (),
) -> ConformDocument:
    """Return the result of a run.

    Args:
        header: what run it is.
        conformance: what came of its models.
        coverage: what they covered.
        findings: what was found.
        model: what is known of the model that the user named; None for none.
        stopped_by: why it ended.
        seconds: duration of the run.
        devices: the names of those that worked on it, where it was gone on with.

    """
    warning = f"several devices that are alike worked on this run: {', '.join(devices)}"
    return ConformDocument(
        edgeflare=header.version,
        request=header.request,
        device=header.device,
        host=HostKernels(runtime=header.host_runtime, kernels=HOST_KERNELS),
        model=model,
        stopped_by=stopped_by,
        seconds=round(seconds, 3),
        models=conformance.models,
        graphs=conformance.graphs,
        coverage=_coverage(coverage),
        cells=_cells(conformance),
        findings=tuple(finding.entry() for finding in findings),
        refused=_refused(conformance),
        warnings=(warning,) if devices[1:] else (),
    )


def _coverage(coverage: Coverage) -> ConformCoverage:
    figures = coverage.figures()
    return ConformCoverage(
        cells=_share(figures["cells"]),
        buckets=_share(figures["buckets"]),
        uncovered=coverage.uncovered(),
    )


def _share(figure: CoverageFigure) -> CoveredShare:
    return CoveredShare(
        covered=figure.covered, of=figure.known - figure.refused, refused=figure.refused
    )


def _cells(conformance: Conformance) -> tuple[CellVerdicts, ...]:
    return tuple(
        CellVerdicts(
            operator=operator,
            type=type_,
            verdicts=dict(sorted(figures.verdicts.items())),
            rounding=kept_error(figures.rounding[0]) if figures.verdicts["rounding"] else None,
            rounding_unit=figures.rounding[1],
        )
        for (operator, type_), figures in sorted(conformance.cells.items())
    )


def _refused(conformance: Conformance) -> tuple[RefusedModels, ...]:
    return tuple(
        RefusedModels(
            operator=operator,
            type=type_,
            models=models,
            always=set(figures.verdicts) == {"refused"},
            message=message,
        )
        for (operator, type_), figures in sorted(conformance.cells.items())
        for message, models in sorted(figures.refused.items())
    )
