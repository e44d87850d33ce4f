"""Plots of numbers: what is drawn, what is said, and that any file can be drawn."""

from __future__ import annotations

import re
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgeflare.core.views import CurvesView, ValuesView
from edgeflare.pages.comparison_plot import (
    MOST_BARS,
    MOST_CURVES,
    ROWS,
    ComparisonPlot,
    comparison_plot,
)

BOTH = ("seed", "trigger")


def values(*numbers: float, lowest: float = -inf, highest: float = inf) -> ValuesView:
    return ValuesView(np.array(numbers, np.float32), lowest=lowest, highest=highest)


def plot(*views: CurvesView | ValuesView, most: int = 20_000) -> ComparisonPlot:
    return comparison_plot(BOTH[: len(views)], views, most)


def bars(path: str) -> list[tuple[float, ...]]:
    """Return left, base, length and width of each bar of a path."""
    numbers = r"(-?[\d.]+)"
    found = re.findall(rf"M{numbers} {numbers}v{numbers}h{numbers}v{numbers}z", path)
    return [tuple(map(float, bar[:4])) for bar in found]


@pytest.mark.parametrize("count", [1, 30, 100, MOST_BARS])
def test_each_value_has_a_bar_of_seed_and_trigger_side_by_side(count: int) -> None:
    rng = np.random.default_rng(count)
    seed, trigger = rng.normal(size=(2, count))
    (panel,) = plot(ValuesView(seed), ValuesView(trigger)).panels
    first, second, change = map(bars, (panel.first, panel.second, panel.change))
    assert panel.width == len(first) == len(second) == count
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        assert place <= one[0] < one[0] + one[3] <= other[0] < other[0] + other[3] <= place + 1
        if abs(seed[place]) > 0.1:
            assert (one[2] < 0) == (seed[place] > 0), "a bar of a positive value goes up"
    assert len(change) == count
    assert [bar[2] < 0 for bar in change] == (trigger > seed).tolist()


def test_heights_are_in_proportion() -> None:
    (panel,) = plot(values(1, 2, 4), values(1, 2, -4)).panels
    lengths = [-bar[2] for bar in bars(panel.first)]
    assert lengths == [10, 20, 40]
    assert [-bar[2] for bar in bars(panel.second)] == [10, 20, -40]
    ((left, _, length, _),) = bars(panel.change)
    assert (left, length) == (2, 13)


def test_the_values_that_changed_most_stand_in_the_table() -> None:
    seed = np.arange(100.0)
    trigger = seed.copy()
    trigger[7], trigger[50] = 7.5, 49
    shown = plot(ValuesView(seed), ValuesView(trigger))
    assert [(row.name, row.first, row.second, row.change) for row in shown.rows] == [
        ("value 7", "7", "7.5", "+0.5"),
        ("value 50", "50", "49", "-1"),
    ]
    assert shown.more == "98 more values, 98 of them unchanged"
    all_of_them = plot(ValuesView(seed), ValuesView(seed + 1))
    assert len(all_of_them.rows) == ROWS
    assert all_of_them.more == "92 more values, 0 of them unchanged"
    assert plot(values(1, 2), values(1, 2)).more == "all unchanged"
    one_left = plot(values(*range(ROWS + 1)), values(*range(1, ROWS + 2)))
    assert one_left.more == "1 more value, 0 of them unchanged"


def test_values_and_series_have_their_names() -> None:
    names = ("radius", "texture")
    seed, trigger = (ValuesView(np.array(v), names) for v in ([1.0, 2.0], [3.0, 4.0]))
    assert [row.name for row in plot(seed, trigger).rows] == list(names)
    curves = CurvesView(np.zeros((5, 2)), names)
    assert [panel.name for panel in plot(curves).panels] == list(names)
    unnamed = plot(CurvesView(np.zeros((5, 2))))
    assert [panel.name for panel in unnamed.panels] == ["series 0", "series 1"]


def test_finite_bounds_are_said_and_drawn_where_values_come_near() -> None:
    (panel,) = plot(values(-1, 0.5, lowest=-1, highest=900)).panels
    assert "bounds from -1 to 900" in panel.words
    assert panel.bounds == (80,)
    (panel,) = plot(values(0, 1)).panels
    assert "bounds" not in panel.words
    assert panel.bounds == ()


def test_words_say_ranges_and_the_largest_change() -> None:
    (panel,) = plot(values(0, 2, 5), values(0, -1, 5)).panels
    assert panel.words == "seed 0 to 5; trigger -1 to 5; largest change 3 at value 1"
    (panel,) = plot(values(0, 2), values(0, 2)).panels
    assert panel.words.endswith("no change")


def test_many_values_are_a_curve() -> None:
    seed = np.linspace(0, 1, MOST_BARS + 1)
    shown = plot(ValuesView(seed), ValuesView(seed + 1))
    (panel,) = shown.panels
    assert not panel.bars
    assert "largest change 1 at value 0" in panel.words
    assert len(shown.rows) == ROWS


def test_a_curve_is_drawn_as_it_runs() -> None:
    curve = np.array([0.0, 4.0, 2.0, 1.0])[:, np.newaxis]
    (panel,) = plot(CurvesView(curve), CurvesView(curve)).panels
    assert panel.first == panel.second == "M0 80 1 0 2 40 3 60"
    assert panel.change == ""


def test_a_long_curve_keeps_its_peaks() -> None:
    curve = np.zeros((50_000, 1))
    curve[31_234], curve[40_000] = 7.0, -7.0
    (panel,) = plot(CurvesView(curve), CurvesView(curve)).panels
    heights = [int(y) for y in panel.first[1:].split()[1::2]]
    assert (min(heights), max(heights)) == (0, 80)
    assert len(heights) <= 240


def test_the_series_that_changed_most_are_shown_and_the_rest_is_said() -> None:
    seed = np.zeros((10, 40))
    trigger = seed.copy()
    trigger[4] = np.arange(40) / 10
    shown = plot(CurvesView(seed), CurvesView(trigger))
    assert [panel.name for panel in shown.panels] == [
        f"series {n}" for n in range(40 - MOST_CURVES, 40)
    ]
    assert shown.more == "34 more series, changed by at most 3.3"


@pytest.mark.parametrize("most", [2_000, 6_000, 72_000])
@pytest.mark.parametrize("series", [1, 3, 40])
def test_paths_keep_to_their_allowance(most: int, series: int) -> None:
    rng = np.random.default_rng(0)
    seed, trigger = (CurvesView(rng.normal(size=(5_000, series))) for _ in range(2))
    shown = plot(seed, trigger, most=most)
    size = sum(len(one.first) + len(one.second) + len(one.change) for one in shown.panels)
    # 24 points of a curve are the least that shows it.
    assert size <= max(1.1 * most, 7_000)


@given(
    views=st.one_of(st.integers(0, 200).map(lambda n: (n,)),
                    st.tuples(st.integers(0, 9), st.integers(0, 9))).flatmap(
        lambda shape: st.lists(
            arrays(np.float32, shape, elements=st.floats(width=32)), min_size=1, max_size=2
        )
    )
)  # fmt: skip
def test_whatever_a_file_holds_can_be_drawn(views: list[np.ndarray]) -> None:
    form = ValuesView if views[0].ndim == 1 else CurvesView
    shown = plot(*(form(one) for one in views))
    for panel in shown.panels:
        paths = panel.first + panel.second + panel.change
        assert re.fullmatch(r"[MvhzV\d. -]*", paths), "not a number in a path"
    assert bool(shown.panels) == bool(views[0].size)


def test_what_is_no_number_is_nothing() -> None:
    (panel,) = plot(values(nan, inf, 1), values(nan, 0, 1)).panels
    assert panel.words == "seed 0 to 1; trigger 0 to 1; no change"
