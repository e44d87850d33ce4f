"""A forked command is what a started one is: answers, surroundings, exit codes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forked_commands import forked_edgeflare

pytestmark = pytest.mark.slow

SECONDS = 300.0


def answer(*command: str | Path, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_it_answers_as_a_started_one(tmp_path: Path) -> None:
    started = (sys.executable, "-m", "edgeflare")
    for words in (("strategies", "--json"), ("search", "nothing")):
        forked = answer(forked_edgeflare(), *words, cwd=tmp_path)
        assert forked == answer(*started, *words, cwd=tmp_path)


def test_it_has_the_folder_and_the_environment_of_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "device_profiles").mkdir()
    (tmp_path / "device_profiles" / "mine.toml").write_text('extends = "emulated-builtin"\n')
    mine = tmp_path / "home" / ".config" / "edgeflare" / "devices"
    mine.mkdir(parents=True)
    (mine / "at-home.toml").write_text('extends = "emulated-builtin"\n')
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _, out, _ = answer(forked_edgeflare(), "devices", "list", cwd=tmp_path)
    assert "mine" in out
    assert "at-home" in out


def test_it_ends_by_the_signals_of_its_program(tmp_path: Path) -> None:
    store = ("--store", tmp_path / "models")
    command: list[str | Path] = [forked_edgeflare(), "agent", "serve", "--port", "0", *store]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        agent = json.loads(process.stdout.readline())["pid"]
        assert agent != process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(agent, 0)


def test_where_there_are_packages_beside_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('started')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert answer(forked_edgeflare(), "--version", cwd=tmp_path)[1].startswith("started\n")
