"""What is said of progress: lines and bars, the time that is left, and a fleet's units."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from edgeflare.campaign.observer import Progress, RefinementProgress
from edgeflare.cli import fleet_session as shown_here
from edgeflare.cli.fleet_session import fleet_progress
from edgeflare.fleet.record.fleet_state import AttemptState, FleetState, PlaceState, UnitState
from edgeflare.progress import FIRST_FINDINGS, TimeLeft, expected_queries, in_words, observe
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
        observer.verified(3, 3)
        observer.inspected(2, 2)
    assert said.getvalue().splitlines() == [
        "search 1/40 · 1 found · 100 queries · 100/s · time left unknown",
        "search 40/40 · 40 found · 4,000 queries · 10/s",
        "refining 40/40 · 2,400 queries",
        "verify 3/3",
        "inspect 2/2",
    ]


def test_lines_say_what_a_phase_costs_before_it_begins() -> None:
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.begun("field", 0.0, 90.0)
        observer.begun("layers", 3.2, 200.0)
        observer.begun("near", 70.0, 12.1)
        observer.begun("device board", None, 45.0)
    assert said.getvalue().splitlines() == [
        "layers: about 4 s, at most 4 min",
        "near: about 13 s, at most 13 s",
        "device board: at most 45 s",
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
    monkeypatch.setattr("edgeflare.progress.LINE_SECONDS", 0.0)
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


def test_graphs_are_counted_apart_from_single_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeflare.progress.LINE_SECONDS", 0.0)
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.conformed(2_000, (515, 531), 4)
        observer.graphs_tried(1_200, (93, 531), 1)
    assert said.getvalue().splitlines() == [
        "operators 515/531 · 2,000 models · 4 found",
        "graphs 1,200 · 93 of 531 operators in them · 1 failing",
    ]


def test_a_line_says_that_rare_events_begin() -> None:
    said = io.StringIO()
    with observe(Console(file=said)) as observer:
        observer.verified(3, 3)
        observer.repeated(0, 10)
        observer.repeated(1, 10)
    assert said.getvalue().splitlines() == ["verify 3/3", "rare events 0/10"]


CAP = 100

UNITS = {"s": 1, "min": 60, "h": 3600}


def seconds(words: str) -> float:
    number, unit = re.fullmatch(r"(?:about |at most )?([\d.,]+) (\w+)(?: left)?", words).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * UNITS[unit]


def search(lengths: list[int], pace: float, seconds_left: float = inf) -> Iterator[Progress]:
    """Yield the reports of a search whose chains take so many queries, all open at once."""
    for spent in range(1, max(lengths) + 1):
        queries = sum(min(length, spent) for length in lengths)
        ended = [length for length in lengths if length <= spent]
        yield Progress(
            seeds=len(lengths) + 2,
            deviating_seeds=2,
            ended=len(ended),
            findings=sum(length < CAP for length in ended),
            queries=queries,
            device_queries=queries,
            seconds=queries * pace,
            most_queries_left=sum(CAP - spent for length in lengths if length > spent),
            seconds_left=seconds_left - queries * pace,
        )


@given(lengths=st.lists(st.integers(1, CAP), min_size=1, max_size=15), pace=st.floats(1e-3, 10.0))
def test_what_is_said_at_most_is_never_less_than_it_takes(lengths: list[int], pace: float) -> None:
    left, whole = TimeLeft(), sum(lengths) * pace
    for report in search(lengths, pace):
        words = left.searched(report)
        if words.startswith("at most"):
            assert seconds(words) >= (whole - report.seconds) * (1 - 1e-9)
            assert report.findings < FIRST_FINDINGS
        if report.ended == len(lengths):
            assert words == ""


@given(seed=st.integers(0, 2**32 - 1), mean=st.floats(10.0, 200.0))
def test_an_estimate_is_near_what_it_takes(seed: int, mean: float) -> None:
    rng = np.random.default_rng(seed)
    lengths = np.minimum(np.ceil(rng.exponential(mean, 300)), CAP).astype(int).tolist()
    report = next(one for one in search(lengths, 1.0) if one.findings >= 100 or one.ended == 300)
    rest = sum(lengths) - report.queries
    assert rest / 1.8 <= expected_queries(report) <= rest * 1.8


def test_time_is_unknown_at_first_and_bounded_by_the_searchs_own_end() -> None:
    words = [TimeLeft().searched(report) for report in search([CAP] * 4, 1.0)]
    assert set(words[:-1]) == {"time left unknown"}  # each has one report alone
    left = TimeLeft()
    told = [left.searched(report) for report in search([CAP] * 4, 1.0, seconds_left=150.0)]
    assert told[0] == "time left unknown"
    assert told[1] == "at most 3 min left"
    assert told[-2] == "at most 10 s left"


def test_parts_that_are_counted_go_on_at_their_pace() -> None:
    now = iter([0.0, 1.0, 10.0, 20.0, 50.0])
    left = TimeLeft(lambda: next(now))
    said = [left.counted(done, 60) for done in (10, 11, 20, 30, 60)]
    assert said == ["", "time left unknown", "about 40 s left", "about 30 s left", ""]


def test_of_many_parts_a_hundred_tell_the_pace() -> None:
    now = iter([0.0, 5.0, 10.0])
    left = TimeLeft(lambda: next(now))
    said = [left.counted(done, 1_016) for done in (16, 66, 1_000 // 6)]
    assert said == ["", "time left unknown", "about 60 s left"]


def test_a_refinement_ends_by_its_bound_at_most_and_about_as_those_that_have_ended() -> None:
    """100 findings are refined by at most 600 queries each; 20 queries take a second."""
    now = iter([0.0, 1.0, 10.0, 20.0, 20.0])
    left = TimeLeft(lambda: next(now))
    said = [
        left.refined(RefinementProgress(100, ended, ended * 100, open_queries, 600))
        for ended, open_queries in ((0, 0), (0, 20), (0, 200), (4, 0), (20, 0))
    ]
    assert said == [
        *["time left unknown"] * 2,
        *["at most 50 min left"] * 2,  # 59,800 queries and 57,600, at 20 a second
        "about 80 s left",  # 8,000 queries at 100 a second
    ]
    assert TimeLeft().refined(RefinementProgress(100, 100, 9_000, 0, 600)) == ""


@pytest.mark.parametrize(
    ("time", "words"),
    [(0.2, "10 s"), (11, "20 s"), (91, "2 min"), (1250, "25 min"), (9000, "2.5 h")],
)
def test_times_are_said_in_coarse_steps(time: float, words: str) -> None:
    assert in_words(time) == words


@given(time=st.floats(0.0, 1e7))
def test_words_are_near_the_time(time: float) -> None:
    assert time * (1 - 1e-9) <= seconds(in_words(time)) <= max(10.0, time * 1.5 + 10)


def state() -> FleetState:
    units = [UnitState(f"unit-{at:04d}", "class", "", 2) for at in range(3)]
    places = [PlaceState("bench-1: one", "bench-1"), PlaceState("bench-2: two", "bench-2")]
    return FleetState("c", seconds=60.0, units=units, places=places)


def test_lines_say_what_has_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shown_here, "LINE_SECONDS", 0.0)
    with fleet_progress(tmp_path / "run.fleet") as show:
        now = state()
        show(now)
        show(now)
        now.units[0].status, now.units[0].ended = "done", 2
        show(now)
    assert now.hourly == 120.0
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("0 of 3 units done")
    assert second.startswith("1 of 3 units done, 2 of 6 seeds searched")
    assert second.endswith(f"see {tmp_path / 'run.fleet' / 'fleet.html'}")


def test_seldom_enough_for_a_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with fleet_progress(tmp_path) as show:
        show(state())
    assert capsys.readouterr().err == ""


def test_a_host_that_is_away_is_warned_of_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with fleet_progress(tmp_path) as show:
        now = state()
        now.places[1].away = True
        show(now)
        show(now)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: bench-2 takes no part in the cluster")


def test_what_is_under_way_counts_as_busy_and_what_was_lost_is_counted() -> None:
    now = state()
    now.units[0].attempts = [
        AttemptState(1, "bench-1", "one", 0.0, 10.0, "lost (WorkerCrashedError)"),
        AttemptState(2, "bench-1", "one", 10.0, 20.0),
    ]
    place = now.places[0]
    place.busy_seconds, place.unit = 10.0, "unit-0000"
    assert now.busy_share(place) == 0.5
    assert "1 attempts lost or failed" in now.summary()
    assert now.why_idle(place) == ""
    now.drained = ["bench-1"]
    assert now.why_idle(place) == "drained"
    place.quarantine_reason = "unplugged"
    assert now.why_idle(place) == "unplugged"
