"""How far a command is and how long it will take: live on a terminal, in plain lines elsewhere."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from rich.console import Console

from edgeflare.campaign.observer import Observer, Progress, RefinementProgress
from edgeflare.pages.facts import count_of
from edgeflare.untrusted_text import printable

if TYPE_CHECKING:  # what some commands or terminals need, and others need not import
    from rich.progress import TaskID

    from edgeflare.bench.grid import BenchRun, Watch
    from edgeflare.survey.phases.survey_observer import DeviceProgress

LINE_SECONDS: Final = 5.0
"""Seconds between two plain lines: often enough to see that it lives, seldom enough for a log."""


@contextmanager
def observe(console: Console) -> Iterator[ProgressDisplay]:
    """Show progress in the way that fits a console, for as long as the context lasts."""
    if not console.is_terminal:
        yield ProgressLines(console)
        return
    live = ProgressBars(console)
    with live.bars:
        yield live


@dataclass(frozen=True, slots=True)
class _Shown:
    """How far a phase is.

    Attributes:
        name: name of the phase.
        done: parts that are done.
        total: parts in all.
        note: what there is to say beside it.
        count: what is done and how much there is, in words.
        ended: whether it has ended.

    """

    name: str
    done: int
    total: int
    note: str
    count: str
    ended: bool

    @classmethod
    def of(cls, name: str, done: int, total: int, note: str) -> _Shown:
        """Return this of a phase that ends when all its parts are done."""
        return cls(name, done, total, note, f"{done}/{total}", ended=done == total)


class ProgressDisplay(ABC):
    """Shows how far each phase is, and how long it will still take."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._left: defaultdict[str, TimeLeft] = defaultdict(TimeLeft)
        self._rate = ""

    def begun(self, name: str, about: float | None, most: float) -> None:
        """Show that a phase begins, and what it costs.

        Args:
            name: name of the phase.
            about: seconds that it takes; None where nobody knows.
            most: seconds after which it is cut off.

        """
        if about == 0.0 or most <= 0.0:  # there is nothing for it to do, or no time
            return
        costs = "" if about is None else f"about {_costs(min(about, most))}, "
        self.told(f"{name}: {costs}at most {_costs(most)}", style="dim")

    def told(self, line: str, style: str = "") -> None:
        """Show a line that is no warning."""
        self._console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def warned(self, line: str) -> None:
        """Show a warning."""
        self._console.print(
            f"warning: {line}", style="yellow", markup=False, highlight=False, soft_wrap=True
        )

    def screened(self, done: int, total: int) -> None:
        """Show how many seeds have been evaluated."""
        self.worked("seeds", done, total)

    def tested(self, done: int, total: int) -> None:
        """Show how many held-out inputs have been evaluated."""
        self.worked("test inputs", done, total)

    def searched(self, progress: Progress) -> None:
        """Show how far the search is."""
        total = progress.seeds - progress.deviating_seeds
        speed = progress.queries / progress.seconds if progress.seconds > 0 else 0.0
        asked = count_of(progress.queries, "query", "queries")
        note = f"{progress.findings} found · {asked} · {speed:,.0f}/s"
        left = self._left["search"].searched(progress)
        note = f"{note} · {left}" if left else note
        self._show(_Shown.of("search", progress.ended, total, note))

    def refined(self, progress: RefinementProgress) -> None:
        """Show how many findings have been refined, and what that took."""
        left = self._left["refine"].refined(progress)
        note = count_of(progress.ended_queries + progress.open_queries, "query", "queries")
        note = f"{note} · {left}" if left else note
        self._show(_Shown.of("refining", progress.ended, progress.findings, note))

    def verified(self, done: int, total: int) -> None:
        """Show how many evaluations have been repeated."""
        self.worked("verify", done, total)

    def covered(self, done: int, total: int) -> None:
        """Show of how many inputs the neuron coverage has been measured."""
        self.worked("coverage", done, total)

    def judged(self, done: int, total: int) -> None:
        """Show how many items of a survey the host has answered."""
        self.worked("host", done, total)

    def asked(self, progress: DeviceProgress) -> None:
        """Show how far the device's part of a survey is, and how well the rate is known."""
        if progress.estimate is not None and progress.half_width is not None:
            self._rate = f"{progress.estimate:.2%} ± {progress.half_width:.2%}"
            if progress.aim is not None:
                self._rate += f", ± {progress.aim:.2%} aimed for"
        elif progress.ended or progress.asked >= progress.most:
            self._rate = ""  # that of the round before is not that of all
        asked, most = progress.asked, progress.asked if progress.ended else progress.most
        count = f"{asked} asked" if progress.ended else f"{asked} of at most {most}"
        self._show(_Shown("device", asked, most, self._rate, count, ended=progress.ended))

    def repeated(self, done: int, total: int) -> None:
        """Show how many times the rate of a rare event was estimated."""
        self.worked("rare events", done, total)

    def conformed(self, models: int, cells: tuple[int, int], failing: int) -> None:
        """Show how many models of operators were run, and what they covered."""
        covered, of = cells
        note = f"{count_of(models, 'model')} · {failing} found"
        self._show(_Shown("operators", covered, of, note, f"{covered}/{of}", ended=False))

    def graphs_tried(self, graphs: int, cells: tuple[int, int], failing: int) -> None:
        """Show how many graphs of operators were run, and of how many operators."""
        answering, of = cells
        note = f"{answering} of {of} operators in them · {failing} failing"
        self._show(_Shown("graphs", answering, of, note, f"{graphs:,}", ended=False))

    def shrunk(self, done: int, total: int) -> None:
        """Show how many findings were shrunk."""
        self.worked("shrink", done, total)

    def explained(self, done: int, total: int) -> None:
        """Show how many findings have been explained."""
        self.worked("explain", done, total)

    def inspected(self, done: int, total: int) -> None:
        """Show how many inputs of an inspection have been evaluated."""
        self.worked("inspect", done, total)

    def worked(self, name: str, done: int, total: int) -> None:
        """Show how far a phase is whose parts take about as long each."""
        self._show(_Shown.of(name, done, total, self._left[name].counted(done, total)))

    @abstractmethod
    def _show(self, shown: _Shown) -> None:
        """Show how far a phase is, and what there is to say beside it."""


def _costs(seconds: float) -> str:
    """Return a time that is asked for; of few seconds the next whole one."""
    return f"{ceil(seconds)} s" if seconds < _FEW_SECONDS else in_words(seconds)


_FEW_SECONDS: Final = 60.0


class ProgressBars(ProgressDisplay):
    """Bars that move."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (  # noqa: PLC0415 - on a terminal alone
            BarColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.progress import Progress as Bars  # noqa: PLC0415 - likewise

        super().__init__(console)
        self.bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def _show(self, shown: _Shown) -> None:
        name, count, note = shown.name, shown.count, shown.note
        if name not in self._tasks:
            self._tasks[name] = self.bars.add_task(name, count="", note="")
        task = self._tasks[name]
        self.bars.update(task, completed=shown.done, total=shown.total, count=count, note=note)


class ProgressLines(ProgressDisplay):
    """A line every few seconds, and one at the end of each phase, which may be told twice."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._last, self._line = float("-inf"), ""

    def repeated(self, done: int, total: int) -> None:
        """Show how many times a rare event was estimated; that it begins, at once.

        The host draws and moves points for long before the first time.
        """
        if done == 0:
            self._last = float("-inf")
        super().repeated(done, total)

    def _show(self, shown: _Shown) -> None:
        now = time.monotonic()
        if shown.ended or now - self._last >= LINE_SECONDS:
            line = f"{shown.name} {shown.count}" + (f" · {shown.note}" if shown.note else "")
            if shown.ended and line == self._line:
                return
            self._last, self._line = now, line
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def watch_runs(console: Console, line: Callable[[BenchRun], str]) -> Watch:
    """Return what shows the progress of one run after the other; `line` announces each."""

    @contextmanager
    def watch(cell: BenchRun) -> Iterator[Observer]:
        say(console, line(cell))
        with observe(console) as observer:
            yield observer

    return watch


def say(console: Console, line: str) -> None:
    """Print a line as it is, however long, but for what does not print."""
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


FIRST_SECONDS: Final = 3.0
"""Seconds before which start-up decides how fast it seems to go."""

WINDOW_SECONDS: Final = 30.0
"""Seconds over which the speed of a search is averaged: it falls when few chains are left."""

FIRST_FINDINGS: Final = 10
"""A rate estimated from fewer is off by a third or more (1/√n), so only the bound is said."""

FIRST_SHARE: Final = 0.1
"""Share of what is counted that is done before an estimate."""

FIRST_COUNT: Final = 100
"""Count that is more than enough for an estimate, however much there is in all."""

UNKNOWN: Final = "time left unknown"


class TimeLeft:
    """The time left of one phase, told from its reports."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `clock` gives seconds."""
        self._clock = clock
        self._reports: deque[tuple[float, int]] = deque()

    def counted(self, done: int, total: int) -> str:
        """Tell it of a phase whose parts take about as long each.

        It says nothing when the phase has begun, and where all is done.
        """
        now = self._clock()
        begins = not self._reports
        if begins:
            self._reports.append((now, done))
        begun, before = self._reports[0]
        if begins or done >= total:
            return ""
        enough = min(FIRST_COUNT, max(1, FIRST_SHARE * (total - before)))
        if now - begun < FIRST_SECONDS or done - before < enough:
            return UNKNOWN
        return f"about {in_words((now - begun) / (done - before) * (total - done))} left"

    def refined(self, progress: RefinementProgress) -> str:
        """Tell it of a refinement, whose findings spend some of the same bound of queries each.

        Where too few have ended for an estimate, it is what the bound allows at most.
        """
        reports, now = self._reports, self._clock()
        reports.append((now, progress.ended_queries + progress.open_queries))
        while len(reports) > 2 and reports[1][0] <= now - WINDOW_SECONDS:
            reports.popleft()
        left = progress.findings - progress.ended
        if not left:
            return ""
        seconds, queries = now - reports[0][0], reports[-1][1] - reports[0][1]
        if seconds < FIRST_SECONDS or queries <= 0:
            return UNKNOWN
        pace = seconds / queries
        if progress.ended < FIRST_FINDINGS:
            most = left * progress.most_queries - progress.open_queries
            return f"at most {in_words(most * pace)} left"
        mean = progress.ended_queries / progress.ended
        return f"about {in_words(max(0.0, left * mean - progress.open_queries) * pace)} left"

    def searched(self, progress: Progress) -> str:
        """Tell it of a search, whose chains end when they find something or their budget ends.

        Where too little was found for an estimate, it is what the budget allows at most.
        """
        reports = self._reports
        reports.append((progress.seconds, progress.queries))
        while len(reports) > 2 and reports[1][0] <= progress.seconds - WINDOW_SECONDS:
            reports.popleft()
        if progress.ended >= progress.seeds - progress.deviating_seeds:
            return ""
        seconds = progress.seconds - reports[0][0]
        queries = progress.queries - reports[0][1]
        if seconds < FIRST_SECONDS or queries <= 0:
            return UNKNOWN
        pace, deadline = seconds / queries, progress.seconds_left
        if progress.findings < FIRST_FINDINGS:
            return f"at most {in_words(min(progress.most_queries_left * pace, deadline))} left"
        return f"about {in_words(min(expected_queries(progress) * pace, deadline))} left"


def expected_queries(progress: Progress) -> float:
    """Return how many queries the open chains will still spend.

    Every query is taken to find something with the same probability: the findings so far by the
    queries so far, which counts chains that are open or ended without a finding for what they
    spent (the maximum-likelihood rate of censored exponential times). Each open chain is taken to
    have an equal share of what is left of the budget.
    """
    chains = progress.seeds - progress.deviating_seeds - progress.ended
    rate = progress.findings / progress.queries
    share = progress.most_queries_left / max(1, chains)
    return chains * -math.expm1(-rate * share) / rate if rate else progress.most_queries_left


def in_words(seconds: float) -> str:
    """Return a time, rounded up in coarse steps: no figure that moves with each report."""
    if seconds < 90:
        return f"{max(1, math.ceil(seconds / 10)) * 10} s"
    if seconds < 5400:
        minutes = math.ceil(seconds / 60)
        return f"{minutes if minutes < 20 else math.ceil(minutes / 5) * 5} min"
    return f"{math.ceil(seconds / 360) / 10:,.1f} h"
