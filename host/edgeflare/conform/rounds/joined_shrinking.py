"""Graphs that fail where their operators are joined, shrunk side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgeflare.conform.drafts.draft import drafted
from edgeflare.conform.execution.kernel_arm import KernelArm
from edgeflare.conform.findings.fewest_operators import joined_runs
from edgeflare.conform.findings.model_shrinking import Shrinking
from edgeflare.conform.findings.shrink_candidate import ShrinkCandidate, ShrinkContext
from edgeflare.conform.graphs.operator_graph import OperatorGraph
from edgeflare.conform.rounds.judged_wholes import judge_joined
from edgeflare.conform.rounds.posed_draft import PosedDraft
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement


@dataclass(frozen=True, slots=True, eq=False)
class FailingGraph:
    """A graph of several operators that answers otherwise than they do one after the other.

    Attributes:
        said: of all of it, as it was drawn.
        candidate: the smallest that fails alike so far.
        context: what makes smaller ones.
        runs: models that the device ran to find it.

    """

    said: KernelJudgement
    candidate: ShrinkCandidate
    context: ShrinkContext
    runs: int = 0


@dataclass(frozen=True, slots=True)
class JoinedTrials:
    """Tries graphs on the device, and on the twin what would count.

    Attributes:
        arms: the device first, then the twin.
        given: the operators of the model that the user named, by their place in it.

    """

    arms: Sequence[KernelArm]
    given: Mapping[int, OperatorGraph]

    def shrunk(
        self,
        several: Sequence[tuple[FailingGraph, Shrinking]],
        show: Callable[[], None],
        over: Callable[[], bool],
    ) -> list[FailingGraph]:
        """Return the smallest of each of some graphs.

        Args:
            several: the graphs, and what shrinks each.
            show: shows the progress.
            over: whether there is no time left.

        Raises:
            InfrastructureError: an arm is lost.

        """
        tried = [_TriedGraph(*both) for both in several]
        for one in tried:
            one.tell(None)
        while (open_ := [one for one in tried if one.asking is not None]) and not over():
            show()
            trials = [(one.graph.said, made) for one in open_ for made in one.trials]
            fails = iter(self.fail_alike(trials))
            for one in open_:
                one.tell([next(fails) for _ in one.trials])
        return [one.graph for one in tried]

    def fail_alike(self, trials: Sequence[tuple[KernelJudgement, ShrinkCandidate]]) -> list[bool]:
        """Return which models fail as was said of others; one operator alone is never joined.

        Raises:
            InfrastructureError: an arm is lost.

        """
        joined = [at for at, (_, made) in enumerate(trials) if len(made.draft.nodes) > 1]
        judged = judge_joined([self.posed(trials[at][1]) for at in joined], self.arms)
        fails = [False] * len(trials)
        for at, one in zip(joined, judged, strict=True):
            fails[at] = one is not None and are_alike(one[0], trials[at][0])
        return fails

    def posed(self, one: ShrinkCandidate) -> PosedDraft:
        """Return the models of a candidate."""
        return PosedDraft(
            one.draft, drafted(one.draft, self.given), one.draft.by_node(one.operands)
        )


def are_alike(one: KernelJudgement, other: KernelJudgement) -> bool:
    """Return whether two graphs fail in the same way."""
    return (one.verdict, one.symptom, one.counted) == (other.verdict, other.symptom, other.counted)


@dataclass(slots=True)
class _TriedGraph:
    """A graph that is being shrunk.

    Attributes:
        graph: the smallest so far.
        asking: what shrinks it; None once it is done.
        trials: that it asks for.

    """

    graph: FailingGraph
    asking: Shrinking | None
    trials: list[ShrinkCandidate] = field(default_factory=list)

    def tell(self, failing: list[bool] | None) -> None:
        """Go on with what became of the trials; None to begin."""
        if self.asking is None:
            return
        if failing is not None:
            runs = sum(joined_runs(one) for one in self.trials if len(one.draft.nodes) > 1)
            both = zip(self.trials, failing, strict=True)
            best = next((one for one, fails in both if fails), self.graph.candidate)
            self.graph = replace(self.graph, candidate=best, runs=self.graph.runs + runs)
        try:
            self.trials = next(self.asking) if failing is None else self.asking.send(failing)
        except StopIteration as end:
            self.graph = replace(self.graph, candidate=end.value)
            self.trials, self.asking = [], None
