"""Findings of graphs whose operators are right alone and wrong together: the least of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

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
from edgeflare.conform.graphs.graph_arrangement import ALSO, VIEWS, arrangement
from edgeflare.conform.graphs.graph_shrinking import GraphTrial, shrunk
from edgeflare.conform.graphs.graph_trace import traced
from edgeflare.conform.graphs.graph_turns import taking_turns
from edgeflare.conform.graphs.graph_verdict import (
    TURNS,
    Invocation,
    JudgedGraph,
    judge_graphs,
    judge_wholes,
)
from edgeflare.conform.graphs.turns_verdict import answers_in_turn
from edgeflare.conform.operator_graph import ABSENT, OperatorGraph
from edgeflare.conform.record.conform_finding import ConformFinding, SmallestModel
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.run.run_directory import RunDirectory

_RUNS: Final = 300
"""Graphs that the device runs to shrink one."""

_DEAR_RUNS: Final = {"crash": 60, "hang": 12, "corrupts": 12}
"""Graphs that the device runs to shrink one where each costs a process, or the time limit of an
input, by the symptom."""

_ALIKE: Final = 2
"""Failing graphs of the same operators that are shrunk. They mostly fail by the same."""

_NAMED: Final = 3
"""Operators of a finding up to which it is of just these: a pair is wrong by what both do."""

_MOST: Final = 48
"""Failing graphs that are shrunk, those of the fewest operators."""

_MOST_DEAR: Final = 8
"""Failing graphs that are shrunk where each trial may cost a process."""


@dataclass(frozen=True, slots=True, eq=False)
class FailingGraph:
    """A graph that fails.

    Attributes:
        model: the graph, and what it is given.
        said: what was said of it.
        invocation: how it was invoked.

    """

    model: PosedModel
    said: KernelJudgement
    invocation: Invocation = ""


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

    """

    key: FindingKey
    arrangement: tuple[str, ...]
    least: PosedModel
    judged: JudgedGraph
    runs: int
    failing: list[KernelJudgement] = field(default_factory=list)
    cells: dict[tuple[str, ...], None] = field(default_factory=dict)

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
        if _wiring(model.graph) != _wiring(self.least.graph):
            return False
        return len(model.graph.nodes) > _NAMED or _names(model.graph) == _names(self.least.graph)

    def add(self, failing: FailingGraph, model: PosedModel) -> None:
        """Add a graph that fails so."""
        self.failing.append(failing.said)
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
        done: findings that were shrunk.
        total: how many there are at most.

    """

    def __init__(self, failing: Sequence[FailingGraph], arms: Sequence[KernelArm]) -> None:
        """Choose the failing graphs that are shrunk.

        Args:
            failing: graphs that fail.
            arms: the device first, then the host's kernel sets.

        """
        self.done = 0
        self._arms = arms
        self._pending = _chosen(failing)
        self._kinds: list[_AlikeGraphs] = []
        self.total = len(self._pending)

    @property
    def keys(self) -> list[tuple[FindingKey, tuple[str, ...]]]:
        """Of the findings so far in their order, what is wrong, and how it hangs together."""
        return [(kind.key, kind.arrangement) for kind in self._kinds]

    @property
    def counted(self) -> list[bool]:
        """Of the findings so far in their order, which count if they are not known."""
        return [kind.key.counted for kind in self._kinds]

    def shrink(self, counted: bool, show: Callable[[], None], over: Callable[[], bool]) -> None:
        """Shrink failing graphs and tell them apart, those that count or the others.

        Args:
            counted: whether those that count are shrunk, or the others.
            show: shows the progress.
            over: whether there is no time left.

        """
        pending = [graph for graph in self._pending if graph.said.counted == counted]
        traces = traced([graph.model for graph in pending], self._arms[0])
        begun = [
            (graph, GraphTrial(graph.model, trace))
            for graph, trace in zip(pending, traces, strict=True)
            if trace.expected(graph.model.graph) is not None
        ]
        show()
        least = shrunk(
            [(trial, _DEAR_RUNS.get(graph.said.symptom, _RUNS)) for graph, trial in begun],
            lambda places, trials: self._fail([begun[at][0] for at in places], trials),
            over,
        )
        judged = judge_graphs([trial.model for trial, _ in least], self._arms)
        # On an accelerator a part may fail beside hundreds of others, and not again: then the graph
        # as it was drawn is the finding.
        whole = [at for at, said in enumerate(judged) if not said.fails]
        again = judge_graphs([begun[at][0].model for at in whole], self._arms)
        drawn = dict(zip(whole, again, strict=True))
        for at, ((graph, _), (trial, runs), said) in enumerate(
            zip(begun, least, judged, strict=True)
        ):
            model = graph.model if at in drawn else trial.model
            self._add(graph, model, drawn.get(at, said), runs)
        self._kinds.sort(key=lambda kind: (not kind.key.counted, kind.key, kind.arrangement))
        self.done = self.total if not counted else self.done + len(begun)

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
        """Return which trials fail as the graphs to which they belong."""
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
            for at, (said, _) in zip(sound, judged, strict=True):
                place = places[at]
                fails[place] = said is not None and _are_alike(said, belong[place].said)
        return fails

    def _add(
        self, failing: FailingGraph, model: PosedModel, judged: JudgedGraph, runs: int
    ) -> None:
        """Add a graph to the findings, where it is the first of a kind if it fails by itself, too.

        Beside others in a file its tensors lie elsewhere.
        """
        if not judged.fails:
            return
        alike = (kind for kind in self._kinds if kind.has(model, judged))
        if (kind := next(alike, None)) is None:
            (judged,) = judge_graphs([model], self._arms)
            if judged.judgement is None or not judged.fails:
                return
            key = _key(model, judged.judgement)
            mine = arrangement(model.graph, judged.invocation)
            kind = _AlikeGraphs(key, mine, model, judged, runs)
            self._kinds.append(kind)
        kind.add(failing, model)


def _chosen(failing: Sequence[FailingGraph]) -> list[FailingGraph]:
    """Return the graphs that are shrunk, in an order that does not depend on when they failed."""
    alike: Counter[tuple[object, ...]] = Counter()
    dear = 0
    chosen: list[FailingGraph] = []
    for graph in sorted(failing, key=lambda graph: len(graph.model.graph.nodes)):
        said = graph.said
        operators = tuple(node.operator for node in graph.model.graph.nodes)
        key = (operators, said.verdict, said.symptom)
        alike[key] += 1
        dear += said.symptom in _DEAR_RUNS
        too_dear = said.symptom in _DEAR_RUNS and dear > _MOST_DEAR
        if alike[key] <= _ALIKE and not too_dear and len(chosen) < _MOST:
            chosen.append(graph)
    return chosen


def _key(model: PosedModel, said: KernelJudgement) -> FindingKey:
    nodes = graph_draft(model.graph).nodes
    name = joined_name([node.operator for node in nodes])
    key = finding_key(Observation(name, nodes[0].type, {}, said))
    if key is None:
        raise ValueError("a graph that is right is no finding")
    return key


def _way(said: KernelJudgement | None, invocation: Invocation) -> tuple[object, ...]:
    return () if said is None else (said.verdict, said.symptom, said.counted, invocation)


def _names(graph: OperatorGraph) -> list[str]:
    return ["view" if node.operator in VIEWS else node.operator for node in graph.nodes]


def _wiring(graph: OperatorGraph) -> object:
    """Return how operators hang together: which are views, what they read, and what is answered.

    What an operator alone is given is as good as a constant.
    """
    names: dict[int, int] = {}
    times = Counter(at for node in graph.nodes for at in node.inputs)
    own = {at for at in graph.inputs if times[at] == 1 and at not in graph.outputs}

    def numbers(several: Sequence[int]) -> list[int]:
        return [
            names.setdefault(at, len(names))
            for at in several
            if at != ABSENT and graph.values[at].values is None and at not in own
        ]

    nodes = [
        (node.operator in VIEWS, numbers(node.inputs), numbers(node.outputs))
        for node in graph.nodes
    ]
    return nodes, numbers(graph.outputs)


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
    )
