"""Small benches of the example pair, and a count of the campaigns that they ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgeflare.bench.bench_document import Bench
from edgeflare.bench.grid import BenchRun, Grid, run_grid
from edgeflare.campaign.observer import Observer, Progress, RefinementProgress
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.models.pair import Pair
from edgeflare.run.plan import Plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
PLAN = Plan("random", Goal(Find.ANY), ("emulated-builtin",), first=5, max_queries=50)
GRID = Grid(("random", "dflare"), (0, 1), "dflare", PLAN)


class Bencher:
    """Runs small benches, and remembers which campaigns they really ran."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.watched: list[str] = []

    def run(self, out: Path, *, stop_in: int | None = None, **changes: Any) -> Bench:
        """Run a bench; `changes` are of its plan.

        It is stopped in the middle of the campaign of the number `stop_in`, counted from 0.
        """
        interrupt = Interrupt()
        self.watched = []

        @contextmanager
        def watch(cell: BenchRun) -> Iterator[Observer]:
            stops = len(self.watched) == stop_in
            self.watched.append(cell.run.name)
            yield Watcher(interrupt if stops else Interrupt())

        grid = replace(GRID, plan=replace(PLAN, **changes))
        pairs = [self.pair]
        runs = run_grid(grid, pairs, out, chains=8, watch=watch, interrupt=interrupt)
        return Bench(grid, list(runs))


class Watcher:
    """An observer that asks to stop once the search is under way."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def warned(self, line: str) -> None:
        pass

    def screened(self, done: int, total: int) -> None:
        pass

    def tested(self, done: int, total: int) -> None:
        pass

    def searched(self, progress: Progress) -> None:
        if progress.queries >= 40 and not self._interrupt.asked():
            self._interrupt.ask()

    def refined(self, progress: RefinementProgress) -> None:
        pass

    def verified(self, done: int, total: int) -> None:
        pass

    def covered(self, done: int, total: int) -> None:
        pass
