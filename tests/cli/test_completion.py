"""What a shell completes, asked as it asks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Return what completes the last word of a command line, as in bash."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_EDGEFLARE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        said = call()
        assert said.err == ""
        words: list[str] = said.out.splitlines()
        return words

    return complete


def test_commands_and_options(complete: Complete) -> None:
    assert complete("edgeflare rep") == ["replay", "repair", "report"]
    assert complete("edgeflare search --fail") == ["--fail-on"]


@pytest.mark.parametrize(
    "before",
    [
        "search pair --device",
        "bench pair --device",
        "replay run --device",
        "explain run --device",
        "devices check",
        "agent install --device",
    ],
)
def test_devices_shipped_and_of_ones_own(
    before: str, complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "device_profiles").mkdir()
    (tmp_path / "device_profiles" / "emulated-mine.toml").write_text('extends = "emulated-builtin"')
    (tmp_path / "device_profiles" / "emulated-broken.toml").write_text("threads = 0")
    assert complete(f"edgeflare {before} emulated-") == [
        *("emulated-all", "emulated-builtin", "emulated-builtin-slow", "emulated-compiled-cpu"),
        *("emulated-gpu", "emulated-micro", "emulated-mine"),
        *("emulated-reference", "emulated-xnnpack"),
    ]
    assert complete(f"edgeflare {before} ss") == ["ssh://"]


@pytest.mark.parametrize("before", ["search --strategy", "bench --strategy", "rank --strategy"])
def test_strategies(before: str, complete: Complete) -> None:
    assert complete(f"edgeflare {before} boundary") == ["boundary", "boundary-mh"]


def test_parameters_of_the_strategy_that_was_chosen(complete: Complete) -> None:
    assert complete("edgeflare search pair --set first") == ["first_leap="]
    assert complete("edgeflare search pair --strategy diffchaser --set po") == ["population="]
    assert complete("edgeflare search pair --strategy random --set po") == [""]


@pytest.mark.parametrize("before", ["report", "explain", "compare one", "replay run --baseline"])
def test_run_directories_and_no_others(
    before: str, complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        *("runs/first/run.db", "runs/second/run.json", "runs/third/conform.db"),
        "runs/no-run/report.html",
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert complete(f"edgeflare {before} ru") == ["runs/first", "runs/second", "runs/third"]
    assert complete(f"edgeflare {before} runs/f") == ["runs/first"]
    assert complete(f"edgeflare {before} runs/[f]") == [""]


@pytest.mark.slow
def test_bash_completes_with_what_is_shown_for_it() -> None:
    edgeflare = Path(sys.executable).with_name("edgeflare")
    script = """
        eval "$("$0" --show-completion bash)"
        COMP_WORDS=(edgeflare search pair --device emulated-r) COMP_CWORD=4
        _edgeflare_completion "$0"
        echo "${COMPREPLY[*]}"
    """
    done = subprocess.run(
        ["bash", "-c", script, edgeflare], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "emulated-reference\n"
    assert done.stderr == ""
