"""What each kernel set of each runtime makes of each operator and type, as data to look up.

The same drawn models run on all of them, in the same order, and each answer is held to exact
arithmetic alone. Where time is limited each kernel set has an equal part of it: some answer to
thousands of models while others need as long to refuse one.
"""

from __future__ import annotations

import csv
import io
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

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
from edgeflare.pages.facts import in_words
from edgeflare.pages.page import Bullets, Section, Table
from edgeflare.record.json_types import Count, CountFromOne
from edgeflare_protos import __version__

KERNELS_DOCUMENT: Final = "kernels.json"
KERNELS_CSV: Final = "kernels.csv"
KERNELS_PAGE: Final = "kernels.md"

MODELS_PER_CELL: Final = 16
"""Models that are drawn where no number is given, by the operators and types."""

_ROUND: Final = 125
"""Models that a kernel set runs at once."""

_ROUNDS_KEPT: Final = 4
"""Rounds whose exact answers are kept for the kernel sets that are behind: those that take as long
as each other are never more apart."""

_UNANSWERED: Final = 3
"""Models of an operator and type to which a kernel set gives no answer, and to none before, after
which it is given no more: each takes a process, and more to find it among others."""

_NEAREST: Final = {"steps": 0.5 + 1e-6, "ulp": 1.0, "": 0.0}
"""Errors up to which an answer is exact: the nearest step, a float next to the exact value."""

_TOLD_ALONE: Final = ("not tried", "refused", "wrong", "crash")
"""What is the same of fewer models, or is told with their number."""

_LEGEND: Final = (
    "Of each: how many models of an operator and type that it answers were run, from the least to"
    " the most. Exact: each value is the nearest one. A step off: it is within what rounding may."
    " Wrong, crash: in at least one model. Refused: in all. The CSV file beside this page has each"
    " cell."
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
        models: models that were drawn, and run on the kernel sets that had time for all.
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
        runtime: package of the runtime.
        runtime_version: version of that package.
        models: models that were run, less than others where its time was up before, and where it
            gave no answer to any of an operator.

    """

    name: str
    kernels: str
    runtime: str
    runtime_version: str
    models: Count = 0


class KernelRow(msgspec.Struct, frozen=True, kw_only=True):
    """What kernel sets make of an operator in a type.

    Attributes:
        operator: name of the operator.
        type: the operator's type.
        models: how many were drawn.
        buckets: ranges of parameters that they cover.
        buckets_total: how many there are.
        kernels: what a kernel set makes of the models that were run on it, by its column; a kernel
            set that was given all and is exact in all of them is left out.

    """

    operator: str
    type: str
    models: Count
    buckets: Count
    buckets_total: Count
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
    def total(self) -> int:
        """How many models were run."""
        return self.exact + self.step + self.wrong + self.refused + self.crashed

    @property
    def words(self) -> str:
        """The worst of it, in a word, with its conditions."""
        total = self.total
        if not total:
            return "not tried"
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


@dataclass(slots=True)
class _Tried:
    """What became of models on one kernel set, by operator and type."""

    counts: dict[Cell, Counter[str]] = field(default_factory=dict)
    observations: dict[Cell, list[Observation]] = field(default_factory=dict)

    @property
    def models(self) -> int:
        """How many were run."""
        return sum(counts.total() for counts in self.counts.values())

    def is_left_out(self, cell: Cell) -> bool:
        """Return whether no more models of a cell are run: none of them was ever answered."""
        counts = self.counts.get(cell, Counter())
        lost = counts["refused"] + counts["crashed"]
        return lost == counts.total() and lost >= _UNANSWERED

    def add(self, node: DraftNode, kind: str, judgement: KernelJudgement) -> None:
        """Add what became of a model, by the name of its count, and what is said of it."""
        facts = known_operators()[node.operator].facts(node.type, node.configuration)
        settings = {**node.configuration, **facts}
        self.counts.setdefault(node.cell, Counter())[kind] += 1
        seen = Observation(node.operator, node.type, settings, judgement)
        self.observations.setdefault(node.cell, []).append(seen)


@dataclass(slots=True)
class _KernelProgress:
    """How far a kernel set has come.

    Attributes:
        arm: the kernel set.
        rounds: rounds that it has run.
        seconds: what they took.
        tried: what became of their models.

    """

    arm: TableArm
    rounds: int = 0
    seconds: float = 0.0
    tried: _Tried = field(default_factory=_Tried)


@dataclass(frozen=True, slots=True)
class _RoundModels:
    """The models of a round, and how each is measured once it was: by its place."""

    models: Sequence[PosedModel]
    rulers: dict[int, Ruler] = field(default_factory=dict)


class _Rounds:
    """The rounds of models that all kernel sets are given in the same order."""

    def __init__(self, cells: Sequence[Cell], models: int, rng_seed: int) -> None:
        self._drawing = UniformDrawing(Coverage(cells, ()), np.random.default_rng(rng_seed))
        self._left = models
        self._nodes: list[list[DraftNode]] = []
        self._ready: OrderedDict[int, _RoundModels] = OrderedDict()

    def drawn(self, count: int) -> list[DraftNode]:
        """Return the models of so many rounds."""
        return [node for nodes in self._nodes[:count] for node in nodes]

    def has(self, number: int) -> bool:
        """Return whether there is a round; draw it if it is the next."""
        while number >= len(self._nodes) and self._left:
            asked = self._drawing.ask(min(_ROUND, self._left))
            self._left = self._left - len(asked) if asked else 0
            if asked:
                self._nodes.append([draft.nodes[0] for draft in asked])
        return number < len(self._nodes)

    def run(self, progress: _KernelProgress) -> None:
        """Run a kernel set's next round on it; nothing of it counts if that is lost meanwhile."""
        nodes = self._nodes[progress.rounds]
        round_models = self._round_models(progress.rounds)
        begun = time.monotonic()
        places = [at for at, node in enumerate(nodes) if not progress.tried.is_left_out(node.cell)]
        chosen = [round_models.models[at] for at in places]
        answers = run_padded([progress.arm.arm], chosen)
        kinds = [  # all of them before one is counted: to judge takes long, and Ctrl-C may end it
            _kind(at, nodes[at], model, answer, round_models.rulers)
            for at, model, by_arm in zip(places, chosen, answers, strict=True)
            for answer in by_arm.values()
        ]
        for at, kind in zip(places, kinds, strict=True):
            progress.tried.add(nodes[at], *kind)
        progress.rounds += 1
        progress.seconds += time.monotonic() - begun

    def _round_models(self, number: int) -> _RoundModels:
        if number not in self._ready:
            nodes = self._nodes[number]
            models = [posed(Draft((node,)), {}).whole for node in nodes]
            self._ready[number] = _RoundModels(models)
            if len(self._ready) > _ROUNDS_KEPT:
                self._ready.popitem(last=False)
        return self._ready[number]


def kernel_table(
    cells: Sequence[Cell],
    models: int,
    rng_seed: int,
    arms: Sequence[TableArm],
    over: Callable[[], bool] = lambda: False,
    tried: Callable[[int], None] = lambda _done: None,
    command: Callable[[int], str] = lambda _models: "",
    machine: str = "",
) -> tuple[KernelTable, Stop | None]:
    """Run drawn models on kernel sets, and return what each makes of each operator and type.

    That kernel set runs its next round which has spent least time, so that each has an equal part
    of it until it has run all.

    Args:
        cells: operators and types.
        models: how many are drawn.
        rng_seed: the run seed.
        arms: the kernel sets, from the oldest version.
        over: returns whether the time is up; every kernel set runs one round in any case.
        tried: is called with how many were run, each counted once for each kernel set.
        command: the command that makes it.
        machine: CPU that it is made on.

    Returns:
        The table of what ran, and what ended it before its time.

    Raises:
        InfrastructureError: what runs them is lost before a round ran on all of them.

    """
    rounds = _Rounds(cells, models, rng_seed)
    several = [_KernelProgress(arm) for arm in arms]
    stop: Stop | None = None
    try:
        while left := [progress for progress in several if rounds.has(progress.rounds)]:
            now = min(left, key=lambda progress: progress.seconds)
            if over() and now.rounds:
                break
            rounds.run(now)
            tried(sum(progress.tried.models for progress in several))
    except (KeyboardInterrupt, InfrastructureError) as error:
        if not all(progress.rounds for progress in several):
            raise
        stop = error
    nodes = rounds.drawn(max(progress.rounds for progress in several))
    by_name = {progress.arm.column.name: progress.tried for progress in several}
    table = KernelTable(
        edgeflare=__version__,
        command=command(len(nodes)),
        machine=machine,
        rng_seed=rng_seed,
        models=len(nodes),
        columns=tuple(
            msgspec.structs.replace(progress.arm.column, models=progress.tried.models)
            for progress in several
        ),
        rows=tuple(_rows(cells, nodes, by_name)),
    )
    return table, stop


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
            buckets_total=sum(len(parameter.buckets) for parameter in cell_parameters(cell)),
            kernels={
                name: _cell(seen, cell)
                for name, seen in tried.items()
                if mine and seen.counts.get(cell, Counter())["exact"] < len(mine)
            },
        )


def _cell(seen: _Tried, cell: Cell) -> KernelCell:
    groups = grouped(seen.observations.get(cell, []), known_operators())
    when = [
        " where ".join(
            filter(None, [in_words(group.key.symptom), " and ".join(group.condition.texts)])
        )
        for group in groups
        if group.key.verdict != "undefined"
    ]
    return KernelCell(**seen.counts.get(cell, Counter[str]()), when=tuple(dict.fromkeys(when)))


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
    """Return what a kernel set makes of an operator; of how many models, where not of all."""
    if not row.models:
        return "not tried"
    if (cell := row.kernels.get(name)) is None:
        return "exact"
    told = cell.total == row.models or cell.state in _TOLD_ALONE
    return cell.words if told else f"{cell.words} ({cell.total} tried)"


_OUTCOMES: Final = {"a step off": "right", "exact": "right", "not tried": "not-tried"}
"""What a state is as the outcome of a version, where the two differ."""


def _state(row: KernelRow, name: str) -> str:
    return row.kernels[name].state if name in row.kernels else "exact"


def table_sections(table: KernelTable) -> list[Section]:
    """Return the kernel sets with their figures, and the operators that one gets wrong."""
    tried = [row for row in table.rows if row.models]
    states = ("exact", "a step off", "wrong", "crash", "refused", "not tried")
    figures = []
    for column in table.columns:
        counts = Counter(_state(row, column.name) for row in tried)
        numbers = (f"{counts[state]:,}" for state in states)
        of_each = _of_each(tried, column.name)
        runtime = f"{column.runtime} {column.runtime_version}"
        figures.append((column.kernels, runtime, f"{column.models:,}", of_each, *numbers))
    said = (
        f"{table.models:,} models of {len(tried):,} operators and types were drawn,"
        f" {min((row.models for row in tried), default=0)} to"
        f" {max((row.models for row in tried), default=0)} of each. {_ran_words(table)}; on"
        f" {table.machine}, run seed {table.rng_seed}, EdgeFlare {table.edgeflare}."
    )
    header = ("kernels", "runtime", "models", "of each", *states)
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


def _ran_words(table: KernelTable) -> str:
    """Return how many of the models each kernel set ran."""
    if all(column.models == table.models for column in table.columns):
        return "Each kernel set ran all of them"
    return (
        "Each kernel set ran them in the same order, as far as an equal part of the time took it,"
        f" and no more of an operator and type once it answered none of {_UNANSWERED}"
    )


def _of_each(rows: Sequence[KernelRow], name: str) -> str:
    """Return how many models a kernel set was given of the operators that it answers."""
    totals = [
        row.kernels[name].total if name in row.kernels else row.models
        for row in rows
        if _state(row, name) not in ("refused", "not tried")
    ]
    return f"{min(totals)} to {max(totals)}" if totals else "–"


def _wrong_words(table: KernelTable, row: KernelRow, kernels: Iterable[str]) -> Iterator[str]:
    """Yield for each kernel set whether it is wrong, and since which version."""
    for name in kernels:
        columns = [column for column in table.columns if column.kernels == name]
        outcomes = [
            (
                column.runtime_version,
                _OUTCOMES.get(_state(row, column.name), _state(row, column.name)),
            )
            for column in columns
        ]
        if all(outcome in ("right", "refused", "not-tried") for _, outcome in outcomes):
            yield "·"
            continue
        last = row.kernels.get(columns[-1].name)
        when = f": {'; '.join(last.when)}" if last is not None and last.when else ""
        yield f"{since_words(outcomes)}{when}"
