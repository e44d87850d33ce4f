"""Windows lie where they should, and hold the values that are there."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflare.conform.operators.windows.window import Window, window_values

windows = st.builds(
    Window,
    size=st.integers(0, 20),
    kernel=st.integers(1, 6),
    stride=st.integers(1, 6),
    dilation=st.integers(1, 4),
    padding=st.sampled_from(["SAME", "VALID"]),
)


@given(windows)
def test_windows_hold_the_values_at_their_places(window: Window) -> None:
    assume(window.count >= 0)
    values = np.arange(1.0, window.size + 1).reshape(1, window.size, 1)
    found = window_values(values, [window])
    assert found.shape == (1, window.count, window.kernel, 1)
    for at in range(window.count):
        for tap in range(window.kernel):
            place = at * window.stride + tap * window.dilation - window.before
            expected = values[0, place, 0] if 0 <= place < window.size else 0.0
            assert found[0, at, tap, 0] == expected


@given(windows)
def test_the_last_window_that_fits_is_there_and_no_more(window: Window) -> None:
    end = (window.count - 1) * window.stride + window.reach
    if window.padding == "VALID":
        assume(window.size >= window.reach)
        assert end <= window.size < end + window.stride
    else:
        assert 0 <= (window.count * window.stride) - window.size < window.stride
        assert window.after - window.before in (0, 1)


def test_two_dimensions_are_windowed_each_in_its_own_way() -> None:
    values = np.arange(2 * 4 * 5 * 3.0).reshape(2, 4, 5, 3)
    found = window_values(values, [Window(4, 2, 2), Window(5, 3, 1)])
    assert found.shape == (2, 2, 3, 2, 3, 3)
    assert np.array_equal(found[1, 1, 2], values[1, 2:4, 2:5])
