"""The state of a conformance run: what was covered, said and seen to fail; and its document."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Coverage, CoverageFigure
from edgeflare.conform.drafts.draft import DraftNode
from edgeflare.conform.execution.model_opener import HOST_KERNELS
from edgeflare.conform.findings.finding_evidence import Observation
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_document import (
    CellVerdicts,
    ConformCoverage,
    ConformDocument,
    CoveredShare,
    HostKernels,
    ModelCoverage,
    RefusedModels,
    StoppedBy,
    TriedGraphs,
)
from edgeflare.conform.record.conform_finding import ConformFinding, kept_error
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.rounds.draft_verdict import JudgedDraft
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement, Unit, Verdict


@dataclass(slots=True)
class CellFigures:
    """What was said of the models of a cell.

    Attributes:
        verdicts: how many models have each verdict.
        rounding: the largest difference from the twin that is rounding, and its unit.
        refused: the messages of models that the device refused, and how many each.

    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    rounding: tuple[float, Unit] = (0.0, "")
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, judgement: KernelJudgement) -> None:
        """Add what was said of a model."""
        self.verdicts[judgement.verdict] += 1
        if judgement.verdict == "rounding":
            self.rounding = max(self.rounding, (judgement.worst, judgement.unit))
        if judgement.verdict == "refused":
            self.refused[judgement.detail] += 1


@dataclass(slots=True)
class Conformance:
    """What a run has seen so far.

    Attributes:
        models: drafts that were run.
        cells: figures of each cell that was run.
        observations: observations of each cell, in the order in which they were made.
        nodes: the models of the observations, as they were drawn.
        joined: drafts whose whole graph is not what its operators are one after the other.
        graphs: what came of graphs; None where none were asked for.

    """

    models: int = 0
    cells: defaultdict[Cell, CellFigures] = field(default_factory=lambda: defaultdict(CellFigures))
    observations: defaultdict[Cell, list[Observation]] = field(
        default_factory=lambda: defaultdict(list)
    )
    nodes: defaultdict[Cell, list[DraftNode]] = field(default_factory=lambda: defaultdict(list))
    joined: list[JudgedDraft] = field(default_factory=list)
    graphs: TriedGraphs | None = None

    def add(self, judged: JudgedDraft) -> None:
        """Add what was said of a draft."""
        self.models += 1
        for node, judgement in zip(judged.draft.nodes, judged.nodes, strict=True):
            if judgement is None:
                continue
            self.cells[node.cell].add(judgement)
            self.observations[node.cell].append(
                Observation(node.operator, node.type, settings_of(node), judgement)
            )
            self.nodes[node.cell].append(node)
        if judged.whole is not None and judged.whole.is_finding:
            self.joined.append(judged)

    def given(self, cells: Iterable[Cell]) -> set[int]:
        """Return the places of operators of the user's model that were run as they stand.

        Args:
            cells: those of the operators that are meant.

        """
        return self._given(cells, refused=False)

    def refused(self, cells: Iterable[Cell]) -> set[int]:
        """Return the places of those that the device refused, likewise."""
        return self._given(cells, refused=True)

    def _given(self, cells: Iterable[Cell], *, refused: bool) -> set[int]:
        return {
            node.given
            for cell in cells
            for node, seen in zip(
                self.nodes.get(cell, ()), self.observations.get(cell, ()), strict=True
            )
            if node.given is not None and (seen.judgement.verdict == "refused") == refused
        }


def settings_of(node: DraftNode) -> Mapping[str, Setting]:
    """Return what conditions may speak of: the configuration of a node, and facts."""
    facts = known_operators()[node.operator].facts(node.type, node.configuration)
    return {**node.configuration, **facts}


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
    covered = coverage.figures()
    warning = f"several devices that are alike worked on this run: {', '.join(devices)}"
    return ConformDocument(
        edgeflare=header.version,
        plan=header.request,
        device=header.device,
        host=HostKernels(
            runtime=header.host.runtime,
            runtime_version=header.host.runtime_version,
            kernels=HOST_KERNELS,
        ),
        model=model,
        stopped_by=stopped_by,
        seconds=round(seconds, 3),
        models=conformance.models,
        graphs=conformance.graphs,
        coverage=ConformCoverage(
            cells=_share(covered["cells"]),
            buckets=_share(covered["buckets"]),
            uncovered=coverage.uncovered(),
        ),
        cells=_cells(conformance),
        findings=tuple(finding.entry() for finding in findings),
        refused=_refused(conformance),
        warnings=(warning,) if devices[1:] else (),
    )


def _share(figure: CoverageFigure) -> CoveredShare:
    return CoveredShare(
        covered=figure.covered, total=figure.known - figure.refused, refused=figure.refused
    )


def _cells(conformance: Conformance) -> tuple[CellVerdicts, ...]:
    return tuple(
        CellVerdicts(
            operator=operator,
            type=type_,
            verdicts=dict(sorted(figures.verdicts.items())),
            rounding=kept_error(figures.rounding[0]) if figures.verdicts["rounding"] else None,
            rounding_unit=figures.rounding[1] or None,
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
