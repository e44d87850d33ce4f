from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from edgeflare.bench.bench_document import Bench
from edgeflare.bench.queries_figure import draw_queries
from edgeflare.errors import UserError

pytestmark = pytest.mark.slow


def test_without_matplotlib_it_says_how_to_get_it(
    whole: tuple[Path, Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 'edgeflare\[plots\]'"):
        draw_queries(whole[1], tmp_path / "queries.svg")
    assert not list(tmp_path.iterdir())


def test_the_figure_names_pair_and_strategies(whole: tuple[Path, Bench], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    for name in ("one.svg", "two.svg"):
        draw_queries(whole[1], tmp_path / name)
    drawn = (tmp_path / "one.svg").read_bytes()
    assert drawn == (tmp_path / "two.svg").read_bytes()
    words = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 - our own file
    for word in ("fashion_lenet4", "random", "dflare"):
        assert word in words


def test_the_name_of_a_pair_is_drawn_as_it_is(whole: tuple[Path, Bench], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    (runs,) = whole[1].by_pair().values()
    named: Any = SimpleNamespace(by_pair=lambda: {r"$\broken{$": runs}, grid=whole[1].grid)
    draw_queries(named, tmp_path / "queries.svg")
    drawn = (tmp_path / "queries.svg").read_bytes()
    words = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 - our own file
    assert r"$\broken{$" in words
