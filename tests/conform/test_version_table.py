from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformed_runs import BOARD, constructed_conformance, finding_entry, finding_fields
from conforming import ExactArm
from edgeflare.conform.finding_archive import export_finding
from edgeflare.conform.finding_replay import stored_models
from edgeflare.conform.findings.known_issues import known_issues
from edgeflare.conform.issue_reproduction import probed_issues
from edgeflare.conform.record.conform_document import read_conformance
from edgeflare.conform.runtime_arms import (
    RuntimeArm,
    RuntimeVersion,
    installed_versions,
    runtime_arms,
)
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.conform.version_table import (
    VersionDocument,
    VersionOutcome,
    VersionRow,
    failing_still,
    outcome_of,
    since_words,
    version_document,
    version_outcome,
)
from edgeflare.models.runtime_versions import installed_version
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos import __version__
from edgeflare_protos.kernel_sets import Kernels
from reproductions import unpacked


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ("wrong wrong right right", "right from c on"),
        ("right otherwise wrong wrong", "wrong from b on"),
        ("refused wrong refused right", "right from d on"),
        ("crash crash", "wrong"),
        ("right", "right"),
        ("refused refused", "refused"),
        ("right wrong right wrong", "wrong in b, d"),
    ],
)
def test_since_which_version(outcomes: str, said: str) -> None:
    assert since_words(list(zip("abcd", outcomes.split(), strict=False))) == said


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (KernelJudgement("device", "wrong-values"), "wrong"),
        (KernelJudgement("shared", "biased"), "otherwise"),
        (KernelJudgement("undefined", "not-finite"), "right"),
        (KernelJudgement("crash", "crash"), "crash"),
        (KernelJudgement("refused", "refused"), "refused"),
        (KernelJudgement("rounding"), "right"),
    ],
)
def test_what_became_of_a_finding(said: KernelJudgement, outcome: VersionOutcome) -> None:
    assert outcome_of(said, "wrong-values") == outcome


@pytest.mark.parametrize(
    "changed",
    [
        {"symptom": "neighbours"},
        {"smallest": {**finding_fields()["smallest"], "repeats": False}},
    ],
)
def test_what_one_run_does_not_show_is_not_called_right(
    run_of_findings: Path, changed: dict[str, Any]
) -> None:
    directory = RunDirectory(run_of_findings)
    stored, _ = stored_models(directory, read_conformance(directory))
    _, version = installed_version()
    runtime = RuntimeVersion(version, "ai-edge-litert", Path(sys.executable))
    sound = RuntimeArm(runtime, "builtin", ExactArm())
    assert version_outcome(stored, sound) == "right"
    hidden = replace(stored, finding=finding_entry(**changed))
    table = version_document([hidden], [sound])
    (row,) = table.findings
    assert row.kernels == {sound.name: "not-tried"}
    assert row.since == {"builtin": "not tried"}
    assert failing_still(constructed_conformance([hidden.finding]), table) == [hidden.finding]


@pytest.mark.parametrize(
    ("kernels", "failing"),
    [("builtin", [7, 8]), ("xnnpack", [8]), ("reference", [5, 8]), ("gpu", [5, 7, 8])],
)
def test_what_fails_still_is_told_by_number_and_kernels(
    kernels: Kernels, failing: list[int]
) -> None:
    one, host = finding_entry(7), finding_entry(8, verdict="host", wrong=["xnnpack"])
    known = finding_entry(2, accepted="a vendor's")
    document = constructed_conformance(
        [one, finding_entry(5), known, host], device=replace(BOARD, kernels=kernels).to_json()
    )

    def row(number: int, builtin: VersionOutcome, reference: VersionOutcome) -> VersionRow:
        was: VersionOutcome = "wrong"
        old = dict.fromkeys(("xnnpack@1.0", "builtin@1.0", "reference@1.0"), was)
        xnnpack: VersionOutcome = "crash" if number == 8 else "right"
        new = {"xnnpack@1.1": xnnpack, "builtin@1.1": builtin, "reference@1.1": reference}
        return VersionRow(
            number=number, operator="ADD", type="uint8", kernels={**old, **new}, since={}
        )

    rows = (
        row(7, "wrong", "refused"),
        row(5, "right", "otherwise"),
        row(2, "wrong", "wrong"),
        row(8, "right", "right"),
    )
    table = VersionDocument(edgeflare=__version__, runtimes=("a 1.0", "a 1.1"), findings=rows)
    assert sorted(found.number for found in failing_still(document, table)) == failing


@pytest.mark.slow
def test_a_finding_on_the_kernel_sets_of_a_version(run_of_findings: Path, tmp_path: Path) -> None:
    directory = RunDirectory(run_of_findings)
    document = read_conformance(directory)
    models = stored_models(directory, document)[:1]
    _, version = installed_version()
    with runtime_arms(installed_versions([version], print)) as arms:
        table = version_document(models, arms)
    (row,) = table.findings
    kernels = {"xnnpack": "right", "builtin": "wrong", "reference": "right"}
    assert row.kernels == {f"{name}@{version}": said for name, said in kernels.items()}
    assert row.since == kernels
    export_finding(directory, document, 1, tmp_path / "one.zip", versions=table)
    report = (unpacked(tmp_path / "one.zip", tmp_path / "one") / "bug_report.md").read_text()
    assert "| builtin | wrong | wrong |" in report


@pytest.mark.slow
def test_kernel_sets_of_compiled_models_are_tried_in_the_versions_that_have_them(
    run_of_findings: Path, tmp_path: Path
) -> None:
    directory = RunDirectory(run_of_findings)
    models = stored_models(directory, read_conformance(directory))[:1]
    _, version = installed_version()
    (now,) = installed_versions([version], print)
    absent = tmp_path / "bin" / "python"
    before = RuntimeVersion("2.0.3", now.package, absent)
    broken = RuntimeVersion("2.2.0", now.package, absent)
    said: list[str] = []
    with runtime_arms([before, broken, now], ["compiled-cpu"], said.append) as arms:
        (row,) = version_document(models, arms).findings
    assert row.kernels == {f"compiled-cpu@{version}": "right"}
    (line,) = said
    assert line.startswith("compiled-cpu of 2.2.0: ")
    assert str(absent) in line


@pytest.mark.old_litert
@pytest.mark.slow
def test_a_fault_that_a_release_mended(
    tmp_path: Path, old_litert_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "edgeflare" / "runtimes"
    folder.mkdir(parents=True)
    (folder / "1.2.0").symlink_to(old_litert_python.parents[1])
    wanted = [issue for issue in known_issues() if issue.thread == "LiteRT#9256"]
    _, now = installed_version()
    with runtime_arms(installed_versions([now, "1.2.0"], print), ["xnnpack"]) as arms:
        found = [(arm.name, probed_issues(wanted, arm.arm)[0].outcome) for arm in arms]
    assert found == [("xnnpack@1.2.0", "shows"), (f"xnnpack@{now}", "right")]
