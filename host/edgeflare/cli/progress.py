"""How far a campaign is: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import (
    Progress as Bars,
)

from edgeflare.campaign.setting import Progress

LINE_SECONDS = 5.0
"""Between two plain lines: often enough to see that it lives, seldom enough for a log."""


def observe(console: Console) -> LiveObserver | LineObserver:
    """Return the display that fits a console, to be used as a context manager."""
    return LiveObserver(console) if console.is_terminal else LineObserver(console)


class LiveObserver:
    """Bars that move."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> LiveObserver:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def warned(self, line: str) -> None:
        """Show a warning above the bars."""
        self._console.print(f"warning: {line}", style="yellow", markup=False)

    def screened(self, done: int, total: int) -> None:
        """Move the bar of the seeds."""
        self._show("seeds", done, total, "")

    def searched(self, progress: Progress) -> None:
        """Move the bar of the search."""
        total = progress.seeds - progress.deviating_seeds
        self._show("search", progress.ended, total, _note(progress))

    def refined(self, done: int, total: int) -> None:
        """Move the bar of the refinement."""
        self._show("refine", done, total, "")

    def verified(self, done: int, total: int) -> None:
        """Move the bar of the verification."""
        self._show("verify", done, total, "")

    def explained(self, done: int, total: int) -> None:
        """Move the bar of the explanations."""
        self._show("explain", done, total, "")

    def worked(self, name: str, done: int, total: int) -> None:
        """Move the bar of whatever else is done."""
        self._show(name, done, total, "")

    def _show(self, name: str, done: int, total: int, note: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, note="")
        self._bars.update(self._tasks[name], completed=done, total=total, note=note)


class LineObserver:
    """A line every few seconds, and one at the end of each phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = float("-inf")

    def __enter__(self) -> LineObserver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def warned(self, line: str) -> None:
        """Print a warning."""
        self._print(f"warning: {line}")

    def screened(self, done: int, total: int) -> None:
        """Print how many seeds have been evaluated."""
        self._maybe(f"seeds {done}/{total}", last=done == total)

    def searched(self, progress: Progress) -> None:
        """Print how far the search is."""
        total = progress.seeds - progress.deviating_seeds
        line = f"search {progress.ended}/{total} · {_note(progress)}"
        self._maybe(line, last=progress.ended == total)

    def refined(self, done: int, total: int) -> None:
        """Print how many findings have been refined."""
        self._maybe(f"refine {done}/{total}", last=done == total)

    def verified(self, done: int, total: int) -> None:
        """Print how many evaluations have been repeated."""
        self._maybe(f"verify {done}/{total}", last=done == total)

    def explained(self, done: int, total: int) -> None:
        """Print how many findings have been explained."""
        self._maybe(f"explain {done}/{total}", last=done == total)

    def worked(self, name: str, done: int, total: int) -> None:
        """Print how far whatever else is done."""
        self._maybe(f"{name} {done}/{total}", last=done == total)

    def _maybe(self, line: str, *, last: bool) -> None:
        now = time.monotonic()
        if last or now - self._last >= LINE_SECONDS:
            self._last = now
            self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _note(progress: Progress) -> str:
    speed = progress.queries / progress.seconds if progress.seconds > 0 else 0.0
    return f"{progress.findings} found · {progress.queries:,} queries · {speed:,.0f}/s"
