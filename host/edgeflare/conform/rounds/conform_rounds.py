"""The rounds of a conformance run: models are drawn, run, judged, and their faults told apart."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import (
    Draft,
    DraftNode,
    DraftOutcome,
    DraftSource,
    draft_to_json,
)
from edgeflare.conform.execution.kernel_arm import KernelArm
from edgeflare.conform.findings.finding_evidence import finding_key
from edgeflare.conform.findings.grouping import FindingGroup, grouped, grouped_as
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.rounds.conformance import Conformance
from edgeflare.conform.rounds.draft_verdict import JudgedDraft, judge_drafts
from edgeflare.conform.rounds.refinement import Refinement, steers, with_failing
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.errors import UserError
from edgeflare.record.journal import reporting_damage

ROUND_MODELS: Final = 256
"""Models of a round. A worker process has to start for each round and arm, which takes as long as
running some hundred models; and what a round loses if the host is killed are so many models."""

_MOST_LEFT_OUT: Final = 512
"""Models of a round that are known to crash or hang, and are drawn and not run. A source of which
all are has nothing else, and drawing takes time, too."""

_GROWN: Final = 1.25
"""How many times as many models of a cell there have to be for its findings to be told apart anew
without need."""


class RoundObserver(Protocol):
    """Receives the progress of the rounds."""

    def conformed(self, models: int, cells: tuple[int, int], failing: int) -> None:
        """See how many models were run, how many cells are covered of how many, how many fail."""


@dataclass(slots=True)
class ConformRounds:
    """Runs the rounds of a conformance run, those of its journal again without running models.

    Attributes:
        arms: the device first, then the host's kernel sets.
        coverage: the coverage that sources count by.
        journal: keeps each round.
        given: the operators of the model that the user named, by their place in it.
        rng_seed: the run seed.
        observer: is shown the progress.
        state: what the rounds have shown so far.
        clock: counts the seconds of the run.

    """

    arms: Sequence[KernelArm]
    coverage: Coverage
    journal: ConformJournal
    given: Mapping[int, OperatorGraph]
    rng_seed: int
    observer: RoundObserver
    state: Conformance = field(default_factory=Conformance)
    clock: ConformClock = field(init=False)
    _refinement: Refinement = field(default_factory=Refinement)
    _groups: dict[Cell, list[FindingGroup]] = field(default_factory=dict)
    _grouped: dict[Cell, int] = field(default_factory=dict)
    _looked: dict[Cell, int] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        self.clock = ConformClock(self.journal)

    @property
    def kept(self) -> bool:
        """Whether the journal has the next round."""
        return self.journal.has(self._number)

    @property
    def groups(self) -> list[FindingGroup]:
        """The findings so far, in the order of their keys.

        While models are drawn, those that steer it: that count, or whose models cost much.
        """
        return [group for cell in sorted(self._groups) for group in self._groups[cell]]

    def regroup(self) -> None:
        """Tell all findings apart anew, with all models that were run."""
        for cell, observations in self.state.observations.items():
            self._groups[cell] = grouped(observations, known_operators())

    def draw(self, source: DraftSource, count: int) -> int:
        """Run a round of models that a source draws; return how many were run.

        Others are drawn in the place of those that are known to crash or hang, and are not run.

        Raises:
            UserError: the journal's round is of other models.

        """
        drafts = self._asked(source, count)
        if drafts:
            source.tell(drafts, [judged_draft.outcome for judged_draft in self._round(drafts)])
            self._show()
        return len(drafts)

    def refine(self) -> int:
        """Run a round of models that tell the conditions of findings apart, if there is need.

        Raises:
            UserError: the journal's round is of other models.

        """
        seed = [self.rng_seed, self._number]
        drafts = self._refinement.drafts(self.groups, self.state, self.given, seed)
        if drafts:
            for judged_draft in self._round(drafts):
                self.coverage.add(judged_draft.draft, judged_draft.outcome)
            self._show()
        return len(drafts)

    def _asked(self, source: DraftSource, count: int) -> list[Draft]:
        """Return the next models of a source that are worth being run."""
        drafts: list[Draft] = []
        left_out = 0
        while len(drafts) < count and left_out < _MOST_LEFT_OUT:
            asked = source.ask(count - len(drafts))
            if not asked:
                break
            for draft in asked:
                dear = {at for at, node in enumerate(draft.nodes) if self._is_dear(node)}
                if not dear:
                    drafts.append(draft)
                    continue
                left_out += 1
                source.tell([draft], [DraftOutcome.not_run(draft)])
                self.coverage.avoid(draft, dear)
        return drafts

    def _is_dear(self, node: DraftNode) -> bool:
        groups = self._groups.get(node.cell, ())
        return any(self._refinement.is_dear(node, group) for group in groups)

    def _round(self, drafts: Sequence[Draft]) -> list[JudgedDraft]:
        """Run drafts, or take what the journal has of them, and add what was said."""
        digest = drafts_digest(drafts)
        if (kept := self.journal.kept(self._number)) is not None:
            if kept[0] != digest:
                raise UserError(
                    f"{self.journal.path}: this installation draws other models than those of round"
                    f" {self._number}: go on with the version that began the run, or begin another"
                )
            with reporting_damage(self.journal.path):
                judged = judged_from_json(drafts, kept[1])
        else:
            judged = judge_drafts(drafts, self.arms, self.given)
            self.journal.keep(self._number, digest, judged_to_json(judged), self.clock.spent)
            self.clock.note()
        self._number += 1
        for judged_draft in judged:
            self.state.add(judged_draft)
        self._regroup(judged)
        if kept is not None:
            self.clock.leave_out()
        return judged

    def _regroup(self, judged: Sequence[JudgedDraft]) -> None:
        """Tell findings that steer apart anew where models failed that none has, or many came."""
        for cell in sorted(
            {node.cell for judged_draft in judged for node in judged_draft.draft.nodes}
        ):
            observations = self.state.observations[cell]
            groups = self._groups.get(cell, [])
            looked = self._looked.get(cell, 0)
            added = range(looked, len(observations))
            failing = [at for at in added if steers(observations[at].judgement)]
            self._looked[cell] = len(observations)
            extended = with_failing(groups, observations, failing)
            grown = bool(groups) and len(observations) > _GROWN * self._grouped[cell]
            if extended is not None and not grown:
                self._groups[cell] = extended
                continue
            steering = (
                finding_key(observation)
                for observation in observations
                if steers(observation.judgement)
            )
            keys = {key for key in steering if key is not None}
            self._groups[cell] = grouped_as(keys, observations, known_operators())
            self._grouped[cell] = len(observations)

    def _show(self) -> None:
        figure = self.coverage.cell_figure()
        failing = sum(group.key.counted for group in self.groups)
        self.observer.conformed(
            self.state.models, (figure.covered, figure.known - figure.refused), failing
        )


def drafts_digest(drafts: Sequence[Draft]) -> str:
    """Return a digest of drafts, by which a resumed run knows that it draws the same again."""
    text = json.dumps([draft_to_json(draft) for draft in drafts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def judged_to_json(judged: Sequence[JudgedDraft]) -> list[Any]:
    """Return what was said of drafts, without the drafts, which are drawn again."""
    return [
        {"nodes": [_judgement(node) for node in draft.nodes], "whole": _judgement(draft.whole)}
        for draft in judged
    ]


def judged_from_json(
    drafts: Sequence[Draft], values: Sequence[Mapping[str, Any]]
) -> list[JudgedDraft]:
    """Return the drafts with what `judged_to_json` wrote of them."""
    return [
        JudgedDraft(draft, tuple(map(_read, value["nodes"])), _read(value["whole"]))
        for draft, value in zip(drafts, values, strict=True)
    ]


def _judgement(one: KernelJudgement | None) -> list[Any] | None:
    if one is None:
        return None
    # Most models are right, and there are many.
    if one == KernelJudgement("right", telling=one.telling):
        return [one.telling]
    said = [one.verdict, one.symptom, one.counted, one.worst, one.unit, list(one.wrong), one.detail]
    return [*said, one.telling]


def _read(values: Sequence[Any] | None) -> KernelJudgement | None:
    if values is None:
        return None
    if len(values) == 1:
        return KernelJudgement("right", telling=values[0])
    verdict, symptom, counted, worst, unit, wrong, detail, telling = values
    return KernelJudgement(verdict, symptom, counted, worst, unit, tuple(wrong), detail, telling)


@dataclass(slots=True)
class ConformClock:
    """Counts the seconds of a run, from where its journal says that earlier processes were.

    Attributes:
        journal: the run's journal.

    """

    journal: ConformJournal
    _began: float = 0.0
    _counted_from: float = 0.0
    _before: float = 0.0
    _spent_before: float = 0.0

    def __post_init__(self) -> None:
        self._began = self._counted_from = time.monotonic()
        self._before = self.journal.seconds()
        self._spent_before = self.journal.seconds_of_rounds()

    @property
    def total(self) -> float:
        """What the run has taken, all its processes added up."""
        return self._before + time.monotonic() - self._began

    @property
    def spent(self) -> float:
        """What counts to the limit: not what is done again since a process was cut off.

        That is to take rounds from the journal, and to shrink what an earlier process had shrunk.
        """
        return self._spent_before + time.monotonic() - self._counted_from

    def leave_out(self) -> None:
        """Count nothing to the limit of what this process has done so far."""
        self._counted_from = time.monotonic()

    def note(self) -> None:
        """Keep what the run has taken, in case that the process is killed."""
        self.journal.note_seconds(self.total)
