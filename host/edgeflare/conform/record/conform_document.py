"""The result of a conformance run: `conform.json`, schema `edgeflare.conform/v1`.

docs/conform/document.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from edgeflare.conform.drafts.coverage import UncoveredParts
from edgeflare.conform.record.conform_header import ConformRequest
from edgeflare.conform.verdict.kernel_judgement import ErrorUnit
from edgeflare.core.interrupt import InterruptedBy
from edgeflare.devices.provenance import Provenance
from edgeflare.errors import UserError
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_types import Amount, Count, CountFromOne, Number
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, RunDirectory

StoppedBy = InterruptedBy | Literal["models", "time-limit", "nothing-left"]
"""Why a run ended: all models that were asked for were drawn; its time was up; Ctrl-C or
SIGTERM; or there was nothing left to draw."""

FaultVerdict = Literal["device", "host", "shared", "undefined", "crash", "hang"]
"""Those of the verdicts on models that are findings."""

IssueState = Literal["open", "closed", "merged"]
"""The state of a public thread."""

IN_PARTS: Final = "invoked by a signature for each part in turn"
"""How a graph that falls in parts is invoked, in the words of arrangements."""

FaultSymptom = Literal[
    "wrong-values",
    "biased",
    "not-finite",
    "wrong-shape",
    "crash",
    "hang",
    "neighbours",
    "corrupts",
]
"""How a finding is wrong."""


class ConformDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.conform/v1"
):
    """What the kernels of a device compute otherwise than operators mean.

    Attributes:
        edgeflare: version that wrote it.
        plan: what was asked.
        device: provenance of the device.
        host: the kernel sets that it is compared with.
        model: what was tried of the model of `--from`; null without.
        stopped_by: why the run ended.
        seconds: duration of the run.
        models: how many of single operators, and of MEMO's graphs, were run.
        graphs: what came of graphs of operators that are right alone; null where none were asked
            for.
        coverage: what the models cover.
        cells: verdicts by operator and type.
        findings: those that count first.
        refused: what the device refuses.
        warnings: a sentence each.

    """

    edgeflare: str
    plan: ConformRequest
    device: Provenance
    host: HostKernels
    model: ModelCoverage | None
    stopped_by: StoppedBy
    seconds: Amount
    models: Count
    graphs: TriedGraphs | None
    coverage: ConformCoverage
    cells: tuple[CellVerdicts, ...]
    findings: tuple[FoundFault, ...]
    refused: tuple[RefusedModels, ...]
    warnings: tuple[str, ...]

    @property
    def interrupted_by(self) -> InterruptedBy | None:
        """What stopped the run before its end, or None."""
        return self.stopped_by if self.stopped_by in ("interrupt", "sigterm") else None


class HostKernels(msgspec.Struct, frozen=True, kw_only=True):
    """The host's kernel sets.

    Attributes:
        runtime: package of the runtime, such as "ai-edge-litert".
        runtime_version: version of that package.
        kernels: names of the sets; the first is the twin.

    """

    runtime: str
    runtime_version: str
    kernels: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """The runtime with its version."""
        return f"{self.runtime} {self.runtime_version}"


class ModelCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the model of `--from` was tried.

    Attributes:
        file: name of the file.
        sha256: SHA-256 of the file.
        operators: how many it has.
        operators_tried: those that were run as they stand, or are equal to one that was.
        arithmetic: multiply-accumulates of all operators.
        arithmetic_tried: multiply-accumulates of the operators that were tried.
        distinct: operators that are known and asked for, of equal ones the first.
        tried: distinct operators that were run as they stand.
        untried: what was not tried, and why.
        graphs: the graphs of the model, whose operators' positions go on from one to the next;
            empty where it has one alone.

    """

    file: str
    sha256: str
    operators: Count
    operators_tried: Count
    arithmetic: Count
    arithmetic_tried: Count
    distinct: Count
    tried: Count
    untried: tuple[UntriedOperator, ...]
    graphs: tuple[ModelGraph, ...]


class ModelGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of the model of `--from`: what a signature runs, or what an operator does.

    Attributes:
        name: what it is to the user, such as "signature decode", "graph 2 while_body".
        first: position of its first operator.
        operators: positions that its operators take.

    """

    name: str
    first: Count
    operators: Count


class UntriedOperator(msgspec.Struct, frozen=True, kw_only=True):
    """Operators of a model that were not tried.

    Attributes:
        operator: name of the operator.
        places: positions in the model, from 0.
        why: the reason.
        arithmetic: multiply-accumulates of all of them.

    """

    operator: str
    places: tuple[Count, ...]
    why: str
    arithmetic: Count


class TriedGraphs(msgspec.Struct, frozen=True, kw_only=True):
    """The graphs of operators that were tried.

    Attributes:
        tried: how many were run.
        pairs: ordered pairs of operators and types that were among them.
        in_turn: how many were also to be run in two shapes and by two signatures in turn; 0 on
            kernels that keep the shapes and the signature in which a model was opened.
        verdicts: number of graphs by verdict; `alone` of those of which an operator is wrong, or
            gives no answer, alone.

    """

    tried: Count
    pairs: Count
    in_turn: Count
    verdicts: Mapping[str, CountFromOne]


class ConformCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """What the models of a run cover.

    Attributes:
        cells: operators and types.
        buckets: ranges of parameters.
        uncovered: what is left.

    """

    cells: CoveredShare
    buckets: CoveredShare
    uncovered: UncoveredParts


class CoveredShare(msgspec.Struct, frozen=True, kw_only=True):
    """How much of something is covered.

    Attributes:
        covered: number of what is.
        total: what the specification has and the device takes.
        refused: what the device does not take.

    """

    covered: Count
    total: Count
    refused: Count


class CellVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on the models of an operator and a type.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        verdicts: number of models by verdict.
        rounding: the greatest error that is rounding; null where there is none.
        rounding_unit: unit of `rounding`; null where that is null, or a share of the values.

    """

    operator: str
    type: str
    verdicts: Mapping[str, CountFromOne]
    rounding: Number | None
    rounding_unit: ErrorUnit | None


class FoundFault(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which an operator fails.

    Attributes:
        number: position in the list, from 1; those that count come first.
        operator: name of the operator; of operators that fail joined alone, their names.
        type: the operator's type.
        verdict: who is wrong.
        symptom: how it fails.
        condition: predicates that all failing models share and others lack.
        arrangement: how operators hang together that are right alone and wrong together; empty of
            an operator that fails alone.
        counted: whether it is a fault of the device.
        accepted: the reason that the user gave for it; null for what is new.
        issue: what the world knows of it; null where nothing is known.
        failing: number of models that fail in this way.
        places: positions of the operators in the model of `--from` that fail so as they stand, of
            equal ones the first.
        graphs: the graphs of that model in which operators fail so, such as "signature decode";
            empty where it has one alone.
        worst: the greatest error; null where it is not finite.
        unit: unit of the error; null where it is a share of the values.
        wrong: the arms that are wrong.
        detail: more of it in words.
        smallest: the smallest model that was found to fail so.

    """

    number: CountFromOne
    operator: str
    type: str
    verdict: FaultVerdict
    symptom: FaultSymptom
    condition: tuple[str, ...]
    arrangement: tuple[str, ...]
    counted: bool
    accepted: str | None
    issue: LinkedIssue | None
    failing: CountFromOne
    places: tuple[Count, ...]
    graphs: tuple[str, ...]
    worst: Number | None
    unit: ErrorUnit | None
    wrong: tuple[str, ...]
    detail: str
    smallest: SmallestStored

    @property
    def is_new(self) -> bool:
        """Whether it counts for the exit code."""
        return self.counted and self.accepted is None

    @property
    def is_in_parts(self) -> bool:
        """Whether its operators fall in parts, which are the two signatures of its file."""
        return IN_PARTS in self.arrangement


class LinkedIssue(msgspec.Struct, frozen=True, kw_only=True):
    """What the world knows of a finding.

    Attributes:
        says: what is wrong, in a line.
        thread: the public thread, such as "LiteRT#9272"; empty where none is known.
        state: the state of the thread when it was read; null without one.
        read: the month in which it was read, such as "2026-09"; empty without one.
        work_around: what to do instead; empty where nothing is known.

    """

    says: str
    thread: str
    state: IssueState | None
    read: str
    work_around: str

    @property
    def sentence(self) -> str:
        """What a finding that it is says of it."""
        instead = f"; instead: {self.work_around}" if self.work_around else ""
        if not self.thread:
            return f"{self.says}; no public thread is known{instead}"
        return f"{self.thread}, {self.state} in {month_words(self.read)}: {self.says}{instead}"


def month_words(month: str) -> str:
    """Return a month such as "2026-09" in words; what is none as it is."""
    year, _, number = month.partition("-")
    at = int(number) if number.isdecimal() and len(number) == 2 else 0
    return f"{_MONTHS[at - 1]} {year}" if 1 <= at <= len(_MONTHS) else month


_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


class SmallestStored(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest model that was found to fail in the same way.

    Attributes:
        operators: the model's operators, in their order.
        elements: values of all tensors that it is given.
        rows: rows of its operands that it is run on.
        device_runs: models that the device ran to find it.
        repeats: whether it failed so again when it was run once more at the end.
        worst: the greatest error; null where it is not finite.
        detail: more of it in words.
        file: path of the model in the run directory.

    """

    operators: Annotated[tuple[StoredOperator, ...], msgspec.Meta(min_length=1)]
    elements: Count
    rows: CountFromOne
    device_runs: Count
    repeats: bool
    worst: Number | None
    detail: str
    file: str


class StoredOperator(msgspec.Struct, frozen=True, kw_only=True):
    """An operator of a model.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        settings: values of its parameters, by name.
        constants_seed: seed of the values of its constants.
        sources: the operator that feeds each operand; -1 for none.
        given: position in the model of `--from`; null where it was drawn.

    """

    operator: str
    type: str
    settings: Mapping[str, Any]
    constants_seed: Count
    sources: tuple[Annotated[int, msgspec.Meta(ge=-1)], ...]
    given: Count | None


class RefusedModels(msgspec.Struct, frozen=True, kw_only=True):
    """Models of an operator and a type that the device refuses.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        models: how many.
        always: whether it refuses all of them.
        message: what its runtime says.

    """

    operator: str
    type: str
    models: CountFromOne
    always: bool
    message: str


def read_conformance(directory: RunDirectory) -> ConformDocument:
    """Return the document of a conformance run.

    Raises:
        UserError: the run was cut off before it was written, or it is damaged.

    """
    path = directory.inside(CONFORM_DOCUMENT)
    if not path.is_file() and (directory.path / CONFORM_JOURNAL).is_file():
        raise UserError(
            f"{directory.path} holds a conformance run that was cut off: go on with it by the same"
            f" `edgeflare conform` with --out {directory.path} --resume, and then show it"
        )
    try:
        return _READER.read(path)
    except UserError as error:
        if not (directory.path / CONFORM_JOURNAL).is_file():
            raise
        raise UserError(
            f"{error}; move it away, and the same `edgeflare conform` with --out {directory.path}"
            " --resume writes it anew"
        ) from error


_READER = DocumentReader(ConformDocument)
