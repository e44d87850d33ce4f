"""`edgeflare survey --fleet`: as it is without, and gone on with.

The cluster alone is stood in for, so that the tests need no Ray: each attempt is made in its turn.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from attempts_in_memory import BegunAttempt
from attempts_of_this_process import AttemptsHere, attempts_here, made_attempt
from called_commands import call_here
from documents import Document
from edgeflare.fleet.work.unit_attempt import AttemptResult
from laboratory import untimed

ROOT = Path(__file__).parents[2]
QUESTION = (
    *("survey", str(ROOT / "examples" / "spoken_words"), "--conditions", "noise"),
    *("--severities", "1", "--device-queries", "150", "--findings", "2"),
    *("--device", "emulated-builtin"),
)

pytestmark = pytest.mark.slow


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AttemptsHere:
    return attempts_here(monkeypatch, tmp_path / "cache")


def documents(folder: Path) -> tuple[Document, Document]:
    """The documents of a run and of its survey, without times."""
    run, survey = (json.loads((folder / f"{name}.json").read_bytes()) for name in ("run", "survey"))
    return untimed(run), {key: value for key, value in survey.items() if key != "seconds"}


def stopped(attempt: BegunAttempt) -> AttemptResult:
    """End an attempt before it has anything, and the command with it, as Ctrl-C does."""
    del attempt
    os.kill(os.getpid(), signal.SIGINT)
    return AttemptResult(130, "", None, 0.0)


def test_a_survey_on_a_fleet_is_that_of_one_device(tmp_path: Path, attempts: AttemptsHere) -> None:
    alone, out = tmp_path / "alone", tmp_path / "run"
    here = call_here(*QUESTION, "--out", alone)
    there = call_here(*QUESTION, "--fleet", "local", "--out", out)
    assert (there.code, here.code) == (0, 0)
    assert documents(out) == documents(alone)
    assert str(out) in there.out
    assert attempts.units() == ["emulated-builtin"]

    # A survey that was to be replaced is not taken for the result.
    attempts.outcome = stopped
    again = (*QUESTION, "--rng-seed", "5", "--fleet", "local", "--out", out)
    assert call_here(*again, "--overwrite").code == 130
    attempts.outcome = made_attempt
    assert call_here(*again, "--resume").code == 0
    assert attempts.begun[-1].backup is None
    assert documents(out)[0]["rng_seed"] == 5
    made = (out / "survey.json").read_bytes()

    # Nor is one written over that somebody has made there meanwhile.
    assert call_here(*QUESTION, "--out", out, "--overwrite").code == 0
    said = call_here(*again, "--resume")
    assert (said.code, "not as the fleet left it" in said.complaint()) == (2, True)
    assert (out / "survey.json").read_bytes() != made
