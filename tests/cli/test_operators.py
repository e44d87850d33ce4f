"""Operators of another package: seen and drawn from when they are asked for, never before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugin_package import install_plugin

PLUGIN = """
from edgeflare_operators import operator

@operator("scatter")
def scatter(image, rng):
    mutant = image.copy()
    mutant.flat[rng.integers(image.size, size=40)] = rng.integers(256, size=40)
    return mutant
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a package is installed that has one operator in one file."""
    return install_plugin(
        tmp_path_factory.mktemp("plugin"),
        "scattering",
        PLUGIN,
        {"edgeflare.operators": {"scatter": "scattering"}},
    )


@pytest.fixture
def installed(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the package for the processes that are started."""
    monkeypatch.setenv("PYTHONPATH", str(plugin))


def test_the_list_names_what_is_built_in(call: Callable[..., Any]) -> None:
    said = call("operators")
    assert said.code == 0
    lines = [line.split() for line in said.out.splitlines() if line.startswith("pixel-change")]
    assert lines == [["pixel-change", name, "edgeflare_operators"] for name in ("frames", "image")]


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_the_list_names_an_installed_operator(start: Callable[..., Any]) -> None:
    listed = json.loads(start("operators", "--json").out)
    assert {"name": "scatter", "domain": "image", "package": "scattering"} in listed
    places = [(entry["domain"], entry["name"]) for entry in listed]
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_an_unknown_operator_is_answered_with_the_nearest(
    start: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    said = start("search", example, "--operators", "built-in,scater", "--out", tmp_path / "run")
    assert said.code == 2
    assert said.complaint() == "no image operator is named 'scater'; did you mean scatter?"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "strategy"),
    [("search", "dflare"), ("rank", "dflare-published"), ("bench", "donor")],
)
def test_operators_are_refused_where_none_would_be_drawn(
    call: Callable[..., Any], example: Path, tmp_path: Path, command: str, strategy: str
) -> None:
    options = ("--operators", "pixel-change", "--strategy", strategy, "--out", tmp_path / "out")
    said = call(command, example, *options)
    assert said.code == 2
    assert f"{strategy} cannot draw from chosen operators: leave the option out" in said.complaint()


@pytest.mark.slow
def test_an_installed_operator_changes_a_search_only_when_it_is_asked_for(
    call: Callable[..., Any],
    start: Callable[..., Any],
    example: Path,
    plugin: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    options = ("--first", "3", "--max-queries", "100", "--shrink", "0", "--fail-on", "none")
    before = tmp_path / "before"
    assert call("search", example, *options, "--out", before).code == 0

    monkeypatch.setenv("PYTHONPATH", str(plugin))
    after, drawn = tmp_path / "after", tmp_path / "drawn"
    assert start("search", example, *options, "--out", after).code == 0
    assert result(after) == result(before)
    assert start("search", example, *options, "--out", before, "--resume").code == 0

    chosen = ("--operators", "scatter", "--out", drawn)
    assert start("search", example, *options, *chosen).code == 0
    plan, findings = result(drawn)
    assert plan["operators"] == ["scatter"]
    assert {name for one in findings for name in one["operators"]} == {"scatter"}

    said = start("search", example, *options, "--out", drawn, "--resume")
    assert said.code == 2
    assert "was begun with --operators scatter, not average-blur," in said.complaint()


def result(run: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was asked and what was found, without times."""
    document = json.loads((run / "run.json").read_bytes())
    assert document["findings"]
    findings = [
        {key: value for key, value in one.items() if key != "seconds"}
        for one in document["findings"]
    ]
    return document["plan"], findings
