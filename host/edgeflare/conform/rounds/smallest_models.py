"""The findings of a run, each with the smallest model that fails as its models do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from edgeflare.conform.drafts.draft import FRESH, Draft, NodeGraphs
from edgeflare.conform.execution.kernel_arm import ModelAnswer
from edgeflare.conform.findings.accepted_findings import accepted_reason
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.grouping import FindingGroup
from edgeflare.conform.findings.known_issues import KnownFaults
from edgeflare.conform.findings.model_shrinking import Shrinking, shrinking
from edgeflare.conform.findings.shrinking_moves import ShrinkCandidate, ShrinkContext
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_findings import GraphFindings
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_finding import ConformFinding, SmallestModel
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.rounds.draft_verdict import (
    JudgedOperator,
    judge_again,
    judge_alone,
    judge_lost,
    judge_packed,
    posed,
)
from edgeflare.conform.verdict.exact_rows import exact_rows
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.run.run_directory import RunDirectory

_RUNS: Final = 300
"""Models that the device runs to shrink one finding."""

_UNCOUNTED_RUNS: Final = 100
"""Models that the device runs to shrink a finding that does not count for the exit code."""

_DEAR_RUNS: Final = {"crash": 60, "hang": 12, "corrupts": 12, "neighbours": 100}
"""Models that the device runs to shrink failures that cost worker processes, or the time limit of
an input."""


_MORE: Final = 8
"""Failing models that are tried again where the smallest one does not fail again."""


class ShrinkObserver(Protocol):
    """Receives the progress of shrinking."""

    def shrunk(self, done: int, total: int) -> None:
        """See that so many of the findings were shrunk."""


@dataclass(slots=True)
class _Shrunk:
    """A finding that is being shrunk.

    Attributes:
        group: the finding's models.
        best: the smallest model so far.
        asking: what shrinks it; None once it is done.
        trials: models to run that `asking` waits for.
        runs: models that the device ran for it.

    """

    group: FindingGroup
    best: ShrinkCandidate
    asking: Shrinking | None
    trials: list[ShrinkCandidate]
    runs: int = 0

    def tell(self, failing: list[bool] | None) -> None:
        """Go on with what became of the trials; None to begin."""
        if self.asking is None:
            return
        if failing is not None:
            self.runs += len(failing)
            self.best = next(
                (candidate for candidate, fails in zip(self.trials, failing, strict=True) if fails),
                self.best,
            )
        try:
            self.trials = next(self.asking) if failing is None else self.asking.send(failing)
        except StopIteration as end:
            self.best, self.trials, self.asking = end.value, [], None


class SmallestModels:
    """The findings of a run, which are shrunk, and then told."""

    def __init__(
        self, rounds: ConformRounds, observer: ShrinkObserver, over: Callable[[], bool]
    ) -> None:
        """Tell the findings of single operators apart.

        Args:
            rounds: rounds that have ended.
            observer: is shown the progress.
            over: whether there is no time left.

        """
        rounds.regroup()
        groups = sorted(rounds.groups, key=lambda group: (not group.key.counted, group.key))
        self._rounds, self._observer, self._over = rounds, observer, over
        self._nodes = NodeGraphs(rounds.given)
        self._shrunk = [_begun(group, rounds, self._nodes) for group in groups]
        self._graphs = GraphFindings(_joined(rounds), rounds.arms)

    def shrink(self, failing: Sequence[FailingGraph]) -> None:
        """Shrink what is left to be shrunk, those that count first.

        Args:
            failing: graphs that fail, besides those before.

        """
        self._graphs.add(failing)
        for counted in (True, False):
            several = [each for each in self._shrunk if each.group.key.counted == counted]
            _shrink_all(several, self._rounds, self._show, self._over)
            self._graphs.shrink(counted, self._show, self._over)
        self._show()

    def findings(self, directory: RunDirectory, known: KnownFaults) -> list[ConformFinding]:
        """Store the smallest models of the findings; return the findings, those that count first.

        Args:
            directory: the run directory.
            known: what is known of faults, and which do not count.

        """
        judged = _judged_best(self._shrunk, self._rounds, self._nodes)
        counted = [progress.group.key.counted for progress in self._shrunk]
        numbers = _numbers([*counted, *self._graphs.counted])
        found = [
            _finding(number, progress, said, self._rounds, directory, known)
            for number, progress, said in zip(numbers, self._shrunk, judged, strict=False)
        ]
        stored = self._graphs.stored(numbers[len(counted) :], directory, known.accepted)
        for finding in stored:
            wrong, told = finding.judgement.wrong, finding.arrangement
            found.append(replace(finding, issue=known.issue(finding.key, wrong, (), told)))
        total = len(self._shrunk) + self._graphs.total
        if total:
            self._observer.shrunk(total, total)
        return sorted(found, key=lambda finding: finding.number)

    def _show(self) -> None:
        done = sum(progress.asking is None for progress in self._shrunk)
        if total := len(self._shrunk) + self._graphs.total:
            self._observer.shrunk(done + self._graphs.done, total)


def _joined(rounds: ConformRounds) -> list[FailingGraph]:
    """Return MEMO's graphs that answer otherwise than their operators one by one."""
    return [
        FailingGraph(posed(judged_draft.draft, rounds.given).whole, judged_draft.whole)
        for judged_draft in rounds.state.joined
        if judged_draft.whole is not None
    ]


def _numbers(counted: Sequence[bool]) -> list[int]:
    """Return the numbers of findings, those that count first."""
    first = iter(range(1, len(counted) + 1))
    rest = iter(range(1 + sum(counted), len(counted) + 1))
    return [next(first) if is_counted else next(rest) for is_counted in counted]


def _begun(group: FindingGroup, rounds: ConformRounds, graphs: NodeGraphs) -> _Shrunk:
    """Begin with the smallest of the failing models."""
    (start,) = _drawn(group, rounds, graphs, 1)
    (node,) = start.draft.nodes
    usual = _RUNS if group.key.counted else _UNCOUNTED_RUNS
    runs = _DEAR_RUNS.get(group.key.symptom, usual)
    context = ShrinkContext(rounds.given, np.random.default_rng(node.constants_seed), graphs)
    begun = _Shrunk(group, start, shrinking(start, context, runs), [])
    begun.tell(None)
    return begun


def _drawn(
    group: FindingGroup, rounds: ConformRounds, graphs: NodeGraphs, most: int
) -> list[ShrinkCandidate]:
    """Return the smallest failing models as they were drawn, each operator alone."""
    nodes = rounds.state.nodes[group.key.operator, group.key.type]
    sizes = {at: sum(value.size for value in graphs.operands(nodes[at])) for at in group.failing}
    found = []
    for at in sorted(group.failing, key=lambda at: (sizes[at], at))[:most]:
        fresh = (FRESH,) * len(graphs.operands(nodes[at]))
        alone = Draft((replace(nodes[at], sources=fresh),))
        model = posed(alone, rounds.given).whole
        found.append(ShrinkCandidate(alone, model.operands, model.rows))
    return found


def _shrink_all(
    shrunk: Sequence[_Shrunk],
    rounds: ConformRounds,
    show: Callable[[], None],
    over: Callable[[], bool],
) -> None:
    """Shrink findings side by side, until all are done or there is no time left."""
    while (
        open_ := [progress for progress in shrunk if progress.asking is not None]
    ) and not over():
        show()
        trials = [(progress, made) for progress in open_ for made in progress.trials]
        verdicts = iter(_judged_trials(trials, rounds))
        for progress in open_:
            key = progress.group.key
            progress.tell([_fails_alike(next(verdicts), key) for _ in progress.trials])


def _judged_trials(
    trials: Sequence[tuple[_Shrunk, ShrinkCandidate]], rounds: ConformRounds
) -> list[KernelJudgement]:
    """Return what is said of models, each tried for a finding."""
    nodes = [made.draft.nodes[0] for _, made in trials]
    models = [made.posed(rounds.given) for _, made in trials]
    packed = judge_packed(nodes, models, rounds.arms)
    depending = [
        at
        for at, (progress, _) in enumerate(trials)
        if progress.group.key.symptom == "neighbours" and packed[at][0].verdict == "device"
    ]
    for at in depending:
        trials[at][0].runs += 1
    alone = judge_alone(nodes, models, packed, rounds.arms, depending)
    return [judgement for judgement, _ in judge_lost(nodes, models, alone, rounds.arms)]


def _judged_best(
    shrunk: Sequence[_Shrunk], rounds: ConformRounds, graphs: NodeGraphs
) -> list[JudgedOperator]:
    """Return what is said of the smallest models when they are run once more.

    Where one does not fail again, as kernels may that read memory which nothing wrote, the
    smallest that does of some failing models as they were drawn takes its place.
    """
    judged = _judged_again([progress.best for progress in shrunk], rounds)
    lost = [
        at
        for at, progress in enumerate(shrunk)
        if not _fails_alike(judged[at][0], progress.group.key)
    ]
    others = [(at, made) for at in lost for made in _drawn(shrunk[at].group, rounds, graphs, _MORE)]
    for (at, made), said in reversed(
        list(zip(others, _judged_again([made for _, made in others], rounds), strict=True))
    ):
        shrunk[at].runs += 1
        if _fails_alike(said[0], shrunk[at].group.key):
            shrunk[at].best, judged[at] = made, said
    return judged


def _judged_again(models: Sequence[ShrinkCandidate], rounds: ConformRounds) -> list[JudgedOperator]:
    """Return what is said of models beside each other and alone."""
    nodes = [candidate.draft.nodes[0] for candidate in models]
    return judge_again(nodes, [candidate.posed(rounds.given) for candidate in models], rounds.arms)


def _fails_alike(judgement: KernelJudgement, key: FindingKey) -> bool:
    said = (judgement.verdict, judgement.symptom, judgement.counted)
    if said != (key.verdict, key.symptom, key.counted):
        return False
    return not key.wrong or judgement.wrong == key.wrong


def _finding(
    number: int,
    one: _Shrunk,
    said: tuple[KernelJudgement, Mapping[str, ModelAnswer]],
    rounds: ConformRounds,
    directory: RunDirectory,
    known: KnownFaults,
) -> ConformFinding:
    key, cell = one.group.key, (one.group.key.operator, one.group.key.type)
    observations = [rounds.state.observations[cell][at] for at in one.group.failing]
    judgements = [observation.judgement for observation in observations]
    worst = max(judgements, key=lambda judgement: (judgement.counted, judgement.worst))
    best, repeats = one.best, _fails_alike(said[0], key)
    node, model = best.draft.nodes[0], best.posed(rounds.given)
    exact = exact_rows(known_operators()[node.operator], model.graph, model.operands, model.rows)
    name = store_finding(directory, number, model, said[1], exact)
    smallest = SmallestModel(best.draft, said[0], best.elements, best.rows, one.runs, repeats, name)
    settings = [observation.settings for observation in observations]
    given = {rounds.state.nodes[cell][at].given for at in one.group.failing}
    places = tuple(sorted(place for place in given if place is not None))
    reason = accepted_reason(key, settings, known.accepted)
    issue = known.issue(key, worst.wrong, settings)
    return ConformFinding(
        number, *cell, one.group.condition, len(judgements), worst, smallest, reason, places, issue
    )
