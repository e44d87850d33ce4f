"""Commands that take a conformance run: `report`, `export` and `replay`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformed_runs import (
    conformed_run,
    constructed_conformance,
    finding_entry,
    run_with_files,
)
from edgeflare.conform.findings.known_findings import read_known
from edgeflare.conform.record.conform_file import read_conformance
from edgeflare.run.run_directory import RunDirectory
from made_once import made_once
from reproductions import reproduce, unpacked

Call = Callable[..., Any]

WRITTEN = {
    "--html": ("conform.html", b"<!doctype html>"),
    "--junit": ("junit.xml", b"<?xml"),
    "--summary": ("summary.md", b"## EdgeFlare kernel conformance: board"),
    "--known": ("known.toml", b"[[known]]"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run on a device that nobody here has."""
    return conformed_run(tmp_path / "run").path


@pytest.fixture
def found(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A copy of a run with the files of two findings."""
    stored = made_once(tmp_path_factory, "run_of_findings", run_with_files)
    return shutil.copytree(stored, tmp_path / "found")


def test_without_a_switch_the_run_is_shown(call: Call, run: Path) -> None:
    said = call("report", run)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("board (tflite-runtime 2.14.0, builtin): 1 fault in 1 operator")
    assert said.out.endswith(f"see it: edgeflare report {run} --html\n")


@pytest.mark.parametrize("switch", WRITTEN)
def test_a_switch_writes_its_file_and_says_which(call: Call, run: Path, switch: str) -> None:
    name, start = WRITTEN[switch]
    said = call("report", run, switch)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [str(run / name)]
    assert (run / name).read_bytes().lstrip().startswith(start)


def test_json_is_the_document_itself(call: Call, run: Path) -> None:
    assert json.loads(call("report", run, "--json").out) == constructed_conformance()


def test_known_toml_names_what_counts_as_it_is_read_again(call: Call, tmp_path: Path) -> None:
    findings = [
        finding_entry(detail='a "quoted" detail\x7f'),
        finding_entry(2, known="a vendor's", condition=[]),
        finding_entry(3, verdict="shared", counted=False),
        finding_entry(4, operator="ADD then RELU", condition=[]),
    ]
    run = conformed_run(tmp_path, constructed_conformance(findings)).path
    assert call("report", run, "--known").code == 0
    first, second, joined = read_known(run / "known.toml")
    assert (first.operator, first.type, first.verdict) == ("ADD", "uint8", "device")
    assert first.condition == ("size ≥ 8", "sum_ratio_log2 ≥ 7")
    assert first.reason.startswith("found on board tflite-runtime 2.14.0 builtin: a")
    assert (second.reason, second.condition) == ("a vendor's", ())
    assert (joined.operator, joined.condition) == ("ADD then RELU", ())


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        (("--csv",), "--csv has nothing to write of a conformance run"),
        (("--html", "--csv"), "say --html, --junit, --summary or --known"),
        (("--json", "--html"), "give --json alone"),
    ],
)
def test_what_cannot_be_written_is_refused(
    call: Call, run: Path, switches: tuple[str, ...], said: str
) -> None:
    answer = call("report", run, *switches)
    assert (answer.code, said in answer.complaint()) == (2, True)
    assert {path.name for path in run.iterdir()} == {"conform.json"}


def test_known_is_for_conformance_runs_alone(call: Call, finished: Any) -> None:
    answer = call("report", finished.folder, "--known")
    assert answer.code == 2
    assert "--known has nothing to write of a search or a replay" in answer.complaint()


def test_a_damaged_document_is_a_line(call: Call, run: Path) -> None:
    (run / "conform.json").write_text("{}")
    for command in (("report", run), ("export", run, "1"), ("replay", run)):
        answer = call(*command)
        assert (answer.code, "is not of the schema" in answer.complaint()) == (2, True)


@pytest.mark.slow
def test_a_finding_is_exported_and_shows_by_itself(call: Call, found: Path, tmp_path: Path) -> None:
    said = call("export", found, "1")
    assert (said.code, said.err) == (0, "")
    path, *files, last = said.out.splitlines()
    assert path == str(found / "finding-1.zip")
    assert [one.split()[-1] for one in files] == [
        "finding.json", "model.tflite", "reproduce.py", "values.npz",
    ]  # fmt: skip
    assert last == "4 files; unpack it, and type: python reproduce.py"
    assert reproduce(unpacked(found / "finding-1.zip", tmp_path / "one")).returncode == 0
    quiet = call("export", found, "findings/000001.tflite", "--quiet")
    assert (quiet.out, quiet.err) == (f"{path}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("7", "has no finding 7: it has those from 1 to 1"),
        ("first", "first is no finding: name it by its number, as reports show it"),
        ("1 --no-models", "--no-models is for what a search or a survey found"),
        ("1 --original model.tflite", "leave --original out"),
        ("1 --compressed model.tflite", "leave --compressed out"),
        ("1 --function front:end", "leave --function out"),
        ("1", "gone or damaged"),
    ],
)
def test_an_export_that_makes_no_sense_is_refused(
    call: Call, run: Path, arguments: str, said: str
) -> None:
    answer = call("export", run, *arguments.split())
    assert (answer.code, said in answer.complaint()) == (2, True), answer
    assert {path.name for path in run.iterdir()} == {"conform.json"}


@pytest.mark.slow
def test_a_replay_says_what_still_fails_and_keeps_it(
    call: Call, found: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    said = call("replay", found, "--out", out)
    assert (said.code, said.err.strip()) == (1, "")
    lines = [line.strip() for line in said.out.splitlines()]
    assert lines[0] == "emulated-builtin: findings that fail: 1 of 2, mended: 1"
    assert lines.index("Still fails") < lines.index("Mended")
    assert lines[-1] == f"What fails is kept in {out}"
    document = read_conformance(RunDirectory(out))
    (still,) = document["findings"]
    before = read_conformance(RunDirectory(found))["findings"][0]
    for key in ("number", "operator", "type", "verdict", "symptom", "condition", "known"):
        assert still[key] == before[key]
    assert (still["failing"], document["models"]) == (1, 2)
    assert "replay of 2 findings" in document["warnings"][0]
    assert call("report", out).code == 0
    assert call("export", out, "1").code == 0
    assert call("replay", out, "--out", tmp_path / "third").code == 1


@pytest.mark.slow
def test_a_replay_elsewhere_mends_what_other_kernels_do_right(
    call: Call, found: Path, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "again")
    said = call("replay", found, "--device", "emulated-reference", *out)
    assert said.code == 0, said
    assert said.out.startswith("emulated-reference: findings that fail: 0 of 2, mended: 2")
    document = read_conformance(RunDirectory(tmp_path / "again"))
    assert (document["findings"], document["device"]["kernels"]) == ([], "reference")
    quiet = call("replay", found, *out, "--overwrite", "--quiet")
    assert (quiet.code, quiet.out) == (1, f"{tmp_path / 'again'}\n")


@pytest.mark.slow
def test_what_is_known_does_not_fail_a_replay(call: Call, found: Path, tmp_path: Path) -> None:
    document = json.loads((found / "conform.json").read_bytes())
    document["findings"][0]["known"] = "a vendor's"
    (found / "conform.json").write_text(json.dumps(document))
    said = call("replay", found, "--out", tmp_path / "again")
    assert (said.code, "known: a vendor's" in said.out) == (0, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--compressed model.tflite", "--compressed is for what a search or a survey found"),
        ("--original model.tflite", "leave --original out"),
        ("--function front:end", "leave --function out"),
        ("--baseline runs/other", "leave --baseline out"),
        ("--fail-on harmful", "leave --fail-on harmful out"),
        ("--resume", "leave --resume out"),
        ("--device emulated-builtin --device emulated-reference", "give --device once"),
        ("--device emulated-bultin", "emulated-builtin"),
        ("--out {found}", "is what is replayed: name another --out"),
        ("--out {other}", "is neither empty nor a run"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(
    call: Call, found: Path, tmp_path: Path, options: str, said: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").touch()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    answer = call("replay", found, *options.format(found=found, other=other).split())
    assert (answer.code, said in answer.complaint()) == (2, True), answer
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


def test_a_device_of_somebody_else_has_to_be_named_again(call: Call, found: Path) -> None:
    document = json.loads((found / "conform.json").read_bytes())
    document["device"]["name"] = "board"
    (found / "conform.json").write_text(json.dumps(document))
    answer = call("replay", found)
    assert (answer.code, "name it again with --device board" in answer.complaint()) == (2, True)


def test_a_run_that_found_nothing_has_nothing_to_try(call: Call, tmp_path: Path) -> None:
    run = conformed_run(tmp_path, constructed_conformance([])).path
    for command in (("replay", run), ("export", run, "1")):
        answer = call(*command)
        assert (answer.code, "found nothing" in answer.complaint()) == (2, True)
