"""A finding of a conformance run: how an operator fails, when, and its smallest model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.known_issues import KnownIssue
from edgeflare.conform.record.conform_document import (
    FaultSymptom,
    FaultVerdict,
    FoundFault,
    LinkedIssue,
    SmallestStored,
    StoredOperator,
)
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.record.json_file import MOST


@dataclass(frozen=True, slots=True)
class SmallestModel:
    """The smallest model that was found to fail in the same way.

    Attributes:
        draft: the model as it is drawn.
        judgement: what was said of it.
        elements: values of all tensors that it is given.
        rows: rows of its operands that it is run on.
        device_runs: models that the device ran to find it.
        repeats: whether it failed so again when it was run once more at the end. What a kernel
            answers that reads memory which nothing wrote differs from process to process.
        file: path of the model in the run directory; its operands and answers lie beside it as
            `.npz`.

    """

    draft: Draft
    judgement: KernelJudgement
    elements: int
    rows: int
    device_runs: int
    repeats: bool
    file: str


@dataclass(frozen=True, slots=True)
class ConformFinding:
    """A way in which an operator fails.

    Attributes:
        number: position among the findings, from 1; those that count come first.
        operator: name in the schema; of operators that fail joined alone, their names.
        type: the operator's type.
        condition: the fewest predicates that all failing models share and passing ones lack.
        failing: models that fail in this way.
        judgement: the worst that was said of them; verdict and symptom are those of all.
        smallest: the smallest model that fails so, as far as there was time to look for it.
        accepted: the reason that the user gave for it; None for what is new.
        places: positions of the operators of the user's model that fail so as they stand.
        issue: what the world knows of it; None where nothing is known.
        arrangement: how operators that are right alone and wrong together hang together; empty of a
            single operator.
        graphs: the graphs of the user's model in which operators fail so, as they stand.

    """

    number: int
    operator: str
    type: str
    condition: FaultCondition
    failing: int
    judgement: KernelJudgement
    smallest: SmallestModel
    accepted: str | None = None
    places: tuple[int, ...] = ()
    issue: KnownIssue | None = None
    arrangement: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()

    @property
    def key(self) -> FindingKey:
        """What all models of it share besides the condition."""
        said = self.judgement
        return FindingKey(self.operator, self.type, said.verdict, said.symptom, said.counted)

    @property
    def counts(self) -> bool:
        """Whether it counts for the exit code."""
        return self.judgement.counted and self.accepted is None

    def entry(self) -> FoundFault:
        """Return what the document says of it."""
        smallest = self.smallest
        return FoundFault(
            number=self.number,
            operator=self.operator,
            type=self.type,
            verdict=cast("FaultVerdict", self.judgement.verdict),
            symptom=cast("FaultSymptom", self.judgement.symptom),
            condition=tuple(self.condition.texts),
            arrangement=self.arrangement,
            counted=self.judgement.counted,
            accepted=self.accepted,
            issue=None if self.issue is None else linked_issue(self.issue),
            failing=self.failing,
            places=self.places,
            graphs=self.graphs,
            worst=kept_error(self.judgement.worst),
            unit=self.judgement.unit or None,
            wrong=tuple(self.judgement.wrong),
            detail=self.judgement.detail,
            smallest=SmallestStored(
                operators=tuple(map(_operator, smallest.draft.nodes)),
                elements=smallest.elements,
                rows=smallest.rows,
                device_runs=smallest.device_runs,
                repeats=smallest.repeats,
                worst=kept_error(smallest.judgement.worst),
                detail=smallest.judgement.detail,
                file=smallest.file,
            ),
        )


def linked_issue(issue: KnownIssue) -> LinkedIssue:
    """Return what documents say of a known issue."""
    return LinkedIssue(
        says=issue.says,
        thread=issue.thread,
        state=issue.state,
        read=issue.read,
        work_around=issue.work_around,
    )


def _operator(node: DraftNode) -> StoredOperator:
    return StoredOperator(
        operator=node.operator,
        type=node.type,
        settings={
            name: setting.item() if isinstance(setting, np.generic) else setting
            for name, setting in node.configuration.items()
        },
        constants_seed=node.constants_seed,
        sources=tuple(node.sources),
        given=node.given,
    )


def kept_error(error: float) -> float | None:
    """Return an error as JSON has it: None for NaN, and for what not all its readers keep."""
    return float(error) if abs(error) <= MOST else None
