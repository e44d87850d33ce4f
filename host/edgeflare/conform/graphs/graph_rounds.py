"""The rounds of a run in which graphs are drawn, run and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec
import numpy as np

from edgeflare.conform.execution.kernel_arm import KernelArm, PosedModel
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_drawing import GraphDrawing
from edgeflare.conform.graphs.graph_trace import graphs_digest
from edgeflare.conform.graphs.graph_turns import fall_in_parts
from edgeflare.conform.graphs.graph_verdict import TURNS, Invocation, JudgedGraph, judge_graphs
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.record.conform_document import TriedGraphs
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.specification.activation_tensors import operand_values
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.errors import UserError
from edgeflare.record.journal import reporting_damage

_LOWEST: Final = (-1.0, 0.0)
"""The lowest float of each of the two inputs on which a user's model is run as a whole: images are
mostly normalized to one of these ranges, and a classifier may be saturated beyond its own."""

GRAPHS_OF_ROUND: Final = 96
"""Graphs of a round; a worker process starts for each operator in the longest of them. On a GPU in
software a round takes up to a minute, and one that has begun is ended."""


_TURNS_EACH: Final = 8
"""Graphs with an operator of a type that take turns before only some do."""

_TURNS_OF: Final = 4
"""One of so many graphs takes turns in any case: to open them anew, to write files of them and to
open these for each row takes half as long again."""


class SpentSeconds(Protocol):
    """Counts the seconds of a run.

    Attributes:
        spent: what counts to the limit.

    """

    @property
    def spent(self) -> float:
        """See the class."""

    def note(self) -> None:
        """Keep what the run has taken."""


@dataclass(slots=True)
class GraphRounds:
    """Runs rounds of graphs, those of the journal again without running graphs.

    Attributes:
        arms: the device first, then the host's kernel sets.
        drawing: draws graphs.
        journal: keeps each round.
        failing: graphs whose operators are right alone, and wrong together.
        verdicts: how many graphs have each verdict; "alone" of those of which an operator is wrong
            alone.
        in_turn: how many were also to be run in turns.

    """

    arms: Sequence[KernelArm]
    drawing: GraphDrawing
    journal: ConformJournal
    failing: list[FailingGraph] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    in_turn: int = 0
    _number: int = 0
    _turned: Counter[tuple[str, str]] = field(default_factory=Counter)
    _seen: int = 0

    @property
    def kept(self) -> bool:
        """Whether the journal has the next round."""
        return self.journal.has(self._number, "graphs")

    @property
    def cells(self) -> tuple[int, int]:
        """How many operators and types the device took, and of how many."""
        return self.drawing.taken

    @property
    def tried(self) -> TriedGraphs:
        """What the document says of them."""
        verdicts = dict(sorted(self.verdicts.items()))
        return TriedGraphs(
            tried=sum(verdicts.values()),
            pairs=self.drawing.pairs,
            in_turn=self.in_turn,
            verdicts=verdicts,
        )

    def try_model(
        self,
        graph: OperatorGraph,
        seeds: Values | None,
        rng: np.random.Generator,
        spent: SpentSeconds,
        name: str = "",
    ) -> None:
        """Run a graph of a user's model as a whole, which is shrunk if it fails.

        Args:
            graph: the model's.
            seeds: what it is given, (inputs, *shape) of its one input; None where that is drawn, as
                where it has several or others.
            rng: draws it.
            spent: knows how many seconds the run has spent.
            name: what the graph is to the user; empty where the model has no other.

        Raises:
            UserError: the journal's round is of other graphs.

        """
        rows = [[_value(graph.values[at], low, rng) for at in graph.inputs] for low in _LOWEST]
        operands = tuple(np.stack(several) for several in zip(*rows, strict=True))
        if seeds is not None and [seeds.shape[1:]] == [
            graph.values[at].shape for at in graph.inputs
        ]:
            operands = (seeds.astype(graph.values[graph.inputs[0]].dtype),)
        model = PosedModel(graph, operands, len(operands[0]))
        self._take([model], self._judged([model], spent), name)

    def draw(self, count: int, spent: SpentSeconds) -> int:
        """Run a round of graphs; return how many were run.

        Args:
            count: most graphs.
            spent: knows how many seconds the run has spent.

        Raises:
            UserError: the journal's round is of other graphs.

        """
        models = self.drawing.ask(count)
        if not models:
            return 0
        judged = self._judged(models, spent)
        self.drawing.tell(judged)
        self._take(models, judged)
        return len(models)

    def _take(
        self, models: Sequence[PosedModel], judged: Sequence[JudgedGraph], part_of: str = ""
    ) -> None:
        for model, graph in zip(models, judged, strict=True):
            said = graph.judgement
            self.verdicts["alone" if said is None else said.verdict] += 1
            if said is not None and graph.fails:
                failing = FailingGraph(model, said, graph.invocation, graph.wrong, part_of)
                self.failing.append(failing)

    def _judged(self, models: Sequence[PosedModel], spent: SpentSeconds) -> list[JudgedGraph]:
        digest, number = graphs_digest(models), self._number
        self._number += 1
        in_turn = self._chosen_for_turns(models)
        self.in_turn += len(in_turn)
        if (kept := self.journal.kept(number, "graphs")) is None:
            judged = judge_graphs(models, self.arms, in_turn)
            outcomes = list(map(_to_json, judged))
            self.journal.keep(number, digest, outcomes, spent.spent, "graphs")
            spent.note()
            return judged
        if kept[0] != digest:
            raise UserError(
                f"{self.journal.path}: this installation draws other graphs than those of round"
                f" {number}: go on with the version that began the run, or begin another"
            )
        with reporting_damage(self.journal.path):
            return list(map(_from_json, kept[1]))

    def _chosen_for_turns(self, models: Sequence[PosedModel]) -> list[int]:
        """Return the places of graphs that take turns: with new operators, and some of all.

        A graph that falls in parts was drawn for that.
        """
        if not any(self.arms[0].taking_turns(turns) for turns in TURNS.values()):
            return []
        chosen = []
        for at, model in enumerate(models):
            graph = model.graph
            cells = {(node.operator, graph.results(node)[0].dtype) for node in graph.nodes}
            self._seen += 1
            seldom = any(self._turned[cell] < _TURNS_EACH for cell in cells)
            if seldom or self._seen % _TURNS_OF == 0 or fall_in_parts(graph):
                chosen.append(at)
                self._turned.update(cells)
        return chosen


def _value(value: GraphValue, lowest: float, rng: np.random.Generator) -> Values:
    """Return values for an input of a user's model: floats as after normalization."""
    if value.dtype.startswith("float"):
        return rng.uniform(lowest, 1, value.shape).astype(value.dtype)
    return operand_values(value, "uniform", rng)


def _to_json(graph: JudgedGraph) -> list[Any]:
    said = None if graph.judgement is None else msgspec.to_builtins(graph.judgement)
    return [said, list(graph.taken), graph.invocation, list(graph.wrong)]


def _from_json(values: Sequence[Any]) -> JudgedGraph:
    said, taken, invocation, wrong = values
    judgement = None if said is None else msgspec.convert(said, KernelJudgement)
    return JudgedGraph(
        judgement,
        tuple(msgspec.convert(taken, list[bool | None])),
        msgspec.convert(invocation, Invocation),
        wrong=tuple(msgspec.convert(wrong, list[int])),
    )
