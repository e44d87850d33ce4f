"""Strategies, operators, conditions and transports, ours and those of other packages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from called_commands import EXAMPLE, SMALL, Said, call_here, completed, document_of, refused
from edgeflare.conditions import condition_registry
from edgeflare.strategies import strategy_registry
from edgeflare.strategies.strategy import Strategy
from plugin_package import install_plugin
from transport_packages import NICE, installed

Call = Callable[..., Said]

STRATEGY = """
from dataclasses import dataclass

import numpy as np

from edgeflare.core.query import Query
from edgeflare.core.goal import Trigger
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_parameters import parameter

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
    points = {
        "darken": "my_package:Darken",
        "nothing": "my_package:Nothing",
        "random": "my_package:Darken",
    }
    source = STRATEGY + example_of_the_base_class() + TWICE
    install_plugin(tmp_path, "my_package", source, {"edgeflare.strategies": points})
    monkeypatch.syspath_prepend(tmp_path)
    caches = strategy_registry._entries, strategy_registry._loaded
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("darken")
def test_a_strategy_of_another_package_is_listed_after_the_built_in_ones() -> None:
    said = completed("strategies")
    names = [line.split()[0] for line in said.out.splitlines() if line[0] not in " ─"]
    assert names[:2] == ["name", "boundary"]
    assert names[-4:] == ["pgd", "darken", "random", "nothing"]
    assert "take away gray levels until the decisions differ" in said.out
    text = " ".join(said.out.split())
    assert "strategy 'nothing' of package my-package: my_package:Nothing has no method" in text
    assert "another package has a strategy of that name" in text


@pytest.mark.usefixtures("darken")
def test_a_strategy_of_another_package_is_shown_with_its_parameters() -> None:
    said = completed("strategies", "darken")
    assert "Darken the seed until the compared arms disagree." in said.out
    assert "step = 1  (a whole number, at least 1)" in said.out
    assert "Gray levels that each query takes away." in said.out
    assert json.loads(completed("strategies", "darken", "--json").out) == {
        "name": "darken",
        "summary": "take away gray levels until the decisions differ",
        "parameters": [
            {
                "name": "step",
                "default": 1,
                "by_task": {},
                "expected": "a whole number, at least 1",
                "description": "Gray levels that each query takes away.",
            }
        ],
    }
    *_, darken, taken, nothing = json.loads(completed("strategies", "--json").out)
    assert darken == {"name": "darken", "summary": darken["summary"]}
    assert [one["name"] for one in (taken, nothing)] == ["random", "nothing"]
    assert "has no method search" in nothing["complaint"]
    assert "has no method search; correct or uninstall the package" in refused(
        "strategies", "nothing"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("darken")
def test_a_strategy_of_another_package_searches_with_what_is_set(tmp_path: Path) -> None:
    search = ("search", EXAMPLE, "--strategy", "darken", "--max-queries", "40", "--first", "3")
    rest = ("--shrink", "0", "--fail-on", "none", "--out", tmp_path / "run")
    set_ = ("--set", "step=7")
    completed(*search, *rest, *set_)
    document = document_of(tmp_path / "run")
    assert document["plan"]["parameters"] == {"step": 7}
    assert document["strategy"] == "darken"
    # 255 gray levels are gone after 37 steps of 7, and not within 40 of 1.
    assert 0 < document["totals"]["queries"] <= 3 * 37
    completed(*search, *rest, *set_, "--resume")
    for other, now in (((), "without --set"), (("--set", "step=8"), "step=8")):
        assert f"was begun with --set step=7, not {now}: repeat" in refused(
            *search, *rest, *other, "--resume"
        )


def test_a_built_in_strategy_is_shown_with_its_parameters() -> None:
    said = completed("strategies", "boundary")
    assert "Differences from the original" in said.out
    bounds = "a whole number, at least 1, at most 1000; 2 with the task transcript"
    assert f"first_leap = 10 ({bounds})" in " ".join(said.out.split())
    assert "max_leaps = 6  (a whole number, at least 1)" in said.out
    assert "step_length = 0.005  (a number, above 0)" in said.out
    assert "It has no parameters." in call_here("strategies", "random").out


@pytest.mark.slow
def test_a_bench_runs_with_what_is_set(tmp_path: Path) -> None:
    out = tmp_path / "bench"
    completed(
        *("bench", EXAMPLE, "--strategy", "boundary", "--strategy", "random", "--rng-seeds", "0"),
        *("--first", "2", "--max-queries", "10", "--set", "boundary.first_leap=4", "--out", out),
    )
    document = document_of(out, "bench.json")
    assert document["plan"]["parameters"] == {"boundary": {"first_leap": 4}}
    plans = {
        path.parent.name: json.loads(path.read_text())["plan"] for path in out.rglob("run.json")
    }
    assert plans["boundary-0"]["parameters"] == {"first_leap": 4}
    assert plans["random-0"]["parameters"] == {}


OPERATOR = """
from edgeflare_operators import operator

@operator("scatter")
def scatter(image, rng):
    mutant = image.copy()
    mutant.flat[rng.integers(image.size, size=40)] = rng.integers(256, size=40)
    return mutant
"""


@pytest.fixture(scope="module")
def scattering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a package is installed that has one operator in one file."""
    points = {"edgeflare.operators": {"scatter": "scattering"}}
    return install_plugin(tmp_path_factory.mktemp("plugin"), "scattering", OPERATOR, points)


def test_the_list_names_what_is_built_in() -> None:
    said = completed("operators")
    lines = [line.split() for line in said.out.splitlines() if line.startswith("pixel-change")]
    assert lines == [["pixel-change", name, "edgeflare_operators"] for name in ("frames", "image")]


@pytest.mark.slow
def test_an_installed_operator_is_listed_and_is_the_nearest_to_an_unknown_one(
    start: Call, scattering: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(scattering))
    listed = json.loads(start("operators", "--json").out)
    assert {"name": "scatter", "domain": "image", "package": "scattering"} in listed
    places = [(entry["domain"], entry["name"]) for entry in listed]
    assert places == sorted(places)
    said = start("search", EXAMPLE, "--operators", "built-in,scater", "--out", tmp_path / "run")
    assert said.code == 2
    assert said.complaint() == "no image operator is named 'scater'; did you mean scatter?"
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_an_installed_operator_changes_a_search_only_when_it_is_asked_for(
    start: Call, scattering: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = ("--first", "3", "--max-queries", "100", "--shrink", "0", "--fail-on", "none")
    before = tmp_path / "before"
    completed("search", EXAMPLE, *options, "--out", before)

    monkeypatch.setenv("PYTHONPATH", str(scattering))
    after, drawn = tmp_path / "after", tmp_path / "drawn"
    assert start("search", EXAMPLE, *options, "--out", after).code == 0
    assert result(after) == result(before)
    assert start("search", EXAMPLE, *options, "--out", before, "--resume").code == 0

    chosen = ("--operators", "scatter", "--out", drawn)
    assert start("search", EXAMPLE, *options, *chosen).code == 0
    plan, findings = result(drawn)
    assert plan["operators"] == ["scatter"]
    assert {name for one in findings for name in one["operators"]} == {"scatter"}

    said = refused("search", EXAMPLE, *options, "--out", drawn, "--resume")
    assert "was begun with --operators scatter, not average-blur," in said


def result(run: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was asked and what was found, without times."""
    document = document_of(run)
    assert document["findings"]
    findings = [
        {key: value for key, value in one.items() if key != "seconds"}
        for one in document["findings"]
    ]
    return document["plan"], findings


CONDITION = """
from edgeflare.conditions.condition import condition

@condition("rain", domain="audio", sets=("weather",), summary="drops on the [bold]case\\x1b[31m")
def rain(one, severity, rng):
    return one.copy()
"""


@pytest.fixture
def raining(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The module of an installed package that has one condition in one file."""
    install_plugin(tmp_path, "raining", CONDITION, {"edgeflare.conditions": {"rain": "raining"}})
    monkeypatch.syspath_prepend(tmp_path)
    condition_registry._others.cache_clear()
    yield tmp_path / "raining.py"
    condition_registry._others.cache_clear()
    sys.modules.pop("raining", None)


def listed(said: Said) -> list[dict[str, Any]]:
    assert said.code == 0
    rows: list[dict[str, Any]] = json.loads(said.out)
    return rows


def test_conditions_are_listed_by_domain_set_or_name() -> None:
    said = completed("conditions")
    assert [line.split()[:2] for line in said.out.splitlines() if line.startswith("drift")] == [
        ["drift", "array"]
    ]
    rows = listed(call_here("conditions", "--json"))
    assert set(rows[0]) == {"name", "domain", "sets", "summary"}
    assert {"array", "audio", "frames"} <= {one["domain"] for one in rows}

    assert {one["domain"] for one in listed(call_here("conditions", "array", "--json"))} == {
        "array"
    }
    members = listed(call_here("conditions", "microphone", "--json"))
    assert members
    assert all("microphone" in one["sets"] for one in members)
    (one,) = listed(call_here("conditions", "pink-noise", "--json"))
    assert one["name"] == "pink-noise"


@pytest.mark.usefixtures("raining")
def test_a_condition_of_another_package_is_listed_behind_ours_and_is_only_text() -> None:
    rows = listed(call_here("conditions", "audio", "--json"))
    assert [one["name"] for one in rows][-1] == "rain"
    said = completed("conditions", "weather")
    assert "[bold]case" in said.out
    assert "\x1b" not in said.out


def test_a_package_that_does_not_load_is_named_and_ours_are_listed(raining: Path) -> None:
    raining.write_text("import no_such_module")
    said = call_here("conditions", "audio", "--json")
    assert "pink-noise" in [one["name"] for one in listed(said)]
    assert said.err == (
        "warning: conditions 'rain' of package raining: they do not load (ModuleNotFoundError: No"
        " module named 'no_such_module'); correct or uninstall the package\n"
    )


@pytest.fixture
def nice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the package, with a profile for it in the working directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "device_profiles"
    folder.mkdir()
    (folder / "background.toml").write_text('transport = "nice"\nniceness = 3\n')
    with installed(tmp_path / "site", NICE):
        yield


@pytest.mark.usefixtures("nice")
def test_devices_of_another_packages_transport_are_listed_with_their_states(tmp_path: Path) -> None:
    assert "background ? not trusted" in " ".join(call_here("devices").out.split())
    kept = tmp_path / "home" / ".config" / "edgeflare" / "devices"
    kept.parent.mkdir(parents=True)
    (tmp_path / "device_profiles").rename(kept)
    rows = [" ".join(line.split()) for line in call_here("devices").out.splitlines()]
    assert "background nice at level 3" in rows  # so that nice://3 has no row of its own
    assert [row for row in rows if row.startswith("nice://")] == ["nice://4 nice at level 4"]


@pytest.mark.slow
@pytest.mark.usefixtures("nice")
def test_a_profile_of_such_a_transport_is_tried() -> None:
    assert 'uses the transport "nice"' in refused("devices", "check", "background")
    checked = completed("devices", "check", "background", "--trust")
    assert "background is ready: it ran a model of one layer" in checked.out
    shown = json.loads(call_here("devices", "show", "background").out)
    assert (shown["profile"]["niceness"], shown["device"]["transport"]) == (3, "nice")
    assert "options" not in shown["profile"]


@pytest.mark.usefixtures("nice")
def test_nothing_is_installed_on_devices_of_such_a_transport() -> None:
    said = refused("agent", "install", "--device", "nice://3")
    assert said.endswith(
        'nothing is installed on a device of transport = "nice"; name one that is reached by adb://'
        " or ssh://"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("nice")
def test_a_search_runs_on_such_a_transport(tmp_path: Path) -> None:
    run = tmp_path / "run"
    completed(
        "search", str(EXAMPLE), "--device", "nice://5", *SMALL, "--fail-on", "none", "--out", run
    )
    (device,) = document_of(run)["devices"]
    assert (device["name"], device["provenance"]["transport"]) == ("nice://5", "nice")
