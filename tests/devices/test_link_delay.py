from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.link_delay import DelayLine


class Clock:
    """A clock on which time passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def arrivals(delay: float, departures: list[float]) -> list[tuple[float, int]]:
    """When which item comes out, by the virtual clock."""
    clock = Clock()
    line: DelayLine[int] = DelayLine(delay, lambda: clock.now, clock.sleep)
    for index, departure in enumerate(departures):
        clock.now = departure
        line.put(index)
    line.close()
    clock.now = 0.0
    return [(clock.now, index) for index in line]


def test_items_that_leave_together_arrive_together() -> None:
    assert arrivals(0.02, [0.0] * 100) == [(0.02, index) for index in range(100)]


@given(
    delay=st.floats(0, 10),
    departures=st.lists(st.floats(0, 100), min_size=1).map(sorted),
)
def test_each_item_arrives_the_delay_after_it_left(delay: float, departures: list[float]) -> None:
    expected = [(departure + delay, index) for index, departure in enumerate(departures)]

    came = arrivals(delay, departures)

    assert [index for _, index in came] == [index for _, index in expected]
    assert [time for time, _ in came] == pytest.approx([time for time, _ in expected])


def test_without_delay_nothing_sleeps() -> None:
    assert arrivals(0.0, [0.0, 0.0]) == [(0.0, 0), (0.0, 1)]
