"""`edgeflare survey` as a user calls it, on the example in sound."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import call_here, completed, document_of, refused
from documents import Document
from edgeflare.errors import InfrastructureError
from edgeflare.progress import ProgressDisplay
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.begin_or_resume import begin_run
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from laboratory import untimed

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "examples" / "spoken_words"
SURVEY = (
    *("survey", str(WORDS), "--conditions", "noise", "--severities", "1,3"),
    *("--device-queries", "400", "--findings", "4"),
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A survey that came to its end, and what it said."""
    folder = tmp_path_factory.mktemp("surveyed") / "run"
    said = completed(*SURVEY, "--out", folder)
    return folder, said.out


def documents(folder: Path) -> tuple[Document, Document]:
    """The documents of a run and of its survey, without times."""
    run, survey = (json.loads((folder / f"{name}.json").read_bytes()) for name in ("run", "survey"))
    return untimed(run), {key: value for key, value in survey.items() if key != "seconds"}


def test_a_survey_says_the_rate_and_what_it_took(surveyed: tuple[Path, str]) -> None:
    folder, out = surveyed
    _, survey = documents(folder)
    assert survey["asked"] == survey["device_queries"] == 400
    assert survey["stopped_by"] == "device-queries"
    assert survey["inputs"] == 100
    assert survey["plan"]["severities"] == [1, 3]
    rate = survey["overall"]["deviation"]
    assert 0.0 < rate["low"] <= rate["value"] <= rate["high"] < 0.2
    assert f"{100 * rate['value']:.2f} %" in out
    assert "may have been selected" in survey["warnings"][0]


def test_its_findings_are_those_of_a_run(surveyed: tuple[Path, str]) -> None:
    folder, _ = surveyed
    run, survey = documents(folder)
    assert run["strategy"] == "survey"
    assert len(survey["findings"]) == 4
    named = {
        (one["seed_id"], f"{one['condition']}:{one['severity']}") for one in survey["findings"]
    }
    assert named >= {(one["seed_id"], one["operators"][0]) for one in run["findings"]}
    replayed = folder.parent / "replayed"
    said = completed("replay", folder, "--out", replayed, code=1)
    assert document_of(replayed)["totals"]["findings"] == len(run["findings"])
    seed_id = run["findings"][0]["seed_id"]
    completed("explain", folder, str(seed_id), "--model-explorer")
    overlay = folder / "explain" / f"{seed_id:06d}.model-explorer"
    assert (overlay / "4-residual.json").is_file()
    exported = folder.parent / "finding.zip"
    said = call_here("export", folder, str(run["findings"][0]["seed_id"]), "--out", exported)
    assert (said.code, exported.is_file()) == (0, True)


def test_a_survey_that_was_killed_as_soon_as_it_had_a_journal_can_be_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*where: Any, **how: Any) -> None:
        _, journal = begin_run(*where, **how)
        journal.close()
        raise InfrastructureError("killed")

    short = (*SURVEY[:4], "--severities", "1", "--device-queries", "10", "--findings", "0")
    with monkeypatch.context() as patch:
        patch.setattr("edgeflare.survey.survey_run.begin_run", begin)
        completed(*short, "--out", tmp_path / "run", code=3)
    said = call_here("report", tmp_path / "run")
    assert "had answered all items (0 of 400): finish it with --resume" in said.complaint()
    (tmp_path / "run" / "survey.csv").write_text("the user's")
    completed(*short, "--out", tmp_path / "run", "--resume")
    assert documents(tmp_path / "run")[1]["asked"] == 10
    assert (tmp_path / "run" / "survey.csv").read_text() == "the user's"


def test_ctrl_c_leaves_a_survey_to_go_on_with(
    surveyed: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    show = ProgressDisplay.judged

    def interrupted(display: ProgressDisplay, done: int, total: int) -> None:
        show(display, done, total)
        patch.undo()
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(ProgressDisplay, "judged", interrupted)
        said = completed(*SURVEY, "--out", folder, code=130)
    assert "--resume goes on" in said.out
    assert document_of(folder)["stopped_by"] == "interrupt"
    completed(*SURVEY, "--out", folder, "--resume")
    assert documents(folder) == documents(surveyed[0])


def test_a_survey_that_ended_is_not_asked_again(surveyed: tuple[Path, str]) -> None:
    before = documents(surveyed[0])
    planned = completed(*SURVEY, "--out", surveyed[0], "--resume", "--dry-run")
    assert "the device 400: it has ended" in planned.out
    assert f"would go on with {surveyed[0]}; nothing was written" in planned.out
    assert documents(surveyed[0]) == before
    said = completed(*SURVEY, "--out", surveyed[0], "--resume")
    assert "since the survey had ended: the device queries that were allowed were sp" in said.out
    assert "since the survey had ended" not in surveyed[1]
    assert documents(surveyed[0]) == before


def test_a_dry_run_says_how_far_a_survey_has_come(tmp_path: Path) -> None:
    few = (*SURVEY[:6], "--findings", "0", "--out", tmp_path / "run")
    completed(*few, "--device-queries", "20")
    before = document_of(tmp_path / "run")
    said = completed(*few, "--device-queries", "40", "--resume", "--dry-run")
    assert "goes on: the host has answered 700 of 700 items, the device 20\n" in said.out
    assert document_of(tmp_path / "run") == before
    said_no = refused(*few, "--device-queries", "10", "--resume", "--dry-run")
    assert "with --device-queries 20, not 10" in said_no


def test_a_name_of_a_file_has_to_stand_for_what_it_stood_for(tmp_path: Path) -> None:
    file, run = tmp_path / "field.toml", tmp_path / "run"
    table = '[[conditions]]\ncondition = "{}"\nname = "cheap"\nseverities = [2]\n'
    file.write_text(table.format("quiet"))
    short = ("--first", "30", "--device-queries", "20", "--findings", "0")
    survey = ("survey", WORDS, "--conditions", file, *short)
    completed(*survey, "--out", run)
    file.write_text(table.format("narrow-band"))
    for name in ("survey.csv", "junit.xml"):
        write_atomically(run / name, b"of before")
    said = refused(*survey, "--out", run, "--resume")
    assert "was begun with --conditions cheap (quiet), not cheap (narrow-band)" in said
    said = refused(*survey, "--out", tmp_path / "now", "--baseline", run)
    assert f"the baseline {run} has other inputs under 'cheap' at severity 2" in said
    file.write_text(table.format("quiet"))
    said = refused(*survey, "--out", run, "--resume", "--baseline", run)
    assert "was begun without --baseline, not with --baseline" in said
    assert (run / "survey.csv").exists()
    completed(*survey, "--out", run, "--resume")
    assert not list(run.glob("*.csv")) + list(run.glob("*.xml"))


@pytest.mark.parametrize(
    ("gate", "code", "state"), [("rate<0.9 under noise", 0, "pass"), ("rate<0.009", 1, "open")]
)
def test_a_gate_decides_the_exit_code_and_is_read_of_the_journal(
    gate: str, code: int, state: str, tmp_path: Path
) -> None:
    """Gates of a set too, whose conditions the journal knows."""
    short = (*SURVEY[:6], "--device-queries", "300", "--findings", "2")
    said = call_here(*short, "--gate", gate, "--out", tmp_path / "run")
    assert said.code == code
    written = document_of(tmp_path / "run", "survey.json")
    (outcome,) = written["gates"]
    assert outcome["state"] == state
    assert (f"exit code 1: {gate} is undecided" in said.out) == (code == 1)
    (tmp_path / "run" / "survey.json").unlink()
    assert json.loads(call_here("report", tmp_path / "run", "--json").out) == written


def test_an_undecided_gate_is_decided_by_more_queries(tmp_path: Path) -> None:
    run = ("--gate", "rate<0.2", "--findings", "0", "--out", tmp_path / "run")
    first = completed(*SURVEY[:6], "--device-queries", "20", *run, code=1)
    said, to_type = "".join(first.out.split()), f"--out {tmp_path / 'run'} --resume"
    goes_on = f"the same command with {to_type} and a larger --device-queries goes on"
    assert "".join(goes_on.split()) in said
    completed(*SURVEY[:6], "--device-queries", "300", *run, "--resume")
    survey = document_of(tmp_path / "run", "survey.json")
    assert (survey["gates"][0]["state"], survey["asked"] > 20) == ("pass", True)
    (earlier,) = survey["plan"]["earlier"]
    assert (earlier["device_queries"], earlier["asked"]) == (20, 20)
    assert earlier["ended"] == "device-queries"
    assert "the survey had ended and went on" in survey["warnings"][-1]


def test_a_dry_run_says_what_it_would_take(tmp_path: Path) -> None:
    said = completed(*SURVEY, "--out", tmp_path / "run", "--dry-run")
    assert "under 3 conditions in 6 cells of condition and severity: 700 items" in said.out
    assert "at most 400 device queries of about" in said.out
    assert "emulated-builtin: " in said.out
    assert "conditions white-noise,pink-noise,babble-noise; severities 1,3\n" in said.out
    assert "input sound: audio, sample_rate 8000" in said.out
    assert "of the first 64 inputs 64 are labelled; right on them: original " in said.out
    assert "of the first 64 inputs already deviate" in said.out
    assert "nothing was written" in said.out
    assert not (tmp_path / "run").exists()


def test_a_dry_run_says_what_would_end_the_survey(tmp_path: Path) -> None:
    asked = ("--first", "30", "--conditions", "white-noise", "--severities", "2", "--dry-run")
    ends = ("--gate", "rate<0.1 under noise", "--gate", "kernel-rate<0.2", "--precision", "0.02")
    said = completed(
        "survey", WORDS, *asked, *ends, "--time-limit", "90", "--out", tmp_path / "run"
    )
    assert (
        "asked until each gate is decided: rate<0.1 under noise (of noise only white-noise);"
        " kernel-rate<0.2" in said.out
    )
    assert "until the over-all rate is known to ±2 points" in said.out
    assert "asked for 90 s at most" in said.out
    assert "under 1 condition in 1 cell of condition and severity: 60 items" in said.out
    one = call_here("survey", WORDS, "--conditions", "none", "--device-queries", "1", "--dry-run")
    assert "100 inputs as they are: 100 items" in one.out
    assert "at most 1 device query of about" in one.out


def test_conditions_are_shown_without_a_survey(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.html"
    said = call_here(*SURVEY, "--show", sheet)
    assert (said.code, said.out.strip()) == (0, str(sheet))
    assert "white-noise" in sheet.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [sheet]


def test_groups_of_inputs_are_compared(tmp_path: Path) -> None:
    with np.load(WORDS / "seeds.npz") as arrays:
        known: dict[str, Any] = {name: arrays[name] for name in arrays}
    known["speaker"] = np.array(["high", "low"])[np.arange(len(known["labels"])) % 2]
    np.savez(tmp_path / "inputs.npz", **known)
    short = ("survey", WORDS, "--conditions", "white-noise", "--severities", "5")
    inputs = ("--inputs", tmp_path / "inputs.npz", "--groups", "speaker", "--findings", "0")
    completed(*short, *inputs, "--gate", "rate<0.9 for group low", "--out", tmp_path / "run")
    _, survey = documents(tmp_path / "run")
    assert "high" in json.dumps(survey["groups"])
    assert survey["plan"]["groups"] == "speaker"
    assert not [line for line in survey["warnings"] if "may have been selected" in line]


def test_surveys_are_not_compared_as_searches(surveyed: tuple[Path, str]) -> None:
    said = refused("compare", surveyed[0], surveyed[0])
    assert f"{surveyed[0]} is a survey" in said
    assert f"--baseline {surveyed[0]}" in said
    said = refused("search", WORDS, "--out", surveyed[0], "--resume")
    assert "holds a survey, and no search: `edgeflare survey` goes on with it" in said


def test_a_baseline_says_what_has_changed(surveyed: tuple[Path, str], tmp_path: Path) -> None:
    other = (*SURVEY[:6], "--device", "emulated-xnnpack", "--findings", "0")
    completed(*other, "--out", tmp_path / "run", "--baseline", surveyed[0])
    _, survey = documents(tmp_path / "run")
    overall, conditions = survey["baseline"]["overall"], survey["baseline"]["by_condition"]
    (asked, now), (asked_before, before) = answers(tmp_path / "run"), answers(surveyed[0])
    both = asked & asked_before
    only_now, only_before = both & now - before, both & before - now
    assert only_now | only_before  # the kernels of the two devices do differ somewhere
    counts = {"both": len(both), "only_now": len(only_now), "only_before": len(only_before)}
    assert {key: overall[key] for key in counts} == counts
    for key, count in counts.items():
        assert sum(one[key] for one in conditions) == count


def test_a_baseline_is_not_written_over(surveyed: tuple[Path, str], tmp_path: Path) -> None:
    before = documents(surveyed[0])
    alias = tmp_path / "alias"
    alias.symlink_to(surveyed[0])
    assert f"{surveyed[0]} is the baseline, and would be written over" in refused(
        *SURVEY, "--baseline", alias, "--out", surveyed[0], "--overwrite"
    )
    assert documents(surveyed[0]) == before


def answers(folder: Path) -> tuple[set[int], set[int]]:
    """The changed items that the device was asked about, and those that deviate."""
    with closing(RunJournal.open(RunDirectory(folder).journal)) as journal:
        rows = [row for row in journal.survey.device() if row.item >= 100]
    deviating = {row.item for row in rows if row.deviates}
    return {row.item for row in rows}, deviating
