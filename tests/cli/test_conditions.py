"""The list of conditions, and those of another package: seen, and never imported unasked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugin_package import install_plugin

PLUGIN = """
from edgeflare.conditions.condition import condition

@condition("rain", domain="audio", sets=("weather",), summary="drops on the [bold]case\\x1b[31m")
def rain(one, severity, rng):
    return one.copy()
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a package is installed that has one condition in one file."""
    return install_plugin(
        tmp_path_factory.mktemp("plugin"),
        "raining",
        PLUGIN,
        {"edgeflare.conditions": {"rain": "raining"}},
    )


def listed(said: Any) -> list[dict[str, Any]]:
    assert said.code == 0
    rows: list[dict[str, Any]] = json.loads(said.out)
    return rows


def test_the_list_names_what_is_there(call: Callable[..., Any]) -> None:
    said = call("conditions")
    assert said.code == 0
    assert [line.split()[:2] for line in said.out.splitlines() if line.startswith("drift")] == [
        ["drift", "array"]
    ]
    rows = listed(call("conditions", "--json"))
    assert set(rows[0]) == {"name", "domain", "sets", "summary"}
    assert {"array", "audio", "frames"} <= {one["domain"] for one in rows}


def test_a_domain_a_set_or_a_name_is_listed_alone(call: Callable[..., Any]) -> None:
    assert {one["domain"] for one in listed(call("conditions", "array", "--json"))} == {"array"}
    members = listed(call("conditions", "microphone", "--json"))
    assert members
    assert all("microphone" in one["sets"] for one in members)
    (one,) = listed(call("conditions", "pink-noise", "--json"))
    assert one["name"] == "pink-noise"


@pytest.mark.parametrize(
    ("which", "complaint"),
    [
        ("pinknoise", "no condition, set or domain 'pinknoise' (did you mean 'pink-noise'?)"),
        ("zzz", "'zzz': `edgeflare conditions` lists all"),
        ("tokens", "there are no conditions of the domain tokens"),
    ],
)
def test_what_is_not_there_is_said(call: Callable[..., Any], which: str, complaint: str) -> None:
    said = call("conditions", which)
    assert said.code == 2
    assert complaint in said.complaint()


@pytest.mark.slow
def test_a_condition_of_another_package_is_listed_behind_ours_and_is_only_text(
    start: Callable[..., Any], plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(plugin))
    rows = listed(start("conditions", "audio", "--json"))
    assert [one["name"] for one in rows][-1] == "rain"
    said = start("conditions", "weather")
    assert "[bold]case" in said.out
    assert "\x1b" not in said.out


@pytest.mark.slow
def test_a_package_that_does_not_load_is_named_and_ours_are_listed(
    start: Callable[..., Any], plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raining.py").write_text("import no_such_module")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{plugin}")
    said = start("conditions", "audio", "--json")
    assert "pink-noise" in [one["name"] for one in listed(said)]
    assert said.err == (
        "warning: conditions 'rain' of package raining: they do not load (ModuleNotFoundError: No"
        " module named 'no_such_module'); correct or uninstall the package\n"
    )
