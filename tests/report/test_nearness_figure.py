from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from documents import run_document
from edgeflare.report.nearness_figure import draw_nearness

DOCUMENT = run_document(
    nearness={"db": [], "linf": [], "area": 0.0},
    findings=[{"distortion": {"l2": 9.0, "linf": 3.0}, "nearness_db": 30.0}],
)


@pytest.mark.slow
def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    names = ("_hidden", "$x^2$", r"$\broken{$", "plain")
    draw_nearness(dict.fromkeys(names, DOCUMENT), tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_bytes()
    words = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 - our own file
    for name in names:
        assert name in words
