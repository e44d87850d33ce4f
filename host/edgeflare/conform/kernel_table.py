"""What each kernel set of each runtime makes of each operator and type, as data to look up.

The same drawn models run on all of them, and each answer is held to exact arithmetic alone.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from edgeflare import __version__
from edgeflare.conform.drafts.cells import Cell, cell_buckets, cell_parameters
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.findings.finding_evidence import Observation
from edgeflare.conform.findings.grouping import grouped
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.draft_verdict import posed
from edgeflare.conform.verdict.arm_comparison import DEVICE, ArmComparison, Ruler
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.conform.verdict.operator_verdict import judged, ruler
from edgeflare.conform.version_table import since_words
from edgeflare.errors import InfrastructureError
from edgeflare.pages.page import Bullets, Section, Table
from edgeflare.record.json_types import Count, CountFromOne

KERNELS_DOCUMENT: Final = "kernels.json"
KERNELS_CSV: Final = "kernels.csv"
KERNELS_PAGE: Final = "kernels.md"

MODELS_PER_CELL: Final = 16
"""Models that are drawn where no number is given, by the operators and types."""

_CHUNK: Final = 250
"""Models that are drawn and run at once."""

_NEAREST: Final = {"steps": 0.5 + 1e-6, "ulp": 1.0, "": 0.0}
"""Errors up to which an answer is exact: the nearest step, a float next to the exact value."""

_LEGEND: Final = (
    "Exact: each value is the nearest one. A step off: it is within what rounding may. Wrong,"
    " refused and crashed: in at least one model. The file kernels.csv has each cell."
)


class KernelTable(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.kernels/v1"
):
    """What kernel sets make of operators.

    Attributes:
        edgeflare: version that wrote it.
        command: returns the command that makes a table of so many models.
        machine: CPU that it was made on.
        rng_seed: the run seed.
        models: models that were run on each kernel set.
        columns: the kernel sets, from the oldest version of the runtime.
        rows: a row for each operator and type.

    """

    edgeflare: str
    command: str
    machine: str
    rng_seed: Count
    models: CountFromOne
    columns: tuple[KernelColumn, ...]
    rows: tuple[KernelRow, ...]


class KernelColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel set of a runtime.

    Attributes:
        name: name of the kernel set with its version, such as "xnnpack@2.2.0".
        kernels: name of the kernel set.
        runtime: package and version of the runtime.

    """

    name: str
    kernels: str
    runtime: str


class KernelRow(msgspec.Struct, frozen=True, kw_only=True):
    """What kernel sets make of an operator in a type.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        models: how many were run.
        buckets: ranges of parameters that they cover.
        of: how many there are.
        kernels: what a kernel set makes of the models, by its column; a kernel set that is exact in
            all of them is left out.

    """

    operator: str
    type: str
    models: Count
    buckets: Count
    of: Count
    kernels: Mapping[str, KernelCell]


class KernelCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a kernel set makes of an operator in a type.

    Attributes:
        exact: models whose values are the nearest ones.
        step: models whose values are within what rounding may.
        wrong: models with wrong answers.
        refused: models that the runtime does not take.
        crashed: models of which the process dies, or that do not answer in time.
        when: how and under which conditions it is wrong or crashes.

    """

    exact: Count = 0
    step: Count = 0
    wrong: Count = 0
    refused: Count = 0
    crashed: Count = 0
    when: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The worst of it, in a word, with its conditions."""
        total = self.exact + self.step + self.wrong + self.refused + self.crashed
        when = f": {'; '.join(self.when)}" if self.when else ""
        if self.wrong or self.crashed:
            word = "wrong" if self.wrong else "crash"
            return f"{word} in {self.wrong + self.crashed} of {total}{when}"
        if self.refused == total:
            return "refused"
        some = f", {self.refused} of {total} refused" if self.refused else ""
        return f"{'a step off' if self.step else 'exact'}{some}"

    @property
    def state(self) -> str:
        """The worst of it, in a word."""
        if self.crashed and not self.wrong:
            return "crash"
        return self.words.split(" in ", maxsplit=1)[0].split(",", maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class TableArm:
    """A column, and what runs models for it.

    Attributes:
        column: the column.
        arm: what runs them.

    """

    column: KernelColumn
    arm: KernelArm


Stop = KeyboardInterrupt | InfrastructureError
"""What ends a table before its time: the user, or the loss of what runs models."""

_Round = Mapping[str, Sequence[tuple[DraftNode, str, KernelJudgement]]]
"""What became of some models, by kernel set: of each the name of its count, and what is said."""


@dataclass(slots=True)
class _Tried:
    """What became of models on one kernel set, by operator and type."""

    counts: dict[Cell, Counter[str]] = field(default_factory=dict)
    observations: dict[Cell, list[Observation]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, rounds: Sequence[_Round]) -> _Tried:
        """Return what became of all models on a kernel set."""
        tried = cls()
        for once in rounds:
            for node, kind, judgement in once[name]:
                tried._add(node, kind, judgement)
        return tried

    def _add(self, node: DraftNode, kind: str, judgement: KernelJudgement) -> None:
        facts = known_operators()[node.operator].facts(node.type, node.configuration)
        settings = {**node.configuration, **facts}
        self.counts.setdefault(node.cell, Counter())[kind] += 1
        seen = Observation(node.operator, node.type, settings, judgement)
        self.observations.setdefault(node.cell, []).append(seen)


def kernel_table(
    cells: Sequence[Cell],
    models: int,
    rng_seed: int,
    arms: Sequence[TableArm],
    over: Callable[[int], bool] = lambda _done: False,
    tried: Callable[[int], None] = lambda _done: None,
    command: Callable[[int], str] = lambda _models: "",
    machine: str = "",
) -> tuple[KernelTable, Stop | None]:
    """Run drawn models on kernel sets, and return what each makes of each operator and type.

    Args:
        cells: operators and types.
        models: how many are drawn.
        rng_seed: the run seed.
        arms: the kernel sets, from the oldest version.
        over: is called with how many models were run, and returns whether to end there.
        tried: is called with how many were run, each counted once for each kernel set.
        command: the command that makes it.
        machine: CPU that it is made on.

    Returns:
        The table of what ran on all kernel sets, and what ended it before its time.

    Raises:
        InfrastructureError: what runs them is lost before anything ran on all of them.

    """
    drawing = UniformDrawing(Coverage(cells, ()), np.random.default_rng(rng_seed))
    rounds: list[_Round] = []
    stop: Stop | None = None
    done = 0
    try:
        while done < models and not over(done):
            chunk = [draft.nodes[0] for draft in drawing.ask(min(_CHUNK, models - done))]
            if not chunk:
                break
            rounds.append(_run_once(chunk, arms, done, tried))
            done += len(chunk)
    except (KeyboardInterrupt, InfrastructureError) as error:
        if not rounds:
            raise
        stop = error
    names = [table_arm.column.name for table_arm in arms]
    nodes = [node for once in rounds for node, *_ in once[names[0]]]
    table = KernelTable(
        edgeflare=__version__,
        command=command(len(nodes)),
        machine=machine,
        rng_seed=rng_seed,
        models=len(nodes),
        columns=tuple(table_arm.column for table_arm in arms),
        rows=tuple(_rows(cells, nodes, {name: _Tried.of(name, rounds) for name in names})),
    )
    return table, stop


def _run_once(
    nodes: Sequence[DraftNode], arms: Sequence[TableArm], before: int, tried: Callable[[int], None]
) -> _Round:
    """Run some models on all kernel sets, after so many others; return what became of them."""
    models = [posed(Draft((node,)), {}).whole for node in nodes]
    rulers: dict[int, Ruler] = {}
    found: dict[str, list[tuple[DraftNode, str, KernelJudgement]]] = {}
    for number, table_arm in enumerate(arms, 1):
        answers = run_padded([table_arm.arm], models)
        seen = found[table_arm.column.name] = []
        for at, (node, model) in enumerate(zip(nodes, models, strict=True)):
            (answer,) = answers[at].values()
            seen.append((node, *_kind(at, node, model, answer, rulers)))
        tried(before * len(arms) + number * len(models))
    return found


def _kind(
    at: int, node: DraftNode, model: PosedModel, answer: ModelAnswer, rulers: dict[int, Ruler]
) -> tuple[str, KernelJudgement]:
    """Return what became of a model, by the name of its count, and what is said of it."""
    specification = known_operators()[node.operator]
    if answer.failure is None:
        if at not in rulers:
            rulers[at] = ruler(specification, node.type, model.graph, model.operands, model.rows)
        measure = rulers[at]
        compared = ArmComparison.of(measure, {DEVICE: answer})
        if not compared.is_wrong(compared.device):
            errors = compared.device.errors[measure.judged]
            units = {measure.unit(place) for place in np.flatnonzero(measure.judged)[:1]}
            nearest = all(bool((errors <= _NEAREST[unit]).all()) for unit in units)
            right = KernelJudgement("right", telling=measure.telling)
            return "exact" if nearest else "step", right
    said = judged(specification, node.type, model.graph, model.operands, {DEVICE: answer})
    if said.verdict in ("refused", "crash", "hang"):
        return ("refused" if said.verdict == "refused" else "crashed"), said
    return "wrong", said


def _rows(
    cells: Sequence[Cell], nodes: Sequence[DraftNode], tried: Mapping[str, _Tried]
) -> Iterator[KernelRow]:
    of_cell: dict[Cell, list[DraftNode]] = {}
    for node in nodes:
        of_cell.setdefault(node.cell, []).append(node)
    for cell in cells:
        mine = of_cell.get(cell, [])
        covered = {bucket for node in mine for bucket in cell_buckets(cell, node.configuration)}
        yield KernelRow(
            operator=cell[0],
            type=cell[1],
            models=len(mine),
            buckets=len(covered),
            of=sum(len(parameter.buckets) for parameter in cell_parameters(cell)),
            kernels={
                name: _cell(seen, cell)
                for name, seen in tried.items()
                if mine and seen.counts[cell]["exact"] < len(mine)
            },
        )


def _cell(seen: _Tried, cell: Cell) -> KernelCell:
    groups = grouped(seen.observations[cell], known_operators())
    when = [
        " where ".join(filter(None, [group.key.symptom, " and ".join(group.condition.texts)]))
        for group in groups
        if group.key.verdict != "undefined"
    ]
    return KernelCell(**seen.counts[cell], when=tuple(dict.fromkeys(when)))


def table_csv(table: KernelTable) -> str:
    """Return a row for each operator and type, and a column for each kernel set."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [column.name for column in table.columns]
    writer.writerow(["operator", "type", "models", *names])
    for row in table.rows:
        words = (_words(row, name) for name in names)
        writer.writerow([row.operator, row.type, row.models, *words])
    return text.getvalue()


def _words(row: KernelRow, name: str) -> str:
    if not row.models:
        return "not tried"
    return row.kernels[name].words if name in row.kernels else "exact"


def _state(row: KernelRow, name: str) -> str:
    return row.kernels[name].state if name in row.kernels else "exact"


def table_sections(table: KernelTable) -> list[Section]:
    """Return the kernel sets with their figures, and the operators that one gets wrong."""
    tried = [row for row in table.rows if row.models]
    states = ("exact", "a step off", "wrong", "crash", "refused")
    figures = []
    for column in table.columns:
        counts = Counter(_state(row, column.name) for row in tried)
        figures.append(
            (column.kernels, column.runtime, *(f"{counts[state]:,}" for state in states))
        )
    said = (
        f"{table.models:,} models of {len(tried):,} operators and types, the same for each kernel"
        f" set, {min((row.models for row in tried), default=0)} to"
        f" {max((row.models for row in tried), default=0)} of each, on {table.machine}; run seed"
        f" {table.rng_seed}, EdgeFlare {table.edgeflare}."
    )
    header = ("kernels", "runtime", *states)
    summary = Table(title="", header=header, rows=figures, note=_LEGEND, numbers_from=2)
    kernels = dict.fromkeys(column.kernels for column in table.columns)
    rows = [(f"{row.operator} {row.type}", *_wrong_words(table, row, kernels)) for row in tried]
    wrong = [row for row in rows if any(word != "·" for word in row[1:])]
    return [
        Section(id="kernels", title="Kernel sets", blocks=[Bullets([said]), summary]),
        Section(
            id="wrong",
            title="What a kernel set gets wrong",
            blocks=[Table.of_words(("operator", *kernels), wrong)],
        ),
    ]


def _wrong_words(table: KernelTable, row: KernelRow, kernels: Iterable[str]) -> Iterator[str]:
    """Yield for each kernel set whether it is wrong, and since which version."""
    for name in kernels:
        columns = [column for column in table.columns if column.kernels == name]
        outcomes = [
            (
                column.runtime.rpartition(" ")[2],
                {"a step off": "right", "exact": "right"}.get(
                    _state(row, column.name), _state(row, column.name)
                ),
            )
            for column in columns
        ]
        if all(outcome in ("right", "refused") for _, outcome in outcomes):
            yield "·"
            continue
        last = row.kernels.get(columns[-1].name)
        when = f": {'; '.join(last.when)}" if last is not None and last.when else ""
        yield f"{since_words(outcomes)}{when}"
