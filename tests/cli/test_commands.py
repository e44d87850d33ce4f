"""The commands beside search."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import edgeflare
from documents import as_json
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from laboratory import untimed


@pytest.mark.slow
def test_the_version(start: Callable[..., Any], call: Callable[..., Any]) -> None:
    for said in (start("--version", command=("-m", "edgeflare")), call("--version")):
        assert said.code == 0
        assert said.out == f"edgeflare {edgeflare.__version__}\n"
        assert said.err == ""


def test_without_a_command_the_help_is_shown(call: Callable[..., Any]) -> None:
    said = call()
    assert said.code == 2
    assert "search" in said.out
    assert said.err == ""


def test_the_help_tells_the_exit_codes_of_all_commands(call: Callable[..., Any]) -> None:
    text = " ".join(call("--help").out.split())
    assert "Exit codes of all commands: 0 done" in text
    assert "130 Ctrl-C" in text
    for command in ("search", "explain", "replay", "export", "report"):
        assert "Exit codes: 0" in call(command, "--help").out


def test_the_help_of_search_teaches_every_option(call: Callable[..., Any]) -> None:
    said = call("search", "--help")
    assert said.code == 0
    for option in ("--find", "--ties", "--fail-on", "--allow", "--min-strength", "--resume"):
        assert option in said.out


def test_the_devices_are_listed(call: Callable[..., Any]) -> None:
    said = call("devices", "list")
    assert said.code == 0
    for name in ("xnnpack", "builtin", "reference", "builtin-slow"):
        assert f"emulated-{name}" in said.out


def test_a_device_is_shown(call: Callable[..., Any]) -> None:
    said = call("devices", "show", "emulated-reference")
    assert said.code == 0
    shown = json.loads(said.out)
    assert shown["profile"]["kernels"] == "reference"
    assert shown["device"]["runtime"] == "ai-edge-litert"
    assert shown["device"]["cores"] >= 1


def test_the_doctor_finds_what_the_tests_need(call: Callable[..., Any]) -> None:
    said = call("doctor")
    assert said.code == 0
    assert "ai-edge-litert" in said.out
    assert "agent, emulated" in said.out
    assert "MISSING" not in said.out


def test_a_finished_run_is_reported_as_it_was_at_its_end(
    call: Callable[..., Any], finished: Any
) -> None:
    said = call("report", finished.folder)
    assert said.code == 0
    assert said.err == ""
    told, verdict, _ = finished.said.out.partition("exit code 1: ")
    assert verdict
    assert said.out == told


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "edgeflare", "agent", "serve", "--store", str(tmp_path / "m")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_a_served_agent_does_a_whole_search_and_stops_on_ctrl_c(
    agent: subprocess.Popen[str],
    call: Callable[..., Any],
    example: Path,
    tmp_path: Path,
) -> None:
    assert agent.stdout is not None
    ready = json.loads(agent.stdout.readline())
    assert ready["pid"] == agent.pid

    search = (
        *("search", example, "--first", "6", "--strategy", "random", "--max-queries", "600"),
        *("--shrink", "0", "--within", "none"),
    )
    device = f"grpc://127.0.0.1:{ready['port']}"
    said = call(*search, "--out", tmp_path / "run", "--device", device)

    assert said.code == 1, said.err
    here = load_document(RunDirectory(tmp_path / "run"))
    assert here.devices[0].name == device
    assert here.devices[0].provenance["transport"] == "address"
    # A profile on the spot runs XNNPACK, as the shipped one of that name does.
    call(*search, "--out", tmp_path / "same", "--device", "emulated-xnnpack")
    there = load_document(RunDirectory(tmp_path / "same"))
    shas = [
        [entry["sha256"] for entry in untimed(as_json(run))["findings"]] for run in (here, there)
    ]
    assert shas[0] == shas[1]

    os.kill(agent.pid, signal.SIGINT)
    assert agent.wait(200) == 0


@pytest.mark.slow
def test_an_agent_that_may_not_listen_says_why(start: Callable[..., Any]) -> None:
    said = start("agent", "serve", "--host", "0.0.0.0")  # noqa: S104 - which is refused
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert "--tls-cert" in line


_SEARCH_OR_SURVEY = "directory of a search or a survey"


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        ("explain", _SEARCH_OR_SURVEY),
        ("inspect", _SEARCH_OR_SURVEY),
        ("replay", "directory of a search, a survey or a conformance run"),
        ("repair", _SEARCH_OR_SURVEY),
    ],
)
def test_the_help_of_what_takes_runs_names_them(
    command: str, takes: str, call: Callable[..., Any]
) -> None:
    text = " ".join(call(command, "--help").out.replace("│", " ").split())
    assert takes in text
