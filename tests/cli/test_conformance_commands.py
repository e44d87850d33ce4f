"""Commands that take a conformance run: `report`, `export` and `replay`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from called_commands import call_here, completed, document_of, refused
from conformed_runs import conformed_run, constructed_conformance, finding_entry, run_with_files
from edgeflare.conform.findings.accepted_findings import read_accepted
from edgeflare.conform.record.conform_document import read_conformance
from edgeflare.models.runtime_versions import installed_version
from edgeflare.run.run_directory import RunDirectory
from made_once import made_once
from reproductions import reproduce, unpacked


@pytest.fixture
def found(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A copy of a run with the files of two findings."""
    stored = made_once(tmp_path_factory, "run_of_findings", run_with_files)
    return shutil.copytree(stored, tmp_path / "found")


def test_known_toml_names_what_counts_as_it_is_read_again(tmp_path: Path) -> None:
    findings = [
        finding_entry(detail='a "quoted" detail\x7f'),
        finding_entry(2, accepted="a vendor's", condition=[]),
        finding_entry(3, verdict="shared", counted=False),
        finding_entry(4, operator="ADD then RELU", condition=[]),
    ]
    run = conformed_run(tmp_path, constructed_conformance(findings)).path
    completed("report", run, "--accepted")
    first, second, joined = read_accepted(run / "accepted.toml")
    assert (first.operator, first.type, first.verdict) == ("ADD", "uint8", "device")
    assert first.condition == ("size ≥ 8", "sum_ratio_log2 ≥ 7")
    assert first.reason.startswith("found on board tflite-runtime 2.14.0 builtin: a")
    assert (second.reason, second.condition) == ("a vendor's", ())
    assert (joined.operator, joined.condition) == ("ADD then RELU", ())


@pytest.mark.slow
def test_a_finding_is_exported_and_shows_by_itself(found: Path, tmp_path: Path) -> None:
    said = call_here("export", found, "1")
    assert (said.code, said.err) == (0, "")
    path, *files, last = said.out.splitlines()
    assert path == str(found / "finding-1.zip")
    assert [one.split()[-1] for one in files] == [
        "bug_report.md", "finding.json", "model.tflite", "reproduce.py", "values.npz",
    ]  # fmt: skip
    assert last == "5 files; unpack it, and type: python reproduce.py"
    assert reproduce(unpacked(found / "finding-1.zip", tmp_path / "one")).returncode == 0
    quiet = call_here("export", found, "findings/000001.tflite", "--quiet")
    assert (quiet.out, quiet.err) == (f"{path}\n", "")


@pytest.mark.slow
def test_a_replay_says_what_still_fails_and_keeps_it(found: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    said = call_here("replay", found, "--out", out)
    assert (said.code, said.err.strip()) == (1, "")
    lines = [line.strip() for line in said.out.splitlines()]
    assert lines[0] == "emulated-builtin: findings that fail: 1 of 2, mended: 1"
    assert lines.index("Still fails") < lines.index("Mended")
    assert lines[-1] == f"What fails is kept in {out}"
    document = read_conformance(RunDirectory(out))
    (still,) = document.findings
    before = read_conformance(RunDirectory(found)).findings[0]
    for key in ("number", "operator", "type", "verdict", "symptom", "condition", "accepted"):
        assert getattr(still, key) == getattr(before, key)
    assert (still.failing, document.models) == (1, 2)
    assert "replay of 2 findings" in document.warnings[0]
    completed("report", out)
    completed("export", out, "1")
    completed("replay", out, "--out", tmp_path / "third", code=1)


@pytest.mark.slow
def test_a_replay_elsewhere_mends_what_other_kernels_do_right(found: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "again")
    said = completed("replay", found, "--device", "emulated-reference", *out)
    assert said.out.startswith("emulated-reference: findings that fail: 0 of 2, mended: 2")
    document = read_conformance(RunDirectory(tmp_path / "again"))
    assert (document.findings, document.device.kernels) == ((), "reference")
    quiet = call_here("replay", found, *out, "--overwrite", "--quiet")
    assert (quiet.code, quiet.out) == (1, f"{tmp_path / 'again'}\n")


@pytest.mark.slow
def test_a_replay_on_versions_says_since_which_a_finding_shows(found: Path, tmp_path: Path) -> None:
    _, version = installed_version()
    said = call_here("replay", found, "--versions", version, "--out", tmp_path / "since")
    assert said.code == 1
    assert "Since which version" in said.out
    table = document_of(tmp_path / "since", "versions.json")
    assert table["runtimes"][0].endswith(f" {version}")
    assert table["findings"][0]["since"]["builtin"] == "wrong"
    refused = call_here("replay", found, "--versions", "new", "--out", tmp_path / "none")
    assert (refused.code, "'new' is no version" in refused.err) == (2, True)
    assert not (tmp_path / "none").exists()


def test_what_is_known_does_not_fail_a_replay(found: Path, tmp_path: Path) -> None:
    document = document_of(found, "conform.json")
    document["findings"][0]["accepted"] = "a vendor's"
    (found / "conform.json").write_text(json.dumps(document))
    said = call_here("replay", found, "--out", tmp_path / "again")
    assert (said.code, "accepted: a vendor's" in said.out) == (0, True)


@pytest.mark.parametrize(
    ("device", "options", "said"),
    [
        ("emulated-builtin", "--device emulated-builtin --device micro", "give --device once"),
        ("emulated-builtin", "--device emulated-bultin", "emulated-builtin"),
        ("emulated-builtin", "--out {found}", "is what is replayed: name another --out"),
        ("board", "", "name it again with --device board"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(
    device: str, options: str, said: str, found: Path
) -> None:
    document = document_of(found, "conform.json")
    document["device"]["name"] = device
    (found / "conform.json").write_text(json.dumps(document))
    before = {path: path.stat().st_mtime_ns for path in found.rglob("*")}
    assert said in refused("replay", found, *options.format(found=found).split())
    assert before == {path: path.stat().st_mtime_ns for path in found.rglob("*")}


def test_a_run_that_found_nothing_has_nothing_to_try(tmp_path: Path) -> None:
    run = conformed_run(tmp_path, constructed_conformance([])).path
    for command in (("replay", run), ("export", run, "1")):
        assert "found nothing" in refused(*command)
