"""Models run in packs, and those found that keep a whole pack from answering.

Which of models that die together, and live apart, is to blame. A kernel that writes outside of its
tensors may do so without harm to itself, and kill whatever runs after it in the same process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import prod

from edgeflare.conform.execution.failing_models import named_model, refusals, suspects
from edgeflare.conform.execution.failure_history import FailureHistory
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.model_pack import (
    ONE_INVOCATION,
    ModelPack,
    PackInvocation,
    PackLimits,
    model_bytes,
    next_group,
)
from edgeflare.conform.execution.pack_runner import Outcome, PackRunner
from edgeflare.conform.operator_graph import GraphNode, OperatorGraph

_MULTIPLICATIONS_PER_SECOND = 10e6
"""Speed of plain kernels on an emulated core. Models that are drawn have some 100,000
multiplications; operators of a user's model, as they stand, may have a thousand times as many."""

_BYTES_PER_SECOND = 256 * 1024
"""A hundred times what tensors of small models take under QEMU."""


MOST_TRIALS = 80
"""Processes that one search may start: a pair among 400 takes about 25."""

_Dies = Callable[[Sequence[int]], bool]
"""Whether models, by their places, die when they run in this order in a fresh process."""

_PACK_SECONDS = 1.0
_MODEL_SECONDS = 0.002
"""Time that a pack may take for one row before the model that hangs is searched in it: a hundred
times what small models take under QEMU. Alone, a model has all the time that its place allows."""

_MOST_BLAMED = 4
"""Models of one pack that are blamed for the death of others, one after the other."""

_MOST_INNOCENT = 200
"""Models that a suspect is tried with."""


class CulpritSearch:
    """Runs some models, and answers for each: with its outputs, or why it gives none alone."""

    def __init__(
        self,
        runner: PackRunner,
        history: FailureHistory,
        models: Sequence[PosedModel],
        limits: PackLimits,
        patience_seconds: float,
        invocation: PackInvocation = ONE_INVOCATION,
    ) -> None:
        """Begin with nothing answered.

        Args:
            runner: runs packs.
            history: what became of earlier models; that of these is added.
            models: all with the same number of rows.
            limits: limits of a pack.
            patience_seconds: time that a model alone may take for one row, besides its
                arithmetic.
            invocation: how models are invoked.

        """
        self._runner = runner
        self._history = history
        self._count = len(models)
        rows = models[0].rows if models else 0
        # Behind those to answer for: others to try a suspect with.
        self._models = [*models, *history.witnesses(rows)]
        self._limits = limits
        self._patience_seconds = patience_seconds
        self._invocation = invocation
        self._answers: dict[int, ModelAnswer] = {}
        self._puzzles: list[Sequence[int]] = []
        self._suspected: dict[int, float] = {}

    def answers(self) -> list[ModelAnswer]:
        """Run all models; answers in their order."""
        left = list(range(self._count))
        while left := [at for at in left if not self._known_to_be_refused(at)]:
            group = next_group(self._models, left, self._odds, self._limits)
            others = set(left).difference(group)
            outcome = self._run(group)
            if not isinstance(outcome, RunFailure):
                self._note(group, outcome)
            elif len(group) == 1:
                self._note(group, (ModelAnswer(failure=outcome),))
            elif self._settled(group, outcome):
                others.update(at for at in group if at not in self._answers)
            else:
                others.update(self._search(group, outcome))
            left = sorted(others)
        # At the end, when it is known which models are innocent.
        for puzzle in self._puzzles:
            self._settle_together(puzzle)
        self._try_suspects()
        return [self._answers[at] for at in range(self._count)]

    def _odds(self, at: int) -> float:
        return max(self._history.odds(self._models[at].graph), self._suspected.get(at, 0.0))

    def _settled(self, group: Sequence[int], failure: RunFailure) -> set[int]:
        """Answer for the models that a refusal names, and raise the odds of those that it may mean.

        By Bayes' rule, given that at least one of those with an operator is refused. Together they
        have odds of one and more then, so they do not go into one file again.

        Returns:
            All these models; none for a failure that names nothing.

        """
        models = self._models_of(group)
        named = refusals(models, failure)
        for place, refusal in named.items():
            self._note([group[place]], (ModelAnswer(failure=refusal),))
        meant = [places for places in suspects(models, failure) if named.keys().isdisjoint(places)]
        for places in meant:
            odds = {group[place]: self._odds(group[place]) for place in places}
            some = 1 - prod(1 - chance for chance in odds.values())
            for at, chance in odds.items():
                self._suspected[at] = max(self._odds(at), chance / some)
        return {group[place] for place in (*named, *chain.from_iterable(meant))}

    def _search(self, group: Sequence[int], failure: RunFailure) -> list[int]:
        """Find a model that keeps a group from answering.

        Where the first of two parts lives it is the second that fails, which needs no process to
        be seen. Where the first fails, the second waits: it is run with whatever else is left.

        Returns:
            The models of the group that were not answered for on the way.

        """
        failed = left = group
        hint: RunFailure | None = failure
        waiting: list[int] = []
        refused = False
        while left:
            first, second = self._parts(left, hint)
            outcome = self._run(first)
            if not isinstance(outcome, RunFailure):
                self._note(first, outcome)
                left, hint = second, None
                continue
            if len(first) > 1 and (settled := self._settled(first, outcome)):
                # What else is wrong is not known before these are out of the way.
                refused, hint = True, None
                waiting.extend(at for at in settled if at not in self._answers)
                left = [at for at in left if at not in settled]
                continue
            waiting.extend(second)
            if len(first) == 1:
                self._note(first, (ModelAnswer(failure=outcome),))
                return waiting
            failed, left, hint = first, first, outcome
        if not refused:
            self._puzzles.append(failed)
        return waiting

    def _parts(
        self, group: Sequence[int], failure: RunFailure | None
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Return a group in two: the model that the failure names and the rest, or halves.

        Halves are of equal odds, so that either is as likely to have failed.
        """
        at = None if failure is None else named_model(self._models_of(group), failure)
        if at is not None:
            return (group[at],), [*group[:at], *group[at + 1 :]]
        odds = {at: self._odds(at) for at in group}
        likeliest = sorted(group, key=lambda at: -odds[at])
        sums = list(accumulate(odds[at] for at in likeliest))
        middle = max(1, min(1 + bisect_left(sums, sums[-1] / 2), len(group) - 1))
        return sorted(likeliest[:middle]), sorted(likeliest[middle:])

    def _known_to_be_refused(self, at: int) -> bool:
        refusal = self._history.refusal(self._models[at].graph)
        if refusal is None:
            return False
        self._answers[at] = ModelAnswer(failure=refusal)
        return True

    def _settle_together(self, group: Sequence[int]) -> None:
        """Find out why models fail together that live apart."""
        left = list(group)
        for _ in range(_MOST_BLAMED):
            outcome = self._run(left, patient=True)
            if not isinstance(outcome, RunFailure):
                self._note(left, outcome)
                return
            if outcome.kind == "refused":  # a file may be too much where its models are not
                return
            if len(left) == 1:  # it dies at times, also where no other is
                self._note(left, (ModelAnswer(failure=outcome),))
                return
            blame = blamed(left, self._innocent(left), self._fail)
            if blame is None:
                return
            self._blame(blame, outcome)
            left.remove(blame.place)

    def _try_suspects(self) -> None:
        """Run models whose like made others die before innocent ones, and see whether these die."""
        if self._limits.models == 1:
            return
        lived = [at for at in range(self._count) if self._answers[at].failure is None]
        for at in lived:
            if self._history.corrupts(self._models[at].graph):
                outcome = self._run([at, *self._innocent([])])
                if isinstance(outcome, RunFailure):
                    self._blame(Blame(at, (), corrupts=True, certain=True), outcome)

    def _blame(self, blame: Blame, failure: RunFailure) -> None:
        if blame.corrupts:
            doubt = "" if blame.certain else "; this or the other is to blame"
            detail = f"models that run after it in the same process die ({failure.detail}{doubt})"
        else:
            detail = f"dies beside other models, and not alone ({failure.detail})"
        self._answers[blame.place] = ModelAnswer(
            failure=RunFailure(failure.kind, detail),
            neighbours=not blame.corrupts,
            corrupts=blame.corrupts,
        )
        if blame.corrupts and blame.certain:
            self._history.note_corruption(self._models[blame.place].graph)

    def _innocent(self, group: Sequence[int]) -> list[int]:
        """Return models to try the members of a group with: the others of it, and more."""
        witnesses = range(self._count, len(self._models))
        lived = [at for at, answer in self._answers.items() if answer.failure is None]
        others = [at for at in (*witnesses, *lived) if at not in group]
        harmless = [at for at in others if not self._history.corrupts(self._models[at].graph)]
        return sorted([*group, *harmless][:_MOST_INNOCENT])

    def _fail(self, places: Sequence[int]) -> bool:
        return isinstance(self._run(places), RunFailure)

    def _run(self, places: Sequence[int], *, patient: bool = False) -> Outcome:
        models = self._models_of(places)
        hasty = _PACK_SECONDS + len(models) * _MODEL_SECONDS
        seconds = self._patience_seconds
        if len(models) > 1 and not patient:
            seconds = hasty
        elif len(models) == 1 and self._history.hung(models[0].graph):
            seconds = min(seconds, 2 * hasty)  # the last word on it, but its like had all the time
        pack = ModelPack(models, self._invocation)
        return self._runner.run(pack, seconds + row_seconds(models))

    def _models_of(self, places: Sequence[int]) -> list[PosedModel]:
        return [self._models[at] for at in places]

    def _note(self, places: Sequence[int], answers: Sequence[ModelAnswer]) -> None:
        for at, answer in zip(places, answers, strict=True):
            self._answers[at] = answer
            self._history.note(self._models[at], answer.failure)


@dataclass(frozen=True, slots=True)
class Blame:
    """The model that is to blame.

    Attributes:
        place: the model's place.
        others: places of those that die with it, as few as can be.
        corrupts: whether it makes models die that run after it, rather than dying itself among
            others.
        certain: whether it does so with other models too.

    """

    place: int
    others: tuple[int, ...]
    corrupts: bool
    certain: bool


def blamed(group: Sequence[int], innocent: Sequence[int], dies: _Dies) -> Blame | None:
    """Return which of models is to blame for the death of all.

    First the smallest set that dies is found. Of its members the one is to blame that makes others
    die, too.

    Args:
        group: dies as a whole, and each of them lives alone.
        innocent: models to try suspects with, those of the group among them.
        dies: asks whether some of them die.

    Returns:
        None where the smallest set does not die again, or cannot be found by `MOST_TRIALS`.

    """
    trials = _Trials(dies)
    try:
        least = sorted(_least(tuple(group), (), trials))
        if not trials.dies(least):
            return None
        return _blame(least, [at for at in innocent if at not in least], trials)
    except _ExhaustedError:
        return None


def _blame(least: Sequence[int], innocent: Sequence[int], trials: _Trials) -> Blame:
    for suspect in least:
        others = tuple(at for at in least if at != suspect)
        # At the end nothing runs after it: if it dies there, it is by what it reads.
        if trials.dies([*innocent, suspect]):
            return Blame(suspect, others, corrupts=False, certain=True)
        if trials.dies([suspect, *innocent]):
            return Blame(suspect, others, corrupts=True, certain=True)
    return Blame(least[0], tuple(least[1:]), corrupts=True, certain=False)


def _least(group: tuple[int, ...], fixed: tuple[int, ...], trials: _Trials) -> tuple[int, ...]:
    """Return the fewest of a group that die together with those that are fixed."""
    if len(group) <= 1:
        return group
    middle = len(group) // 2
    first, second = group[:middle], group[middle:]
    for half in (first, second):
        if trials.dies(sorted((*half, *fixed))):
            return _least(half, fixed, trials)
    kept = _least(first, (*second, *fixed), trials)
    return (*kept, *_least(second, (*kept, *fixed), trials))


class _ExhaustedError(Exception):
    """As many processes were started as may be."""


class _Trials:
    """Trials that are counted; none is made twice, for the models are the same."""

    def __init__(self, dies: _Dies) -> None:
        self._dies = dies
        self._known: dict[tuple[int, ...], bool] = {}

    def dies(self, models: Sequence[int]) -> bool:
        """Whether models die."""
        asked = tuple(models)
        if asked not in self._known:
            if len(self._known) >= MOST_TRIALS:
                raise _ExhaustedError
            self._known[asked] = bool(asked) and self._dies(asked)
        return self._known[asked]


def row_seconds(models: Sequence[PosedModel]) -> float:
    """Return how many seconds one row of some models may take, besides what the smallest take."""
    transfer = sum(map(model_bytes, models)) / _BYTES_PER_SECOND
    return transfer + sum(map(work_seconds, models))


def work_seconds(model: PosedModel) -> float:
    """Return how many seconds one row of a model may take, for its multiplications alone."""
    graph = model.graph
    turns = 0.0 if model.other is None else work_seconds(model.other)
    own = sum(_multiplications(graph, node) for node in graph.nodes) / _MULTIPLICATIONS_PER_SECOND
    return own + turns


def _multiplications(graph: OperatorGraph, node: GraphNode) -> float:
    """Return about how many there are, rather too many.

    Each place of the result is given a product with all weights; without weights, each value one
    with as many values as the longest dimension has.
    """
    operands = [operand for operand in graph.operands(node) if operand is not None]
    results = sum(result.size for result in graph.results(node))
    weights = max((operand.size for operand in operands if operand.values is not None), default=0)
    channels = max((result.shape[-1] for result in graph.results(node) if result.shape), default=1)
    longest = max((size for operand in operands for size in operand.shape), default=1)
    return float(max(results * weights / max(channels, 1), results * longest))
