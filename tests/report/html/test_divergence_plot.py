"""The plot of divergence: a bar for each operator, as long as its difference is large."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.report.html.divergence_plot import HEIGHT, divergence_of
from edgeflare.report.html.explanation_view import ExplanationView, LayerView

differences = st.none() | st.floats(0, 1e6)


def bars(path: str) -> dict[int, int]:
    """The bars of a path: place and length with its sign."""
    found = re.findall(rf"M(\d+)\.5 {HEIGHT}v(-?\d+)", path)
    assert "".join(f"M{place}.5 {HEIGHT}v{length}" for place, length in found) == path
    return {int(place): int(length) for place, length in found}


@given(st.lists(st.tuples(differences, differences), min_size=1, max_size=30))
def test_every_difference_has_its_bar(values: list[tuple[float | None, float | None]]) -> None:
    layers = tuple(LayerView(str(n), up, down) for n, (up, down) in enumerate(values))
    drawn = divergence_of(ExplanationView("kernel", layers=layers))
    assert drawn is not None
    assert drawn.width == len(values)
    for path, sign, side in ((drawn.up, -1, 0), (drawn.down, 1, 1)):
        known = {n: pair[side] for n, pair in enumerate(values) if pair[side]}
        lengths = {n: sign * length for n, length in bars(path).items()}
        assert lengths.keys() == known.keys()
        assert all(1 <= length <= HEIGHT for length in lengths.values())
        if known:
            largest = max(known, key=lambda n: known[n] or 0)
            assert lengths[largest] == HEIGHT


def test_it_says_how_far_and_where() -> None:
    layers = (LayerView("0 CONV_2D", 0.0, 0.5), LayerView("1 DENSE", 12.0, 0.25, begins=True))
    drawn = divergence_of(ExplanationView("kernel", layers=layers))
    assert drawn is not None
    assert drawn.words == (
        "Along 2 operators: up, device and twin, at most 12.0 quantization units at 1 DENSE; "
        "down, what is new of twin and original, at most 0.5000 units at 0 CONV_2D"
    )
    assert drawn.begins == pytest.approx(1.5)


def test_a_small_difference_does_not_read_as_none() -> None:
    drawn = divergence_of(ExplanationView("kernel", layers=(LayerView("0 CONV_2D", 9.5e-7),)))
    assert drawn is not None
    assert "at most 9.5e-07 quantization units" in drawn.words


def test_equal_arms_have_no_bars() -> None:
    drawn = divergence_of(ExplanationView("compression", layers=(LayerView("0 CONV_2D", 0.0),)))
    assert drawn is not None
    assert (drawn.up, drawn.down, drawn.begins) == ("", "", None)
    assert drawn.words == "Along 1 operator: no difference"


def test_without_layers_there_is_no_plot() -> None:
    assert divergence_of(ExplanationView("compression")) is None


def test_what_is_not_quantized_has_the_shortest_bar_and_is_said() -> None:
    layers = (LayerView("0 CONV_2D", 3.0), LayerView("1 DEQUANTIZE", real=900.0))
    drawn = divergence_of(ExplanationView("kernel", layers=layers))
    assert drawn is not None
    assert bars(drawn.up) == {0: -HEIGHT, 1: -1}
    assert "at most 3.0 quantization units at 0 CONV_2D" in drawn.words
    assert "not quantized, at most 900.0 at 1 DEQUANTIZE" in drawn.words
