"""`edgeflare strategies`, `--set`, and a strategy that another package brings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeflare.search import strategy_registry
from edgeflare.search.strategy import Strategy

PLUGIN = """
from dataclasses import dataclass

import numpy as np

from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.strategy import SearchGenerator, Start, Strategy
from edgeflare.search.strategy_parameters import parameter

"""

TWICE = '''
class Nothing(Strategy):
    """It has no search."""
'''


def example_of_the_base_class() -> str:
    """The strategy in the docstring of `Strategy`, and its entry point."""
    _, *lines = (Strategy.__doc__ or "").split("        @dataclass(frozen=True)\n")[1].splitlines()
    body = [
        line[8:]
        for line in lines[
            : lines.index("    A package makes it known under the name `darken` by an entry point:")
        ]
    ]
    return "@dataclass(frozen=True)\nclass Darken(Strategy):\n" + "\n".join(body) + "\n"


@pytest.fixture
def darken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package: one file, and an entry point for each of two strategies."""
    (tmp_path / "my_package.py").write_text(PLUGIN + example_of_the_base_class() + TWICE)
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[edgeflare.strategies]\ndarken = my_package:Darken\nnothing = my_package:Nothing\n"
        "random = my_package:Darken\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    strategy_registry._installed.cache_clear()
    yield
    strategy_registry._installed.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("darken")
def test_a_strategy_of_another_package_is_listed_after_the_built_in_ones(
    call: Callable[..., Any],
) -> None:
    said = call("strategies")
    assert said.code == 0
    names = [line.split()[0] for line in said.out.splitlines() if not line.startswith(" ")]
    assert names[:2] == ["name", "boundary"]
    assert names[-4:] == ["pgd", "darken", "random", "nothing"]
    assert "take away gray levels until the decisions differ" in said.out
    text = " ".join(said.out.split())
    assert "strategy 'nothing' of package my-package: my_package:Nothing has no method" in text
    assert "another package has a strategy of that name" in text


@pytest.mark.usefixtures("darken")
def test_a_strategy_of_another_package_is_shown_with_its_parameters(
    call: Callable[..., Any],
) -> None:
    said = call("strategies", "darken")
    assert said.code == 0
    assert "Darken the seed until the compared arms disagree." in said.out
    assert "step = 1  (a whole number, at least 1)" in said.out
    assert "Gray levels that each query takes away." in said.out
    refused = call("strategies", "nothing")
    assert refused.code == 2
    assert "has no method search; correct or uninstall the package" in refused.complaint()


@pytest.mark.slow
@pytest.mark.usefixtures("darken")
def test_a_strategy_of_another_package_searches_with_what_is_set(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    search = ("search", example, "--strategy", "darken", "--max-queries", "40", "--first", "3")
    rest = ("--shrink", "0", "--fail-on", "none", "--out", tmp_path / "run")
    set_ = ("--set", "step=7")
    said = call(*search, *rest, *set_)
    assert said.code == 0, said.err
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["plan"]["parameters"] == {"step": 7}
    assert document["strategy"] == "darken"
    # 255 gray levels are gone after 37 steps of 7, and not within 40 of 1.
    assert 0 < document["totals"]["queries"] <= 3 * 37
    assert call(*search, *rest, *set_, "--resume").code == 0
    for other, now in (((), "none"), (("--set", "step=8"), "step=8")):
        resumed = call(*search, *rest, *other, "--resume")
        assert resumed.code == 2
        assert f"was begun with --set step=7, not {now}: repeat" in resumed.complaint()


def test_a_built_in_strategy_is_shown_with_its_parameters(call: Callable[..., Any]) -> None:
    said = call("strategies", "boundary")
    assert said.code == 0
    assert "Differences from the original" in said.out
    assert "first_leap = 8  (a whole number, at least 1; 2 with the task transcript)" in said.out
    assert "max_leaps = 4  (a whole number, at least 1)" in said.out
    assert "step_length = 0.005  (a number, above 0)" in said.out
    assert "It has no parameters." in call("strategies", "random").out


def test_an_unknown_strategy_is_answered_with_the_nearest(call: Callable[..., Any]) -> None:
    said = call("strategies", "boundry")
    assert said.code == 2
    assert "did you mean 'boundary'?" in said.complaint()


@pytest.mark.parametrize("command", ["search", "rank"])
@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        (
            "first_lep=4",
            "strategy boundary has no parameter 'first_lep' (did you mean 'first_leap'?)",
        ),
        ("first_leap=0", "parameter first_leap=0: expected a whole number, at least 1"),
        ("first_leap=many", "parameter first_leap=many: expected a whole number, at least 1"),
        ("first_leap", "--set first_leap: expected NAME=VALUE"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(
    call: Callable[..., Any],
    example: Path,
    tmp_path: Path,
    command: str,
    assignment: str,
    complaint: str,
) -> None:
    out = tmp_path / "out"
    said = call(command, example, "--strategy", "boundary", "--set", assignment, "--out", out)
    assert said.code == 2
    assert complaint in said.complaint()
    assert not out.exists()


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("first_leap=4", "--set first_leap=4: expected STRATEGY.NAME=VALUE"),
        ("boundray.first_leap=4", "boundray is none of the strategies that are run (did you mean"),
        ("random.first_leap=4", "strategy random has no parameter 'first_leap'"),
        ("boundary.first_leap=0", "parameter first_leap=0: expected a whole number, at least 1"),
    ],
)
def test_a_bench_names_the_strategy_of_a_parameter(
    call: Callable[..., Any], example: Path, tmp_path: Path, assignment: str, complaint: str
) -> None:
    strategies = ("--strategy", "boundary", "--strategy", "random")
    said = call("bench", example, *strategies, "--set", assignment, "--out", tmp_path / "out")
    assert said.code == 2
    assert complaint in said.complaint()


@pytest.mark.slow
def test_a_bench_runs_with_what_is_set(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bench"
    said = call(
        *("bench", example, "--strategy", "boundary", "--strategy", "random", "--rng-seeds", "0"),
        *("--first", "2", "--max-queries", "10", "--set", "boundary.first_leap=4", "--out", out),
    )
    assert said.code == 0, said.err
    document = json.loads((out / "bench.json").read_text())
    assert document["plan"]["parameters"] == {"boundary": {"first_leap": 4}}
    plans = {
        path.parent.name: json.loads(path.read_text())["plan"] for path in out.rglob("run.json")
    }
    assert plans["boundary-0"]["parameters"] == {"first_leap": 4}
    assert "parameters" not in plans["random-0"]
