"""A conformance run from its begin, or from where it was cut off, to its document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Final, Protocol

import msgspec
import numpy as np

from edgeflare.conform.drafts.baselines.memo_drawing import (
    DRAWN_SEEDS,
    MemoDrawing,
    drawn_seeds,
    model_seeds,
    reduced,
)
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import DraftSource, NodeGraphs
from edgeflare.conform.drafts.draft_mutation import MutationContext
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.drafts.model_reading import ModelReading
from edgeflare.conform.drafts.near_drawing import NearDrawing
from edgeflare.conform.execution.kernel_arm import KernelArm
from edgeflare.conform.findings.accepted_findings import AcceptedFinding
from edgeflare.conform.findings.known_issues import KnownFaults, KnownIssue
from edgeflare.conform.graphs.graph_drawing import GraphDrawing
from edgeflare.conform.graphs.graph_rounds import GRAPHS_OF_ROUND, GraphRounds
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.record.conform_document import ConformDocument, ModelCoverage, StoppedBy
from edgeflare.conform.record.conform_header import ConformHeader, ConformRequest
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.rounds.conform_rounds import (
    ROUND_MODELS,
    ConformClock,
    ConformRounds,
    RoundObserver,
)
from edgeflare.conform.rounds.conformance import Conformance, conform_outcome
from edgeflare.conform.rounds.model_figures import with_tried
from edgeflare.conform.rounds.smallest_models import ShrinkObserver, SmallestModels
from edgeflare.core.interrupt import InterruptedBy
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.run.run_directory import CONFORM_DOCUMENT, RunDirectory

_SHRINKING_SHARE: Final = 0.25
"""Share of the time limit that is kept for shrinking what was found, where the limit is short."""

_SHRINKING_SECONDS: Final = 300.0
"""Most seconds kept for shrinking: a longer search does not find more that needs shrinking."""

_LEAST_SHARE: Final = 0.05
"""Share of the time limit from which on more graphs are drawn, once all that failed is shrunk."""

_GRAPHS_SHARE: Final = 1 / 3
"""Share of the time for drawing that graphs have after single operators."""

_SHORT_ROUND: Final = 16
"""Models of a round where few are drawn in a short time: a round that has begun is ended."""

_LAST_ROUNDS: Final = 10
"""Refining rounds after the last model was drawn, at most."""


class ConformObserver(RoundObserver, ShrinkObserver, Protocol):
    """Receives the progress of a conformance run."""

    def graphs_tried(self, graphs: int, cells: tuple[int, int], failing: int) -> None:
        """See how many graphs were run, how many cells answer of how many, how many graphs fail."""


@dataclass(frozen=True, slots=True)
class ConformanceRun:
    """A run that has begun.

    Attributes:
        header: what run it is.
        directory: where it lies.
        journal: the run's journal, locked.
        model: what is known of the model that the user named before the run; None for none.
        reading: operators of that model; None for none.
        accepted: findings that do not count.
        issues: what the world knows of faults.
        seeds: what that model is given on inputs of the user's, (inputs, *shape); None where they
            are drawn.

    """

    header: ConformHeader
    directory: RunDirectory
    journal: ConformJournal
    model: ModelCoverage | None
    reading: ModelReading | None
    accepted: Sequence[AcceptedFinding] = ()
    issues: Sequence[KnownIssue] = ()
    seeds: Values | None = None


def run_conformance(
    run: ConformanceRun,
    arms: Sequence[KernelArm],
    observer: ConformObserver,
    interrupted: Callable[[], InterruptedBy | None],
) -> ConformDocument:
    """Run models until their number or the time is reached; write and return the document.

    Args:
        run: a run that has begun.
        arms: what runs models: the device first, then the host's kernel sets.
        observer: is shown the progress.
        interrupted: returns what asked to stop, as documents say it, or None.

    Raises:
        InfrastructureError: the device does not come back; the journal has all rounds before.
        UserError: the journal is damaged, or of an installation that draws other models.

    """
    request = run.header.request
    coverage = Coverage(request.cells)
    given = {} if run.reading is None else run.reading.given
    rounds = ConformRounds(arms, coverage, run.journal, given, request.rng_seed, observer)
    ending = _Ending(rounds, interrupted)
    operators, memo, graphs, whole = np.random.default_rng(request.rng_seed).spawn(4)
    stopped_by: StoppedBy = "nothing-left"
    if request.graphs != "only":
        sources = _draft_sources(request, run.reading, coverage, (operators, memo))
        stopped_by = _draw(rounds, sources, request, ending)
    in_graphs = () if request.graphs == "none" else request.cells
    drawn = GraphRounds(arms, GraphDrawing(in_graphs, graphs), run.journal)
    if request.graphs != "none" and ending.cut_short is None:
        for part in () if run.reading is None else run.reading.graphs:
            if part.graph is not None:
                drawn.try_model(part.graph, run.seeds, whole, rounds.clock, part.name)
        stopped_by = _draw_graphs(
            *(drawn, rounds, request, ending, observer), _drawing_seconds(request)
        )
    smallest = SmallestModels(
        rounds,
        _NotedShrinking(observer, rounds.clock),
        lambda: ending.has_come(request.time_limit_seconds),
    )
    smallest.shrink(drawn.failing)
    while (
        request.graphs != "none"
        and stopped_by == "time-limit"
        and ending.leaves(request.time_limit_seconds)
    ):
        before = len(drawn.failing)
        until = _drawing_again(request, rounds.clock.spent)
        stopped_by = _draw_graphs(drawn, rounds, request, ending, observer, until)
        smallest.shrink(drawn.failing[before:])
    rounds.state.graphs = drawn.tried if request.graphs != "none" else None
    findings = smallest.findings(run.directory, _known(run))
    if run.reading is not None:
        findings = [
            replace(finding, graphs=(*finding.graphs, *run.reading.names_at(finding.places)))
            for finding in findings
        ]
    if ending.cut_short is not None:
        stopped_by = ending.cut_short
    rounds.clock.note()
    document = conform_outcome(
        *(run.header, rounds.state, coverage, findings, _tried(run, rounds.state)),
        stopped_by=stopped_by,
        seconds=rounds.clock.total,
        devices=run.journal.devices(),
    )
    write_atomically(
        run.directory.path / CONFORM_DOCUMENT, json_bytes(msgspec.to_builtins(document))
    )
    return document


def _known(run: ConformanceRun) -> KnownFaults:
    device, host = run.header.device, run.header.host
    return KnownFaults(
        run.accepted,
        run.issues,
        device.kernels,
        (device.runtime, device.runtime_version),
        (host.runtime, host.runtime_version),
    )


def _tried(run: ConformanceRun, state: Conformance) -> ModelCoverage | None:
    """Return what the document says of the model that the user named."""
    if run.model is None or run.reading is None:
        return None
    return with_tried(run.model, run.reading, run.header.request, state)


@dataclass(slots=True)
class _Ending:
    """When a run ends. It is asked only where something is left to do.

    Attributes:
        rounds: the run's rounds.
        interrupted: returns what asked to stop, as documents say it, or None.
        cut_short: what stopped the run with something left undone, or None; a Ctrl-C after all was
            done changes nothing.

    """

    rounds: ConformRounds
    interrupted: Callable[[], InterruptedBy | None]
    cut_short: InterruptedBy | None = None

    def has_come(self, seconds: float | None) -> bool:
        """Return whether to stop: because the user wants to, or so much time is spent."""
        self.cut_short = self.cut_short or self.interrupted()
        if self.cut_short is not None:
            return True
        return seconds is not None and self.rounds.clock.spent > seconds

    def leaves(self, seconds: float | None) -> bool:
        """Return whether enough of some time is left to draw and shrink once more."""
        if seconds is None or self.has_come(seconds):
            return False
        return seconds - self.rounds.clock.spent > _LEAST_SHARE * seconds


@dataclass(frozen=True, slots=True)
class _NotedShrinking:
    """An observer of shrinking that keeps how long the run has taken.

    Attributes:
        observer: is shown the progress.
        clock: the run's clock.

    """

    observer: ShrinkObserver
    clock: ConformClock

    def shrunk(self, done: int, total: int) -> None:
        """See that so many of the findings were shrunk."""
        self.clock.note()
        self.observer.shrunk(done, total)


def _draw_graphs(
    graphs: GraphRounds,
    rounds: ConformRounds,
    request: ConformRequest,
    ending: _Ending,
    observer: ConformObserver,
    until: float | None,
) -> StoppedBy:
    """Draw graphs until their number or their time is reached; return why it ended."""
    drawn, most = 0, request.models if request.graphs == "only" else None
    while most is None or drawn < most:
        if not graphs.kept and ending.has_come(until):
            return ending.cut_short or "time-limit"
        left = GRAPHS_OF_ROUND if most is None else min(GRAPHS_OF_ROUND, most - drawn)
        kept = graphs.kept
        count = graphs.draw(left, rounds.clock)
        if kept:
            rounds.clock.leave_out()
        if not count:
            return "nothing-left"
        drawn += count
        observer.graphs_tried(drawn, graphs.cells, len(graphs.failing))
    return "models"


def _draw(
    rounds: ConformRounds,
    sources: Sequence[DraftSource],
    request: ConformRequest,
    ending: _Ending,
) -> StoppedBy:
    """Draw and refine in turn; return why it ended."""

    def over() -> bool:
        return not rounds.kept and ending.has_come(_operators_seconds(request))

    drawn = empty = 0
    each = _round_models(request, len(sources))
    for source in cycle(sources):
        left = each if request.models is None else request.models - drawn
        if not left or empty == len(sources) or over():
            break
        run = rounds.draw(source, min(each, left))
        drawn += run
        empty = 0 if run else empty + 1
        if over():
            break
        rounds.refine()
    for _ in range(_LAST_ROUNDS):
        if over() or not rounds.refine():
            break
    if ending.cut_short is not None:
        return ending.cut_short
    if request.models is not None and drawn == request.models:
        return "models"
    return "nothing-left" if empty == len(sources) else "time-limit"


def _round_models(request: ConformRequest, sources: int) -> int:
    """Return how many models a round has, with a turn for each source, however few they are."""
    if request.models is None:
        return ROUND_MODELS
    most = ROUND_MODELS if request.time_limit_seconds is None else _SHORT_ROUND
    return min(most, -(-request.models // sources))


def _drawing_seconds(request: ConformRequest) -> float | None:
    """Return when drawing ends, so that there is time for shrinking; None for no bound."""
    if request.time_limit_seconds is None:
        return None
    return request.time_limit_seconds - min(
        _SHRINKING_SHARE * request.time_limit_seconds, _SHRINKING_SECONDS
    )


def _drawing_again(request: ConformRequest, spent: float) -> float | None:
    """Return when drawing ends once more, where shrinking took less than was kept for it."""
    if request.time_limit_seconds is None:
        return None
    return spent + (1 - _SHRINKING_SHARE) * (request.time_limit_seconds - spent)


def _operators_seconds(request: ConformRequest) -> float | None:
    """Return when drawing single operators ends, so that there is time for graphs."""
    seconds = _drawing_seconds(request)
    if seconds is None or request.graphs == "none":
        return seconds
    return (1 - _GRAPHS_SHARE) * seconds


def _draft_sources(
    request: ConformRequest,
    reading: ModelReading | None,
    coverage: Coverage,
    generators: tuple[np.random.Generator, np.random.Generator],
) -> list[DraftSource]:
    """Return what draws models, each in its turn, with a generator of its own.

    Args:
        request: what was asked.
        reading: the operators of the model that the user named; None for none.
        coverage: the coverage that all of them count by.
        generators: every draw, those of MEMO's loop by the second.

    """
    first, second = generators
    sources: list[DraftSource] = []
    if reading is not None:
        sources.append(NearDrawing(reading.distinct, coverage, first))
    if request.drawing == "memo":
        sources.append(_memo(coverage, reading, second))
    elif reading is None:
        sources.append(UniformDrawing(coverage, first))
    return sources


def _memo(
    coverage: Coverage, reading: ModelReading | None, rng: np.random.Generator
) -> MemoDrawing:
    """Return MEMO's loop over reduced models: parts of the user's, or models that are drawn."""
    graphs = NodeGraphs({} if reading is None else reading.given)
    context = MutationContext(coverage, graphs, rng)
    seeds = drawn_seeds(DRAWN_SEEDS, context) if reading is None else model_seeds(reading.draft)
    return MemoDrawing([reduced(seed, graphs) for seed in seeds], coverage, graphs, rng)
