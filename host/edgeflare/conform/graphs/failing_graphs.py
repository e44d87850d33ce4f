"""Failing graphs in the order in which they are shrunk: those first that no finding explains.

Hundreds fail by one cause, and a cause that shows in one graph alone lies among them. So each that
is shrunk is as unlike those before as can be, and what a finding explains is set aside.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.graph_verdict import Invocation
from edgeflare.conform.graphs.least_graph import ANY, LeastGraph, names_of
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

DEAR: Final = frozenset({"crash", "hang", "corrupts"})
"""Symptoms of graphs of which each trial costs a process, or the time limit of an input."""

_ALIKE: Final = 2
"""Graphs that are shrunk in which the same operators are used alike. They mostly fail by these."""

_MOST: Final = 256
"""Graphs that are shrunk in all. A graph takes a tenth of a second of the GPU, and more."""

_MOST_DEAR: Final = 8
"""Likewise, of those of which each trial is dear."""

_TOGETHER: Final = 24
"""Graphs that are shrunk side by side: together they take hardly longer than a few, but what one
of them shows is known to the others only behind it."""

_TOGETHER_DEAR: Final = 2
"""Likewise, of those of which each trial is dear."""

_ALIKE_FINDINGS: Final = 3
"""Findings that are alike but for one operator, after which a graph that differs from them by that
operator, too, is shrunk behind others."""

_ORDINARY_EACH: Final = _TOGETHER // _TOGETHER_DEAR
"""Other graphs that are shrunk for each of which each trial is dear."""

_Use = tuple[object, ...]
"""How one operator is used in a graph, by what reads what it makes, or by whose result it reads."""


@dataclass(frozen=True, slots=True, eq=False)
class FailingGraph:
    """A graph that fails.

    Attributes:
        model: the graph, and what it is given.
        said: what was said of it.
        invocation: how it was invoked.
        wrong: places of its outputs that are wrong; empty where that is not known, or it gives no
            answer.
        part_of: the graph of the user's model that it is; empty of others.

    """

    model: PosedModel
    said: KernelJudgement
    invocation: Invocation = ""
    wrong: tuple[int, ...] = ()
    part_of: str = ""

    @property
    def wrong_tensors(self) -> tuple[int, ...]:
        """The outputs that are wrong; empty where it gives no answer."""
        outputs = self.model.graph.outputs
        if self.said.symptom in DEAR:
            return ()
        return tuple(outputs[at] for at in self.wrong) or outputs


@dataclass(slots=True, eq=False)
class _Waiting:
    """A graph that is not shrunk yet.

    Attributes:
        failing: the graph.
        number: how many came before it.
        unexplained: wrong outputs of the graph that no finding explains; None without an answer.
        unlike: likewise, that no findings explain which are alike but for one operator.
        uses: how operators are used where it may be wrong, of each two of which one reads the
            other's result.

    """

    failing: FailingGraph
    number: int
    unexplained: set[int] | None
    unlike: set[int] | None
    uses: list[tuple[_Use, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.uses = list(_uses(self.failing.model.graph, self.failing.wrong_tensors))

    @property
    def is_dear(self) -> bool:
        """Whether each trial of it costs a process."""
        return self.failing.said.symptom in DEAR


class FailingGraphs:
    """The failing graphs of a run that are left to be shrunk.

    Attributes:
        chosen: how many were taken to be shrunk.

    """

    def __init__(self) -> None:
        """Begin without any."""
        self.chosen = 0
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._dear = 0
        self._used: Counter[_Use] = Counter()
        self._tried: Counter[tuple[_Use, ...]] = Counter()
        self._forms: dict[str, list[LeastGraph]] = defaultdict(list)

    def add(self, failing: Iterable[FailingGraph]) -> None:
        """Add graphs that fail."""
        for graph in failing:
            wrong = None if graph.said.symptom in DEAR else set(graph.wrong_tensors)
            waiting = _Waiting(graph, self._number, wrong, None if wrong is None else set(wrong))
            self._waiting.append(waiting)
            self._number += 1

    def take(self, *, counted: bool) -> list[FailingGraph]:
        """Return graphs to be shrunk next, beside each other; empty where none are left.

        Some of which each trial is dear come behind the first others: a process that dies is the
        worst of findings, and all of them would leave no time for others.

        Args:
            counted: whether those that count, or the others.

        """
        waiting = [graph for graph in self._waiting if graph.failing.said.counted == counted]
        dear_first = self._dear * _ORDINARY_EACH < self.chosen - self._dear
        for dear in (dear_first, not dear_first):
            among = [graph for graph in waiting if graph.is_dear == dear]
            if taken := self._taken(among, dear=dear):
                return taken
        return []

    def _taken(self, among: list[_Waiting], *, dear: bool) -> list[FailingGraph]:
        taken: list[_Waiting] = []
        most = min(_MOST_DEAR - self._dear, _TOGETHER_DEAR) if dear else _TOGETHER
        while among and len(taken) < most and self.chosen < _MOST:
            least = min(among, key=self._lateness)
            among.remove(least)
            if all(self._tried[both] >= _ALIKE for both in least.uses):
                continue
            taken.append(least)
            self._tried.update(set(least.uses))
            self._used.update({use for both in least.uses for use in both})
            self.chosen += 1
            self._dear += dear
        gone = set(map(id, taken))
        self._waiting = [graph for graph in self._waiting if id(graph) not in gone]
        return [graph.failing for graph in taken]

    def explained(
        self, least: LeastGraph, *, dear: bool, invocation: Invocation
    ) -> list[FailingGraph]:
        """Take away the graphs of which a new finding and those before explain all that is wrong.

        Args:
            least: the finding's graph.
            dear: whether each trial of it is dear.
            invocation: how it is invoked.

        """
        patterns = list(self._general(least)) if len(least.graph.nodes) > 1 else []
        left, gone = list[_Waiting](), list[FailingGraph]()
        for waiting in self._waiting:
            failing = waiting.failing
            if (waiting.is_dear, failing.invocation) == (dear, invocation):
                graph = failing.model.graph
                if _explain(waiting.unexplained, least.reached(graph)):
                    gone.append(failing)
                    continue
                for pattern, place in patterns:
                    if _explain(waiting.unlike, pattern.reached(graph, place)):
                        waiting.unlike = set()
            left.append(waiting)
        self._waiting = left
        return gone

    def _general(self, least: LeastGraph) -> Iterator[tuple[LeastGraph, int]]:
        """Yield a least graph with each operator in whose place findings had several others."""
        for place in range(len(least.graph.nodes)):
            alike = self._forms[least.form(place)]
            if not any(each is least for each in alike):
                alike.append(least)
            if len(alike) >= _ALIKE_FINDINGS:
                yield least, place

    def _lateness(self, waiting: _Waiting) -> tuple[object, ...]:
        explained = waiting.unlike is not None and not waiting.unlike
        nodes = len(waiting.failing.model.graph.nodes)
        return explained, self._likeness(waiting), nodes, waiting.number

    def _likeness(self, waiting: _Waiting) -> int:
        """Return how many graphs were shrunk in which an operator is used as here.

        Of the pairs that may be wrong the one counts that was tried least, of the two operators of
        a pair the one that was tried most.
        """
        return min(max(self._used[use] for use in both) for both in waiting.uses)


def _explain(wrong: set[int] | None, reached: set[int] | None) -> bool:
    """Take away what is reached of what is wrong; return whether nothing is left of it.

    A graph without an answer has nothing that is wrong, and is explained by what it contains.
    """
    if reached is None:
        return False
    if wrong is None:
        return True
    wrong -= reached
    return not wrong


def _uses(graph: OperatorGraph, wrong: Sequence[int]) -> Iterator[tuple[_Use, ...]]:
    """Yield how operators are used by which a graph may be wrong.

    Args:
        graph: the graph.
        wrong: its outputs that are wrong; empty for a graph without an answer.

    """
    names = names_of(graph)
    before = _before(graph, wrong or graph.outputs)
    right = set(graph.outputs) - set(wrong) if wrong else set()
    read = Counter(at for node in graph.nodes for at in set(node.inputs))
    found = False
    for maker, node in enumerate(graph.nodes):
        for reader in range(maker + 1, len(graph.nodes)):
            taken = graph.nodes[reader]
            for at in sorted(set(node.outputs) & set(taken.inputs)):
                behind = set(taken.outputs)
                if at not in wrong and (not behind & before or behind <= right):
                    continue
                how = (
                    at in graph.outputs,
                    read[at] > 1,
                    taken.inputs.count(at) > 1 or len(set(node.outputs) & set(taken.inputs)) > 1,
                    at in wrong,
                )
                found = True
                yield (names[maker], ANY, how), (ANY, names[reader], how)
    if not found:
        given = bool(set(graph.inputs) & set(graph.outputs))
        unread = any(
            at not in graph.outputs and not read[at] for node in graph.nodes for at in node.outputs
        )
        twice = [len(set(node.inputs)) < len(node.inputs) for node in graph.nodes]
        yield ((*names, given, unread, *twice), *([(ANY, "given")] if given else []))


def _before(graph: OperatorGraph, tensors: Iterable[int]) -> set[int]:
    """Return tensors, and all from which they follow."""
    before = set(tensors)
    for node in reversed(graph.nodes):
        if before & set(node.outputs):
            before |= set(node.inputs)
    return before
