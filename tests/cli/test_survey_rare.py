"""`edgeflare survey --rare` as a user calls it, on the example, with a small budget."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

from called_commands import call_here, completed, document_of, refused
from documents import Document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare.survey.presentation.survey_words import rare_sentences
from edgeflare.survey.rare_events.rare_phase import RARE_KEY
from edgeflare.survey.record.survey_document import read_survey
from edgeflare.survey.record.survey_plan import ENDED_KEY
from interrupted_commands import started

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
PLAIN = (
    *("survey", str(EXAMPLE), "--conditions", "contrast,brightness", "--severities", "1,5"),
    *("--first", "60", "--device-queries", "60", "--findings", "2"),
)
RARE = (*PLAIN, "--rare", "--rare-queries", "100")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A survey that came to its end, and what it said."""
    folder = tmp_path_factory.mktemp("surveyed") / "run"
    with started(*RARE, "--out", str(folder)) as process:
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "rare events 10/10" in err
    return folder, out


def survey_of(folder: Path) -> Document:
    """The document of a survey, without times."""
    document = document_of(folder, "survey.json")
    document["rare"] = document["rare"] and {**document["rare"], "seconds": None}
    return {**document, "seconds": None}


def test_what_was_found_is_written_and_said(surveyed: tuple[Path, str]) -> None:
    folder, out = surveyed
    document = survey_of(folder)
    rare = document["rare"]
    assert 0.0 < rare["low"] < rare["value"] < rare["high"] < rare["ceiling"] < 0.2
    assert 0.0 < rare["unseen_share"] < 1.0
    assert len(rare["repetitions"]) == 10
    assert rare["thresholds"] == sorted(rare["thresholds"], reverse=True)
    assert rare["host_queries"] > 10 * rare["device_queries"]
    assert document["plan"]["rare_queries"] == 100
    said = " ".join(rare_sentences(read_survey(RunDirectory(folder))))
    assert f"Rare events {said}" in " ".join(out.split())


def test_the_survey_beside_it_is_as_without_it(surveyed: tuple[Path, str], tmp_path: Path) -> None:
    with_it = survey_of(surveyed[0])
    completed(*PLAIN, "--out", tmp_path / "run")
    plain = survey_of(tmp_path / "run")
    assert plain["rare"] is None
    assert plain["plan"].pop("rare_queries") is None
    assert with_it["plan"].pop("rare_queries") == 100
    assert with_it["overall"]["deviation"]["seen"] > 0
    assert "rare events" not in with_it["sentence"]
    few, *others = [one for one in with_it["warnings"] if one not in plain["warnings"]]
    assert few.startswith("--rare-queries 100: so few tell little of rare events")
    assert plain == {**with_it, "rare": None, "warnings": plain["warnings"]}
    assert others == []
    assert plain["device_queries"] == 60


def test_it_is_kept_and_not_asked_again(surveyed: tuple[Path, str]) -> None:
    before = document_of(surveyed[0], "survey.json")["rare"]
    said = completed(*RARE, "--out", surveyed[0], "--resume")
    assert "rare events 10/10" not in said.err
    assert document_of(surveyed[0], "survey.json")["rare"] == before


def test_stopped_and_killed_within_it_goes_on_to_the_same_result(
    surveyed: tuple[Path, str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for more, sent, code in (((), signal.SIGINT, 130), (("--resume",), signal.SIGKILL, -9)):
        with started(*RARE, "--out", str(folder), *more) as process:
            _await_rare_events(process.stderr)
            os.kill(process.pid, sent)
            process.communicate(timeout=200)
        assert process.returncode == code
        assert {ENDED_KEY, RARE_KEY} & _noted(folder / "run.db") == {ENDED_KEY}
        if sent == signal.SIGINT:
            stopped = survey_of(folder)
            assert (stopped["stopped_by"], stopped["rare"]) == ("interrupt", None)
            said = " ".join(call_here("report", folder).out.split())
            assert "Rare events They were asked for and are not estimated yet" in said
    completed(*RARE, "--out", folder, "--resume")
    assert survey_of(folder) == survey_of(surveyed[0])


def test_it_is_gone_on_with_as_it_was_begun(surveyed: tuple[Path, str]) -> None:
    for options, begun in (
        (PLAIN, "with --rare-queries 100, not without --rare-queries"),
        ((*PLAIN, "--rare"), "with --rare-queries 100, not 2000"),
    ):
        said = refused(*options, "--out", surveyed[0], "--resume")
        complaint = said
        assert f"was begun {begun}: repeat the command that began it" in complaint
        assert "--device-queries" not in complaint


def test_a_dry_run_says_what_it_takes(tmp_path: Path) -> None:
    said = completed(*RARE, "--out", tmp_path / "run", "--dry-run")
    assert "then rare events, about 100 device queries more, and at least about 45" in said.out


def test_so_few_queries_are_exceeded_by_the_least_of_each_shell(surveyed: tuple[Path, str]) -> None:
    rare = survey_of(surveyed[0])["rare"]
    shells = len(rare["thresholds"]) + 1
    checks = 1 + 1 + 10  # the input asked again before the pilot, after it, and after repetitions
    assert rare["device_queries"] == pytest.approx(45 * shells + checks, abs=25)
    assert rare["device_queries"] > 120


def _await_rare_events(stderr: IO[str] | None) -> None:
    """Read what a command says until it begins with rare events, which take it a few seconds."""
    assert stderr is not None
    for line in stderr:
        if line.startswith("rare events 0/"):
            return
    pytest.fail("the command ended before")


def _noted(path: Path) -> set[str]:
    """What a journal says of its run."""
    with closing(RunJournal.open(path)) as journal:
        return set(journal.about())
