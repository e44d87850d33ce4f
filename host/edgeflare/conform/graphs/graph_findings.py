"""Findings of graphs whose operators are right alone and wrong together: the least of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from edgeflare.conform.drafts.model_reading import graph_draft
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.findings.accepted_findings import (
    AcceptedFinding,
    accepted_reason,
    joined_name,
)
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey, Observation, finding_key
from edgeflare.conform.graphs.failing_graphs import DEAR, FailingGraph, FailingGraphs
from edgeflare.conform.graphs.graph_arrangement import ALSO, VIEWS, arrangement, hang_together
from edgeflare.conform.graphs.graph_shrinking import GraphTrial, shrunk
from edgeflare.conform.graphs.graph_trace import traced
from edgeflare.conform.graphs.graph_turns import taking_turns
from edgeflare.conform.graphs.graph_verdict import (
    TURNS,
    Invocation,
    JudgedGraph,
    judge_graphs,
    judge_wholes,
    wrong_places,
)
from edgeflare.conform.graphs.least_graph import LeastGraph, names_of, wiring
from edgeflare.conform.graphs.turns_verdict import answers_in_turn
from edgeflare.conform.record.conform_finding import ConformFinding, SmallestModel
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.run.run_directory import RunDirectory

_RUNS: Final = 300
"""Graphs that the device runs to shrink one."""

_DEAR_RUNS: Final = {"crash": 60, "hang": 12, "corrupts": 12}
"""Graphs that the device runs to shrink one where each costs a process, or the time limit of an
input, by the symptom."""

_RUNS_APART: Final = 60
"""Graphs that the device runs to shrink one where each is run in a file of its own."""

_MOST_APART: Final = 16
"""Failing graphs that are shrunk so: each takes some dozens of processes."""

_TRIED_AGAIN: Final = 3
"""Parts of a graph that are tried by themselves where something in their file writes over others,
the least first, until one fails there, too."""

_NAMED: Final = 3
"""Operators of a finding up to which it is of just these: a pair is wrong by what both do."""


@dataclass(slots=True)
class _AlikeGraphs:
    """Graphs that fail alike by the same operators in the same arrangement.

    Attributes:
        key: the operators' name, and how they fail.
        arrangement: how they hang together.
        least: the least of the graphs.
        judged: what is said of it, run by itself.
        runs: graphs that the device ran to find it.
        failing: what was said of each graph that fails so.
        cells: operators and types of all of them, but for views.
        parts_of: the graphs of the user's model in which it shows.
        pattern: the least of them, as it is recognized in other graphs.

    """

    key: FindingKey
    arrangement: tuple[str, ...]
    least: PosedModel
    judged: JudgedGraph
    runs: int
    failing: list[KernelJudgement] = field(default_factory=list)
    cells: dict[tuple[str, ...], None] = field(default_factory=dict)
    parts_of: dict[str, None] = field(default_factory=dict)
    pattern: LeastGraph = field(init=False)

    def __post_init__(self) -> None:
        if self.judged.judgement is None:
            raise ValueError("a graph that is right is no finding")
        own = FailingGraph(self.least, self.judged.judgement, wrong=self.judged.wrong)
        self.pattern = LeastGraph(self.least.graph, own.wrong_tensors)

    def has(self, model: PosedModel, judged: JudgedGraph) -> bool:
        """Return whether a graph fails as these, and hangs together as they do.

        Its operators are theirs, but for views, which are one as another. Of more than three the
        others may be any: what they have in common is how they hang together.
        """
        said = judged.judgement
        if said is None or _way(said, judged.invocation) != _way(
            self.judged.judgement, self.judged.invocation
        ):
            return False
        named = len(model.graph.nodes) <= _NAMED
        if named and names_of(model.graph) != names_of(self.least.graph):
            return False
        if wiring(model.graph) == wiring(self.least.graph):
            return True
        return named and arrangement(model.graph, judged.invocation) == self.arrangement

    @property
    def is_dear(self) -> bool:
        """Whether each trial of them costs a process."""
        return self.key.symptom in DEAR

    def is_of(self, failing: FailingGraph) -> bool:
        """Return whether a graph may fail by what these do."""
        dear = failing.said.symptom in DEAR
        return (dear, failing.invocation) == (self.is_dear, self.judged.invocation)

    def add(self, failing: FailingGraph, model: PosedModel) -> None:
        """Add a graph that fails so, and what it was cut to."""
        self.failing.append(failing.said)
        self.parts_of |= dict.fromkeys(filter(None, [failing.part_of]))
        nodes = graph_draft(model.graph).nodes
        self.cells |= {
            (node.operator, node.type): None for node in nodes if node.operator not in VIEWS
        }

    @property
    def told(self) -> tuple[str, ...]:
        """How the operators hang together, and of which others that is so."""
        own = {node.operator for node in self.least.graph.nodes}
        others = sorted({operator for operator, _ in self.cells} - own)
        types = sorted({type_ for _, type_ in self.cells} - {self.key.type})
        also = (f"{ALSO}of {', '.join(others)}",) if others else ()
        return (*self.arrangement, *also, *((f"{ALSO}in {', '.join(types)}",) if types else ()))


class GraphFindings:
    """The findings of a run's graphs.

    Attributes:
        done: failing graphs of which it is known what they fail by.
        total: how many there are.

    """

    def __init__(self, failing: Sequence[FailingGraph], arms: Sequence[KernelArm]) -> None:
        """Begin with nothing shrunk.

        Args:
            failing: graphs that fail.
            arms: the device first, then the host's kernel sets.

        """
        self.done = self.total = 0
        self._arms = arms
        self._waiting = FailingGraphs()
        self._kinds: list[_AlikeGraphs] = []
        self._apart = 0
        self.add(failing)

    @property
    def keys(self) -> list[tuple[FindingKey, tuple[str, ...]]]:
        """Of the findings so far in their order, what is wrong, and how it hangs together."""
        return [(kind.key, kind.arrangement) for kind in self._kinds]

    @property
    def counted(self) -> list[bool]:
        """Of the findings so far in their order, which count if they are not known."""
        return [kind.key.counted for kind in self._kinds]

    def add(self, failing: Sequence[FailingGraph]) -> None:
        """Add graphs that fail; findings so far explain some of them."""
        self.total += len(failing)
        self._waiting.add(failing)
        for kind in self._kinds:
            self._set_aside(kind)

    def shrink(self, counted: bool, show: Callable[[], None], over: Callable[[], bool]) -> None:
        """Shrink failing graphs and tell them apart, those that count or the others.

        Args:
            counted: whether those that count are shrunk, or the others.
            show: shows the progress.
            over: whether there is no time left.

        """
        # Without any time left some are told as they were drawn.
        while (not over() or not self._kinds) and (failing := self._waiting.take(counted=counted)):
            show()
            self._shrink_together(failing, over)
            self.done += len(failing)
        self._kinds.sort(key=lambda kind: (not kind.key.counted, kind.key, kind.arrangement))

    def _shrink_together(self, failing: Sequence[FailingGraph], over: Callable[[], bool]) -> None:
        traces = traced([graph.model for graph in failing], self._arms[0])
        begun = [
            (graph, GraphTrial(graph.model, trace))
            for graph, trace in zip(failing, traces, strict=True)
            if trace.expected(graph.model.graph) is not None
        ]
        least = shrunk(
            [(trial, _DEAR_RUNS.get(graph.said.symptom, _RUNS)) for graph, trial in begun],
            lambda places, trials: self._fail([begun[at][0] for at in places], trials),
            over,
        )
        judged = judge_graphs([trial.model for trial, _ in least], self._arms)
        for (graph, start), (trial, runs), said in zip(begun, least, judged, strict=True):
            if not self._joins(graph, trial.model, said):
                self._add_alone(graph, start, (trial, runs), over)

    def _add_alone(
        self,
        graph: FailingGraph,
        start: GraphTrial,
        least: tuple[GraphTrial, int],
        over: Callable[[], bool],
    ) -> None:
        """Add a graph to the findings by what of it fails in a file of its own.

        On an accelerator a part may fail beside others alone: then each part is tried by itself.
        What does not fail by itself as it was drawn is no finding.
        """
        trial, runs = least
        kind = self._explaining(graph)
        if kind is not None:
            kind.add(graph, kind.least)
        elif not self._adds(graph, trial.model, runs):
            (drawn,) = judge_graphs([graph.model], self._arms)
            if drawn.fails:
                trial, more = self._shrunk_apart(graph, start, over)
                if not self._adds(graph, trial.model, runs + more):
                    self._adds(graph, graph.model, runs + more)

    def _shrunk_apart(
        self, graph: FailingGraph, start: GraphTrial, over: Callable[[], bool]
    ) -> tuple[GraphTrial, int]:
        """Shrink a graph, each part in a file of its own; return how many were run, too."""
        if self._apart >= _MOST_APART or graph.said.symptom in DEAR:
            return start, 0
        self._apart += 1
        (found,) = shrunk(
            [(start, _RUNS_APART)],
            lambda _, trials: [self._fail_together([graph], [trial])[0] for trial in trials],
            over,
        )
        return found

    def stored(
        self, numbers: Sequence[int], directory: RunDirectory, accepted: Sequence[AcceptedFinding]
    ) -> list[ConformFinding]:
        """Store the least graphs of the findings, and return them.

        Args:
            numbers: numbers of the findings.
            directory: the run directory.
            accepted: findings that do not count.

        """
        found = []
        for number, kind in zip(numbers, self._kinds, strict=True):
            least, turns = kind.least, TURNS.get(kind.judged.invocation)
            pair = None if turns is None else taking_turns(least, turns)
            if turns is None or pair is None:
                everywhere = run_padded(self._arms, [least])[0]
            else:
                least, everywhere = pair, answers_in_turn(pair, self._arms, turns)
            answers = {**everywhere, **(kind.judged.answers or {})}
            answers["one by one"] = ModelAnswer(kind.judged.expected)
            name = store_finding(directory, number, least, answers, (), turns)
            reason = accepted_reason(kind.key, (), accepted, kind.arrangement)
            found.append(_finding(number, kind, name, reason))
        return found

    def _fail(self, belong: Sequence[FailingGraph], trials: Sequence[GraphTrial]) -> list[bool]:
        """Return which trials fail as the graphs to which they belong.

        Operators that do not hang together cannot be wrong together: where they are, something else
        in the file has written over them, and what fails is tried again by itself.
        """
        fails = self._fail_together(belong, trials)
        apart = [
            at
            for at, graph in enumerate(belong)
            if not graph.invocation and not hang_together(trials[at].model.graph)
        ]
        if not any(fails[at] for at in apart):
            return fails
        failing = sorted(
            {*np.flatnonzero(fails).tolist()} - {*apart}, key=lambda at: trials[at].size
        )
        fails = [False] * len(trials)
        tried = Counter[FailingGraph]()
        for at in failing:
            if tried[belong[at]] < _TRIED_AGAIN:
                tried[belong[at]] += 1
                (fails[at],) = self._fail_together([belong[at]], [trials[at]])
                tried[belong[at]] += _TRIED_AGAIN * fails[at]
        return fails

    def _fail_together(
        self, belong: Sequence[FailingGraph], trials: Sequence[GraphTrial]
    ) -> list[bool]:
        """Return which trials fail in one file as the graphs to which they belong.

        What a finding before explains is no part of the fault that is looked for.
        """
        fails = [False] * len(trials)
        for invocation in dict.fromkeys(graph.invocation for graph in belong):
            places = [at for at, graph in enumerate(belong) if graph.invocation == invocation]
            models = [trials[at].model for at in places]
            expected = [trials[at].trace.expected(trials[at].model.graph) for at in places]
            sound = [at for at, results in enumerate(expected) if results is not None]
            judged = judge_wholes(
                [models[at] for at in sound],
                [expected[at] or () for at in sound],
                self._arms,
                invocation,
            )
            for at, (said, answers) in zip(sound, judged, strict=True):
                if said is None or not _are_alike(said, belong[places[at]].said):
                    continue
                wrong = wrong_places(models[at], answers, expected[at] or ())
                trial = FailingGraph(models[at], said, invocation, wrong)
                fails[places[at]] = self._explaining(trial) is None
        return fails

    def _explaining(self, failing: FailingGraph) -> _AlikeGraphs | None:
        """Return the finding that, with those before it, explains what is wrong with a graph."""
        wrong = set(failing.wrong_tensors)
        for kind in self._kinds:
            if kind.is_of(failing):
                reached = kind.pattern.reached(failing.model.graph)
                if reached is not None and wrong <= reached:
                    return kind
                wrong -= reached or set()
        return None

    def _joins(self, failing: FailingGraph, model: PosedModel, judged: JudgedGraph) -> bool:
        """Add a graph to the finding of its kind, if there is one; return whether there is."""
        alike = (kind for kind in self._kinds if kind.has(model, judged))
        kind = next(alike, None) if judged.fails else None
        if kind is not None:
            kind.add(failing, model)
        return kind is not None

    def _adds(self, failing: FailingGraph, model: PosedModel, runs: int) -> bool:
        """Add a graph to the findings, if it fails in a file of its own; return whether it does."""
        (judged,) = judge_graphs([model], self._arms)
        if judged.judgement is None or not judged.fails:
            return False
        if self._joins(failing, model, judged):
            return True
        again = FailingGraph(model, judged.judgement, judged.invocation, judged.wrong)
        kind = self._explaining(again)
        if kind is not None:
            kind.add(failing, kind.least)
            return True
        key = _key(model, judged.judgement)
        mine = arrangement(model.graph, judged.invocation)
        kind = _AlikeGraphs(key, mine, model, judged, runs)
        kind.add(failing, model)
        self._kinds.append(kind)
        self._set_aside(kind)
        return True

    def _set_aside(self, kind: _AlikeGraphs) -> None:
        """Add the graphs to a finding that it explains, which then need not be shrunk."""
        explained = self._waiting.explained(
            kind.pattern, dear=kind.is_dear, invocation=kind.judged.invocation
        )
        for failing in explained:
            whole = len(failing.model.graph.nodes) == len(kind.least.graph.nodes)
            kind.add(failing, failing.model if whole else kind.least)
        self.done += len(explained)


def _key(model: PosedModel, said: KernelJudgement) -> FindingKey:
    nodes = graph_draft(model.graph).nodes
    name = joined_name([node.operator for node in nodes])
    key = finding_key(Observation(name, nodes[0].type, {}, said))
    if key is None:
        raise ValueError("a graph that is right is no finding")
    return key


def _way(said: KernelJudgement | None, invocation: Invocation) -> tuple[object, ...]:
    return () if said is None else (said.verdict, said.symptom, said.counted, invocation)


def _are_alike(one: KernelJudgement, other: KernelJudgement) -> bool:
    """Return whether two graphs fail in the same way."""
    return (one.verdict, one.symptom, one.counted) == (other.verdict, other.symptom, other.counted)


def _finding(number: int, kind: _AlikeGraphs, file: str, accepted: str | None) -> ConformFinding:
    said, model = kind.judged.judgement, kind.least
    if said is None:
        raise ValueError("a graph that is right is no finding")
    elements = sum(values.size for values in model.operands)
    return ConformFinding(
        number=number,
        operator=kind.key.operator,
        type=kind.key.type,
        condition=FaultCondition(),
        failing=len(kind.failing),
        judgement=max(kind.failing, key=lambda judgement: judgement.worst),
        smallest=SmallestModel(
            graph_draft(model.graph), said, elements, model.rows, kind.runs, True, file
        ),
        accepted=accepted,
        arrangement=kind.told,
        graphs=tuple(kind.parts_of),
    )
