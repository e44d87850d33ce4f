"""Findings of operators that fail joined alone: told apart by the fewest that do, and shrunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import NodeGraphs, drafted
from edgeflare.conform.execution.kernel_arm import KernelArm
from edgeflare.conform.execution.packing_arm import run_padded
from edgeflare.conform.findings.accepted_findings import (
    AcceptedFinding,
    accepted_reason,
    joined_name,
)
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey, Observation, finding_key
from edgeflare.conform.findings.model_shrinking import (
    Shrinking,
    fewest_operators,
    joined_runs,
    parts_of_cells,
    shrinking,
)
from edgeflare.conform.findings.shrinking_moves import ShrinkCandidate, ShrinkContext
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.record.conform_finding import ConformFinding, SmallestModel
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.rounds.draft_models import PosedDraft, posed
from edgeflare.conform.rounds.draft_verdict import JudgedDraft, judge_joined
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.run.run_directory import RunDirectory

_RUNS: Final = 300
"""Models that the device runs to shrink one finding: of each graph its operators, and all of it."""

_UNCOUNTED_RUNS: Final = 100
"""Models that the device runs to shrink a finding that does not count for the exit code."""

_DEAR_RUNS: Final = {"crash": 120, "hang": 36}
"""Models that the device runs to shrink failures that cost worker processes, or the time limit of
an input. At most a third of these models are whole graphs, which alone fail."""

_WAVE: Final = 16
"""Graphs whose fewest operators are looked for side by side, before others are compared with
them."""

_COMPARED: Final = 256
"""Graphs that are compared with findings side by side."""


class JoinedFindings:
    """The findings of a run's graphs that answer otherwise than their operators one by one.

    Attributes:
        done: findings that were shrunk.

    """

    def __init__(self, rounds: ConformRounds) -> None:
        """Begin.

        Args:
            rounds: rounds that have ended.

        """
        self.done = 0
        self._trials = _JoinedTrials(rounds.arms, rounds.given)
        graphs = NodeGraphs(rounds.given)
        self._pending = sorted(
            (self._begun(judged_draft, graphs) for judged_draft in rounds.state.joined), key=_size
        )
        self._groups: list[_JoinedGroup] = []

    @property
    def total(self) -> int:
        """How many findings there are at most."""
        return len(self._groups) + len(self._pending)

    @property
    def counted(self) -> list[bool]:
        """Of the findings so far in their order, which count if they are not accepted."""
        return [group.smallest.said.counted for group in self._groups]

    def shrink(self, counted: bool, show: Callable[[], None], over: Callable[[], bool]) -> None:
        """Tell findings apart and shrink them, those that count or the others.

        Args:
            counted: whether those that count are shrunk, or the others.
            show: shows the progress.
            over: whether there is no time left.

        """
        pending = [graph for graph in self._pending if graph.said.counted == counted]
        self._pending = [graph for graph in self._pending if graph.said.counted != counted]
        groups: dict[FindingKey, _JoinedGroup] = {}
        while pending and not over():
            show()
            wave, pending = _first_of_each(pending)
            fewest = [
                (graph, fewest_operators(graph.candidate, graph.context, _limit(graph.said) // 2))
                for graph in wave
            ]
            found = [_added(groups, graph) for graph in self._trials.shrunk(fewest, show, over)]
            pending = self._left(
                pending, list({group.key: group for group in found}.values()), over
            )
        for graph in pending:
            _added(groups, graph)
        several = [groups[key] for key in sorted(groups)]
        shrunk = [(group.smallest, _shrinking(group.smallest)) for group in several]
        smallest = self._trials.shrunk(shrunk, show, over)
        for group, failing_graph in zip(several, smallest, strict=True):
            group.smallest = failing_graph
        self._groups += several
        self.done = len(self._groups)

    def stored(
        self, numbers: Sequence[int], directory: RunDirectory, accepted: Sequence[AcceptedFinding]
    ) -> list[ConformFinding]:
        """Store the smallest models of the findings, and return them.

        Args:
            numbers: numbers of the findings.
            directory: the run directory.
            accepted: findings that do not count.

        """
        several = [self._trials.posed(group.smallest.candidate) for group in self._groups]
        judged = judge_joined(several, self._trials.arms)
        answers = run_padded(self._trials.arms, [posed_draft.whole for posed_draft in several])
        found = []
        for number, group, model, verdict, all_ in zip(
            numbers, self._groups, several, judged, answers, strict=True
        ):
            repeats = verdict is not None and _are_alike(verdict[0], group.smallest.said)
            said, asked = verdict or (group.smallest.said, {})
            name = store_finding(directory, number, model.whole, {**all_, **asked}, ())
            reason = accepted_reason(group.key, (), accepted)
            found.append(_finding(number, group, said, repeats, name, reason))
        return found

    def _begun(self, one: JudgedDraft, graphs: NodeGraphs) -> _FailingGraph:
        if one.whole is None:
            raise ValueError("a draft of one operator has no answer as a whole")
        model = posed(one.draft, self._trials.given).whole
        rng = np.random.default_rng([node.constants for node in one.draft.nodes])
        context = ShrinkContext(self._trials.given, rng, graphs)
        start = ShrinkCandidate(one.draft, model.operands, model.rows)
        return _FailingGraph(one.whole, start, context)

    def _left(
        self,
        pending: Sequence[_FailingGraph],
        groups: Sequence[_JoinedGroup],
        over: Callable[[], bool],
    ) -> list[_FailingGraph]:
        """Add graphs to the groups whose operators fail in them, too; return the others.

        A graph may have the operators of one fault, and fail by another. So these are tried
        without the rest, but where they are all, or where each would be waited for.
        """
        left = dict(enumerate(pending))
        trials: list[tuple[int, _JoinedGroup, _FailingGraph]] = []
        for at, failing_graph in enumerate(pending):
            for group in groups:
                if not _are_alike(failing_graph.said, group.smallest.said) or not _has(
                    failing_graph, group.cells
                ):
                    continue
                if failing_graph.said.verdict == "hang" or group.cells == _cells(failing_graph):
                    if left.pop(at, None) is not None:
                        group.judgements.append(failing_graph.said)
                    break
                for part in parts_of_cells(
                    failing_graph.candidate, group.cells, failing_graph.context
                ):
                    smaller = _FailingGraph(
                        failing_graph.said, part, failing_graph.context, joined_runs(part)
                    )
                    trials.append((at, group, smaller))
        while trials and not over():
            now, trials = trials[:_COMPARED], trials[_COMPARED:]
            fails = self._trials.fail_alike([(graph.said, graph.candidate) for _, _, graph in now])
            for (at, group, failing_graph), fail in zip(now, fails, strict=True):
                if fail and left.pop(at, None) is not None:
                    group.add(failing_graph)
        return list(left.values())


@dataclass(slots=True)
class _JoinedGroup:
    """Graphs that fail alike by the same operators.

    Attributes:
        key: the operators' name, and how they fail.
        cells: the operators and their types.
        smallest: the smallest of the graphs.
        judgements: what was said of each graph as it was drawn.

    """

    key: FindingKey
    cells: tuple[Cell, ...]
    smallest: _FailingGraph
    judgements: list[KernelJudgement] = field(default_factory=list)

    def add(self, graph: _FailingGraph) -> None:
        """Add a graph, the candidate of which has no other operators."""
        self.judgements.append(graph.said)
        self.smallest = min(self.smallest, graph, key=_size)


@dataclass(frozen=True, slots=True, eq=False)
class _FailingGraph:
    """A graph of several operators that answers otherwise than they do one after the other.

    Attributes:
        said: what was said of all of it, as it was drawn.
        candidate: the smallest that fails alike so far.
        context: what makes smaller ones.
        runs: models that the device ran to find it.

    """

    said: KernelJudgement
    candidate: ShrinkCandidate
    context: ShrinkContext
    runs: int = 0


@dataclass(frozen=True, slots=True)
class _JoinedTrials:
    """Tries graphs on the device, and on the twin what would count.

    Attributes:
        arms: the device first, then the twin.
        given: the operators of the model that the user named, by their place in it.

    """

    arms: Sequence[KernelArm]
    given: Mapping[int, OperatorGraph]

    def shrunk(
        self,
        several: Sequence[tuple[_FailingGraph, Shrinking]],
        show: Callable[[], None],
        over: Callable[[], bool],
    ) -> list[_FailingGraph]:
        """Return the smallest of each of some graphs.

        Args:
            several: the graphs, and what shrinks each.
            show: shows the progress.
            over: whether there is no time left.

        """
        tried = [_TriedGraph(*both) for both in several]
        for trial in tried:
            trial.tell(None)
        while (open_ := [trial for trial in tried if trial.asking is not None]) and not over():
            show()
            trials = [(trial.graph.said, made) for trial in open_ for made in trial.trials]
            fails = iter(self.fail_alike(trials))
            for trial in open_:
                trial.tell([next(fails) for _ in trial.trials])
        return [trial.graph for trial in tried]

    def fail_alike(self, trials: Sequence[tuple[KernelJudgement, ShrinkCandidate]]) -> list[bool]:
        """Return which models fail as was said of others; one operator alone is never joined."""
        joined = [at for at, (_, made) in enumerate(trials) if len(made.draft.nodes) > 1]
        judged = judge_joined([self.posed(trials[at][1]) for at in joined], self.arms)
        fails = [False] * len(trials)
        for at, verdict in zip(joined, judged, strict=True):
            fails[at] = verdict is not None and _are_alike(verdict[0], trials[at][0])
        return fails

    def posed(self, one: ShrinkCandidate) -> PosedDraft:
        """Return the models of a candidate."""
        return PosedDraft(
            one.draft, drafted(one.draft, self.given), one.draft.by_node(one.operands)
        )


@dataclass(slots=True)
class _TriedGraph:
    """A graph that is being shrunk.

    Attributes:
        graph: the smallest so far.
        asking: what shrinks it; None once it is done.
        trials: models to run that `asking` waits for.

    """

    graph: _FailingGraph
    asking: Shrinking | None
    trials: list[ShrinkCandidate] = field(default_factory=list)

    def tell(self, failing: list[bool] | None) -> None:
        """Go on with what became of the trials; None to begin."""
        if self.asking is None:
            return
        if failing is not None:
            runs = sum(
                joined_runs(candidate)
                for candidate in self.trials
                if len(candidate.draft.nodes) > 1
            )
            both = zip(self.trials, failing, strict=True)
            best = next((candidate for candidate, fails in both if fails), self.graph.candidate)
            self.graph = replace(self.graph, candidate=best, runs=self.graph.runs + runs)
        try:
            self.trials = next(self.asking) if failing is None else self.asking.send(failing)
        except StopIteration as end:
            self.graph = replace(self.graph, candidate=end.value)
            self.trials, self.asking = [], None


def _size(graph: _FailingGraph) -> tuple[int, int]:
    return len(graph.candidate.draft.nodes), graph.candidate.elements


def _cells(graph: _FailingGraph) -> tuple[Cell, ...]:
    return tuple(node.cell for node in graph.candidate.draft.nodes)


def _has(graph: _FailingGraph, cells: Sequence[Cell]) -> bool:
    """Return whether a graph has some operators in their order."""
    return tuple(cells) in combinations(_cells(graph), len(cells))


def _first_of_each(
    pending: Sequence[_FailingGraph],
) -> tuple[list[_FailingGraph], list[_FailingGraph]]:
    """Return the first graphs of some operators each, of the fewest, and the others."""
    first: dict[object, _FailingGraph] = {}
    left = []
    for graph in pending:
        key = (_cells(graph), graph.said.verdict, graph.said.symptom)
        fewest = len(graph.candidate.draft.nodes) == len(pending[0].candidate.draft.nodes)
        if fewest and key not in first and len(first) < _WAVE:
            first[key] = graph
        else:
            left.append(graph)
    return list(first.values()), left


def _added(groups: dict[FindingKey, _JoinedGroup], graph: _FailingGraph) -> _JoinedGroup:
    """Add a graph to the group of its operators, which may be a new one; return that."""
    cells = _cells(graph)
    name, type_ = joined_name([operator for operator, _ in cells]), cells[0][1]
    key = finding_key(Observation(name, type_, {}, graph.said))
    if key is None:
        raise ValueError("a graph that is right is no finding")
    group = groups.setdefault(key, _JoinedGroup(key, cells, graph))
    group.add(graph)
    return group


def _limit(said: KernelJudgement) -> int:
    """Return how many models the device may run to shrink what fails so."""
    return _DEAR_RUNS.get(said.symptom, _RUNS if said.counted else _UNCOUNTED_RUNS)


def _shrinking(graph: _FailingGraph) -> Shrinking:
    """Return what shrinks a graph of the fewest operators, with what is left of its models."""
    left = max(0, _limit(graph.said) - graph.runs)
    return shrinking(graph.candidate, graph.context, left // joined_runs(graph.candidate))


def _finding(
    number: int,
    group: _JoinedGroup,
    said: KernelJudgement,
    repeats: bool,
    file: str,
    accepted: str | None,
) -> ConformFinding:
    best = group.smallest.candidate
    return ConformFinding(
        number=number,
        operator=group.key.operator,
        type=group.key.type,
        condition=FaultCondition(),
        failing=len(group.judgements),
        judgement=max(group.judgements, key=lambda judgement: judgement.worst),
        smallest=SmallestModel(
            best.draft, said, best.elements, best.rows, group.smallest.runs, repeats, file
        ),
        accepted=accepted,
    )


def _are_alike(one: KernelJudgement, other: KernelJudgement) -> bool:
    """Return whether two graphs fail in the same way."""
    return (one.verdict, one.symptom, one.counted) == (other.verdict, other.symptom, other.counted)
