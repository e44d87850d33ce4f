"""How long it still takes: simulated searches, whose clock is the test's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.campaign.observer import Progress, RefinementProgress
from edgeflare.cli.time_left import FIRST_FINDINGS, TimeLeft, expected_queries, in_words

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
    assert said == [
        "",
        "time left unknown",
        "about 40 s left",
        "about 30 s left",
        "",
    ]


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
    [
        (0.2, "10 s"),
        (11, "20 s"),
        (91, "2 min"),
        (1250, "25 min"),
        (9000, "2.5 h"),
    ],
)
def test_times_are_said_in_coarse_steps(time: float, words: str) -> None:
    assert in_words(time) == words


@given(time=st.floats(0.0, 1e7))
def test_words_are_near_the_time(time: float) -> None:
    assert time * (1 - 1e-9) <= seconds(in_words(time)) <= max(10.0, time * 1.5 + 10)
