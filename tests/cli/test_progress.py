from __future__ import annotations

import io
from math import inf

import pytest
from rich.console import Console

from edgeflare.campaign.observer import Progress, RefinementProgress
from edgeflare.cli.progress import observe
from edgeflare.survey.phases.survey_observer import DeviceProgress


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
        observer.refined(RefinementProgress(40, 40, 2_400, 0, 601))
        observer.verified(3, 3)
    assert said.getvalue().splitlines() == [
        "search 1/40 · 1 found · 100 queries · 100/s · time left unknown",
        "search 40/40 · 40 found · 4,000 queries · 10/s",
        "refine 40/40 · 2,400 queries",
        "verify 3/3",
    ]


def device(asked: int, half: float | None, *, ended: bool) -> DeviceProgress:
    rate = None if half is None else 0.01
    return DeviceProgress(asked, 9_000, ended, rate, half, aim=0.005)


def test_lines_of_a_survey_say_how_many_may_be_asked_and_last_how_many_were() -> None:
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.judged(9_000, 9_000)
        observer.asked(device(256, 0.02, ended=False))
        observer.asked(device(512, None, ended=False))  # too soon for a line
        observer.asked(device(512, 0.004, ended=True))
    assert said.getvalue().splitlines() == [
        "host 9000/9000",
        "device 512 asked · 1.00% ± 0.40%, ± 0.50% aimed for",
    ]


def test_the_first_line_of_a_survey_says_what_is_the_most() -> None:
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.asked(device(16, None, ended=False))
    assert said.getvalue().splitlines() == ["device 16 of at most 9000"]


def test_bars_say_the_time_that_is_left() -> None:
    said = io.StringIO()
    console = Console(file=said, force_terminal=True, width=160)
    with observe(console) as observer:
        observer.searched(report(1, 10.0))
        observer.searched(report(20, 210.0))
    assert "20/40" in said.getvalue()
    assert "10/s · about 3 min left" in said.getvalue()


def test_a_rate_is_not_shown_beside_answers_that_end_a_survey_before_it_was_estimated_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgeflare.cli.progress.LINE_SECONDS", 0.0)
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.asked(device(256, 0.02, ended=False))
        observer.asked(device(300, None, ended=False))
        observer.asked(device(9_000, None, ended=False))
        observer.asked(device(9_000, 0.004, ended=True))
        observer.asked(device(300, None, ended=True))  # the time limit ends a round
    assert said.getvalue().splitlines() == [
        "device 256 of at most 9000 · 1.00% ± 2.00%, ± 0.50% aimed for",
        "device 300 of at most 9000 · 1.00% ± 2.00%, ± 0.50% aimed for",
        "device 9000 of at most 9000",
        "device 9000 asked · 1.00% ± 0.40%, ± 0.50% aimed for",
        "device 300 asked",
    ]


def test_a_line_says_that_rare_events_begin() -> None:
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.verified(3, 3)
        observer.repeated(0, 10)
        observer.repeated(1, 10)
    assert said.getvalue().splitlines() == ["verify 3/3", "rare events 0/10"]
