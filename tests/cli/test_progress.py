from __future__ import annotations

import io
from math import inf

from rich.console import Console

from edgeflare.campaign.observer import Progress
from edgeflare.cli.progress import observe


def report(ended: int, seconds: float) -> Progress:
    return Progress(
        seeds=40,
        deviating_seeds=0,
        ended=ended,
        findings=ended,
        queries=100 * ended,
        device_queries=0,
        seconds=seconds,
        most_queries_left=100 * (40 - ended),
        seconds_left=inf,
    )


def test_lines_say_the_time_that_is_left() -> None:
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.searched(report(1, 1.0))
        observer.searched(report(40, 400.0))
        observer.verified(3, 3)
    assert said.getvalue().splitlines() == [
        "search 1/40 · 1 found · 100 queries · 100/s · time left unknown",
        "search 40/40 · 40 found · 4,000 queries · 10/s",
        "verify 3/3",
    ]


def test_bars_say_the_time_that_is_left() -> None:
    said = io.StringIO()
    console = Console(file=said, force_terminal=True, width=160)
    with observe(console) as observer:
        observer.searched(report(1, 10.0))
        observer.searched(report(20, 210.0))
    assert "20/40" in said.getvalue()
    assert "10/s · about 3 min left" in said.getvalue()
