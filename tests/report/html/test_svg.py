"""A figure that lies in a page: in its colours, with ids and words of its own."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from edgeflare.report.html.svg import COLOURS, inline_svg, page_style


def drawn(name: str = "bars", alternative: str = "Two bars.") -> str:
    with page_style():
        figure = Figure(figsize=(3, 2))
        panel = figure.subplots()
        panel.bar(["a < b", "$x^2$"], [1, 2], color=COLOURS["kernel"], hatch="//")
        panel.set(title="<script>", xlabel="bars")
        return inline_svg(figure, name, alternative)


def test_it_is_one_element_that_says_what_it_shows() -> None:
    root = ElementTree.fromstring(drawn(alternative='"Less" < more & <b>'))  # noqa: S314 - ours
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == '"Less" < more & <b>'
    assert "width" not in root.attrib
    assert root.attrib["viewBox"].split()[2:] == ["216", "144"]


def test_it_takes_the_colours_of_the_page() -> None:
    svg = drawn()
    assert not set(COLOURS.values()) & set(re.findall(r"#[0-9a-f]{6}", svg))
    for variable in ("ink", "muted", "line", "kernel", "panel"):
        assert f"var(--{variable})" in svg


def test_no_colour_of_its_own_is_left() -> None:
    assert re.findall(r"(?:fill|stroke): #\w+", drawn()) == []


def test_text_stays_text() -> None:
    texts = [one.text for one in ElementTree.fromstring(drawn()).iter() if one.text]  # noqa: S314
    assert {"a < b", "$x^2$", "<script>"} <= set(texts)


def test_it_carries_no_style_for_others_and_no_address() -> None:
    svg = drawn()
    assert "<style" not in svg
    assert "<metadata" not in svg
    assert "<!DOCTYPE" not in svg
    addresses = set(re.findall(r"https?://[^\"']*", svg))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_ids_are_its_own_and_every_reference_has_one() -> None:
    svg = drawn("bars")
    ids = re.findall(r' id="([^"]*)"', svg)
    assert ids
    assert len(ids) == len(set(ids))
    assert all(name.startswith("bars-") for name in ids)
    assert set(re.findall(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"", svg))
    for pair in re.findall(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"", svg):
        assert "".join(pair) in ids


@pytest.mark.parametrize("name", ["bars", "other"])
def test_the_same_figure_gives_the_same_text(name: str) -> None:
    assert drawn(name) == drawn(name)
