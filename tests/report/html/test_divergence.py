"""Divergence along a network: in the page, as a picture of its own, and as bars of text."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from edgeflare.pages.terminal import print_blocks
from edgeflare.report.divergence_bars import divergence_bars
from edgeflare.report.divergence_picture import divergence_picture
from edgeflare.report.html.card import HEIGHT, divergence_of
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


def test_equal_arms_have_no_bars_and_without_layers_there_is_no_plot() -> None:
    drawn = divergence_of(ExplanationView("compression", layers=(LayerView("0 CONV_2D", 0.0),)))
    assert drawn is not None
    assert (drawn.up, drawn.down, drawn.begins) == ("", "", None)
    assert drawn.words == "Along 1 operator: no difference"
    assert divergence_of(ExplanationView("compression")) is None


def test_what_is_not_quantized_has_the_shortest_bar_and_is_said() -> None:
    layers = (LayerView("0 CONV_2D", 3.0), LayerView("1 DEQUANTIZE", real=900.0))
    drawn = divergence_of(ExplanationView("kernel", layers=layers))
    assert drawn is not None
    assert bars(drawn.up) == {0: -HEIGHT, 1: -1}
    assert "at most 3.0 quantization units at 0 CONV_2D" in drawn.words
    assert "not quantized, at most 900.0 at 1 DEQUANTIZE" in drawn.words


NETWORK = tuple(
    LayerView(f"{place} DEPTHWISE_CONV_2D", place % 4 or None, place / 7, begins=place == 5)
    for place in range(40)
)


def explanation(*layers: LayerView) -> ExplanationView:
    return ExplanationView("kernel (delegate)", layers=layers)


def printed(one: ExplanationView, width: int = 80) -> list[str]:
    file = io.StringIO()
    print_blocks(Console(file=file, width=width, color_system=None), divergence_bars(one))
    lines = file.getvalue().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    return lines


def row_of(lines: list[str], name: str) -> str:
    (line,) = [line for line in lines if line.split()[:2] == name.split()]
    return line


def test_the_longest_bar_is_that_of_the_largest_difference() -> None:
    lines = printed(explanation(LayerView("0 CONV_2D", 8.0, 0.0), LayerView("1 ADD", 2.0, 3.5)))
    first, second = row_of(lines, "0 CONV_2D"), row_of(lines, "1 ADD")
    assert first.count("█") == 16
    assert second.count("█") == 4 + 16
    assert first.split()[-1] == "0"
    assert second.split()[-1] == "3.5"


def test_any_difference_shows_and_none_does_not() -> None:
    lines = printed(
        explanation(
            LayerView("0 CONV_2D", 1000.0), LayerView("1 ADD", 1e-9), LayerView("2 MUL", 0.0)
        )
    )
    assert "▏ 1e-09" in row_of(lines, "1 ADD")
    assert "█" not in row_of(lines, "2 MUL")
    assert "not known" in row_of(lines, "2 MUL")


def test_a_network_of_long_names_is_not_cut_in_80_columns() -> None:
    lines = printed(explanation(*NETWORK))
    assert all(row_of(lines, layer.name) for layer in NETWORK)
    assert "…" not in "".join(lines)


def texts(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - ours
    return [text for node in root.iter("{http://www.w3.org/2000/svg}text") if (text := node.text)]


def test_the_picture_names_every_layer_and_the_verdict() -> None:
    svg = divergence_picture(explanation(*NETWORK), "seed 3 on a phone")
    shown = texts(svg)
    assert {layer.name for layer in NETWORK} <= set(shown)
    assert "seed 3 on a phone: kernel (delegate)" in shown
    assert svg == divergence_picture(explanation(*NETWORK), "seed 3 on a phone")


def test_where_it_begins_stands_out() -> None:
    bold = [
        line
        for line in _text_elements(explanation(*NETWORK))
        if "bold" in line or "700" in line.partition("x=")[0]
    ]
    assert len(bold) == 1
    assert "5 DEPTHWISE_CONV_2D" in bold[0]


@pytest.mark.parametrize("layers", [(LayerView("0 CONV_2D"),), (LayerView("0 CONV_2D", 0.0, 0.0),)])
def test_a_network_of_which_nothing_differs_or_is_known_is_drawn(
    layers: tuple[LayerView, ...],
) -> None:
    assert "0 CONV_2D" in texts(divergence_picture(explanation(*layers), "seed 0"))


def _text_elements(one: ExplanationView) -> list[str]:
    root = ElementTree.fromstring(divergence_picture(one, "seed 0"))  # noqa: S314 - ours
    return [
        ElementTree.tostring(node, "unicode")
        for node in root.iter("{http://www.w3.org/2000/svg}text")
    ]


def test_what_is_not_quantized_has_its_figure_and_no_bar() -> None:
    one = explanation(LayerView("0 CONV_2D", 8.0), LayerView("1 DEQUANTIZE", real=0.25))
    line = row_of(printed(one), "1 DEQUANTIZE")
    assert "▏ 0.25 in real values" in line
    assert "█" not in line
    assert " 0.25 in real values" in texts(divergence_picture(one, "seed 0"))


def test_real_values_are_not_called_units() -> None:
    one = ExplanationView("kernel", layers=(LayerView("0 CONV_2D", 0.5, 0.1),), unit="real values")
    said = " ".join(" ".join(printed(one, 160)).split())
    assert "largest differences in real values" in said
    assert "new in twin – original in units of the layer" in said
