"""Rounds of a conformance run on arms that answer exactly, but for faults that are planted.

The arms stand for hardware that cannot be had: a device of which every fault is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from conformed_runs import BOARD
from documents import run_host
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import FRESH, DraftNode
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.execution.kernel_arm import (
    KernelArm,
    ModelAnswer,
    PosedModel,
    RunFailure,
    RunFailureKind,
    Turns,
)
from edgeflare.conform.operator_graph import ABSENT, GraphValue, OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_header import ConformHeader, ConformRequest
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.specification.parameter import Configuration, Setting
from edgeflare.conform.verdict.exact_rows import one_exact
from edgeflare.conform.verdict.right_values import RightValues, allowance
from edgeflare.record.json_types import plain_json


@dataclass(frozen=True)
class PlantedFault:
    """What is wrong with the kernel of one operator.

    Attributes:
        operator: its name in the schema.
        shows: in which configurations.
        change: what becomes of an answer; of whole numbers, unless another change is named.
        failure: that it ends with instead; None where it answers.
        joined: whether it shows in graphs of several operators only.
        least_operators: of the graphs in which it shows.
        after: where it shows only there, the operator whose result is read.

    """

    operator: str
    shows: Callable[[Configuration], bool] = lambda _: True
    change: Callable[[Values], Values] = np.bitwise_not
    failure: RunFailureKind | None = None
    joined: bool = False
    least_operators: int = 1
    after: str | None = None

    def is_in(self, graph: OperatorGraph, whole: OperatorGraph, read: Set[int]) -> bool:
        """Whether it shows in an operator, which may be one of several.

        Args:
            graph: the operator alone.
            whole: all of them.
            read: the tensors of the whole that the operator reads.

        """
        (node,) = graph.nodes
        if node.operator != self.operator or (self.joined and len(whole.nodes) == 1):
            return False
        if len(whole.nodes) < self.least_operators:
            return False
        before = {one.operator for one in whole.nodes if not read.isdisjoint(one.outputs)}
        if self.after is not None and self.after not in before:
            return False
        return self.shows(known_operators()[node.operator].read(graph).configuration)


@dataclass
class ExactArm:
    """The kernels of one place; see `KernelArm`.

    Attributes:
        name: "device", or a kernel set of the host.
        faults: of its kernels.
        models: that it was asked to run, in their order.
        alone: that it was asked to run again, each by itself.

    """

    name: str = "device"
    faults: Sequence[PlantedFault] = ()
    models: list[PosedModel] = field(default_factory=list)
    alone: list[PosedModel] = field(default_factory=list)

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Answer models, which have to have as many rows each, as for any arm."""
        assert len({one.rows for one in models}) <= 1
        self.models += models
        return [self._answer(one) for one in models]

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        """Answer models as beside others."""
        assert len(models) == len(packed)
        self.alone += models
        return [self._answer(one) for one in models]

    def on_other_threads(self) -> ExactArm | None:
        """Return nothing: it has no threads."""
        return None

    def without_reset(self, rows: int) -> ExactArm | None:
        """Return nothing: it keeps no states."""
        del rows
        return None

    def taking_turns(self, turns: Turns) -> ExactArm | None:
        """Return an arm that answers as opened anew in each turn."""
        del turns
        return _InTurn(self.name, self.faults)

    def close(self) -> None:
        """Do nothing."""

    def _answer(self, model: PosedModel) -> ModelAnswer:
        """Evaluate one operator after the other, each result rounded to its type."""
        graph = model.graph
        known: dict[int, list[Values]] = {
            at: [value.values] * model.rows
            for at, value in enumerate(graph.values)
            if value.values is not None
        }
        known |= {at: list(rows) for at, rows in zip(graph.inputs, model.operands, strict=True)}
        for place, node in enumerate(graph.nodes):
            alone = graph.alone(place)
            faults = [one for one in self.faults if one.is_in(alone, graph, {*node.inputs})]
            for one in faults:
                if one.failure is not None:
                    return ModelAnswer(failure=RunFailure(one.failure, "planted"))
            given = [at for at in node.inputs if at != ABSENT and graph.values[at].values is None]
            rows = [
                exact_values(alone, [known[at][row] for at in given]) for row in range(model.rows)
            ]
            for at, several in zip(node.outputs, zip(*rows, strict=True), strict=True):
                known[at] = [_changed(one, faults) for one in several]
        return ModelAnswer(tuple(np.stack(known[at]) for at in graph.outputs))


class _InTurn(ExactArm):
    """The kernels of one place, which run models in turn with their others."""

    def _answer(self, model: PosedModel) -> ModelAnswer:
        if model.other is None:
            raise ValueError("a model without another takes no turns")
        own, other = super()._answer(replace(model, other=None)), super()._answer(model.other)
        failed = next((one for one in (own, other) if one.failure is not None), None)
        return failed or ModelAnswer((*own.outputs, *other.outputs, *own.outputs))


class BesideOthers(ExactArm):
    """A device whose planted faults show beside other models only."""

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        """Answer exactly, and say where that is another answer."""
        sound = [ExactArm().run([one])[0] for one in models]
        return [
            replace(one, neighbours=one.outputs[0].tobytes() != other.outputs[0].tobytes())
            for one, other in zip(sound, packed, strict=True)
        ]


def exact_values(graph: OperatorGraph, operands: Sequence[Values]) -> list[Values]:
    """Return the exact results of one operator, rounded to their types, of one row (*shape)."""
    (node,) = graph.nodes
    answers = one_exact(known_operators()[node.operator], graph, operands)
    return [_rounded(*both) for both in zip(graph.results(node), answers, strict=True)]


def check_seen(right: OperatorGraph, wrong: OperatorGraph, type_: str) -> None:
    """Fail unless the answer of an operator is right, and that of a wrong one is seen to be."""
    (node,) = right.nodes
    known = known_operators()[node.operator]
    given = known.operands(right, "uniform", np.random.default_rng(2))
    exact = one_exact(known, right, given)
    answers, others = (exact_values(graph, given) for graph in (right, wrong))
    worst = 0.0
    for value, reals, answer, other in zip(
        right.results(node), exact, answers, others, strict=True
    ):
        judged = RightValues(value, reals, allowance(node.operator, type_))
        assert judged.offences(judged.errors(answer)).max() <= 1
        worst = max(worst, float(judged.offences(judged.errors(other)).max()))
    assert worst > 1


def _rounded(value: GraphValue, exact: ExactAnswer) -> Values:
    with np.errstate(all="ignore"):
        if exact.kind != "steps" or value.quantization is None:
            return np.asarray(exact.values).astype(value.dtype).reshape(value.shape)
        known = np.iinfo(value.dtype)
        steps = exact.values / value.quantization.spread(len(value.shape))
        steps = np.nan_to_num(np.round(steps)) + value.quantization.zero_point
        return np.clip(steps, known.min, known.max).astype(value.dtype).reshape(value.shape)


def _changed(values: Values, faults: Sequence[PlantedFault]) -> Values:
    for one in faults:
        values = one.change(values)
    return values


ADD, SUM = ("ADD", "int8"), ("SUM", "int8")

CLAMPED = PlantedFault("ADD", lambda settings: settings["activation"] == "RELU6")
"""A fused activation that makes all values of an ADD wrong."""

HUNG = PlantedFault("SUM", lambda settings: settings["keep_dims"] is True, failure="hang")
"""A SUM that hangs if it keeps dimensions."""


@dataclass
class SeenProgress:
    """An observer of rounds that remembers.

    Attributes:
        rounds: models, covered cells, cells, and failing findings after each round.
        shrunk: findings that were shrunk and findings, whenever it was told.

    """

    rounds: list[tuple[int, int, int, int]] = field(default_factory=list)
    shrinking: list[tuple[int, int]] = field(default_factory=list)

    def conformed(self, models: int, cells: tuple[int, int], failing: int) -> None:
        """Remember a round."""
        self.rounds.append((models, *cells, failing))

    def graphs_tried(self, graphs: int, cells: tuple[int, int], failing: int) -> None:
        """Remember graphs as a round."""
        self.rounds.append((graphs, *cells, failing))

    def shrunk(self, done: int, total: int) -> None:
        """Remember how far shrinking is."""
        self.shrinking.append((done, total))


def faulty_arms(*faults: PlantedFault) -> tuple[ExactArm, ExactArm]:
    """Return a device with faults, and its twin without any."""
    return ExactArm("device", faults), ExactArm("xnnpack")


@contextmanager
def conforming(
    folder: Path, arms: Sequence[KernelArm], cells: Sequence[Cell] = (ADD,), rng_seed: int = 0
) -> Iterator[tuple[ConformRounds, UniformDrawing]]:
    """Begin rounds, or go on with those of the folder's journal; and what draws their models."""
    path = folder / "conform.db"
    header = a_header(cells, rng_seed)
    journal = ConformJournal.reopen(path) if path.exists() else None
    journal = journal or ConformJournal.create(path, plain_json(header))
    coverage = Coverage(cells)
    rounds = ConformRounds(arms, coverage, journal, {}, rng_seed, SeenProgress())
    try:
        yield rounds, UniformDrawing(coverage, np.random.default_rng(rng_seed))
    finally:
        journal.close()


def a_header(cells: Sequence[Cell] = (ADD,), rng_seed: int = 0) -> ConformHeader:
    """Return the header of a run on the device "board"."""
    device = replace(BOARD, soc="BCM2711", cpu_features=("asimd", "fp"))
    request = ConformRequest(tuple(cells), "uniform", "none", 96, None, rng_seed)
    host = run_host(runtime="ai-edge-litert", runtime_version="2.3.0")
    return ConformHeader("0.1.0", request, device, host, "abc")


def an_addition(source: int = FRESH, other: int = FRESH, **changed: Setting) -> DraftNode:
    """Return an ADD of int8 that has all its settings at their simplest but for some."""
    settings: dict[str, Setting] = {
        "shape": (2, 3),
        "first_broadcast": "none",
        "second_broadcast": "none",
        "constant": "none",
        "activation": "NONE",
        "first_scale": 1.0,
        "first_zero_point": 0,
        "second_scale": 1.0,
        "second_zero_point": 0,
        "output_scale": 1.0,
        "output_zero_point": 0,
    }
    return DraftNode(*ADD, {**settings, **changed}, 7, (source, other))
