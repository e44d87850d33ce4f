"""Tests of edgeflare.conform.finding_archive: a zip whose script shows the fault by itself."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from conformed_runs import (
    conformed_run,
    constructed_conformance,
    finding_entry,
    finding_fields,
    plain,
)
from edgeflare.conform.finding_archive import export_finding
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault, read_conformance
from edgeflare.errors import UserError
from edgeflare.run.run_directory import RunDirectory
from reproductions import reproduce, unpacked

pytestmark = pytest.mark.slow

MOST_LINES = 150
"""Of the script: what somebody who gets it from a stranger reads before running it."""

SMALLEST: dict[str, Any] = finding_fields()["smallest"]


def exported(run: Path, number: int, folder: Path, **changed: Any) -> Path:
    """Export a finding, of which something may be changed before, and unpack it."""
    directory = RunDirectory(run)
    document = plain(read_conformance(directory))
    document["findings"][number - 1] |= changed
    told = msgspec.convert(document, ConformDocument)
    export_finding(directory, told, number, folder / "one.zip")
    return unpacked(folder / "one.zip", folder / "one")


def last(folder: Path, *, code: int) -> str:
    shown = reproduce(folder)
    assert shown.returncode == code, shown
    return shown.stdout.splitlines()[-1]


def test_a_fault_shows_by_the_script_alone(run_of_findings: Path, tmp_path: Path) -> None:
    folder = exported(run_of_findings, 1, tmp_path)
    shown = reproduce(folder)
    assert shown.returncode == 0, shown.stderr
    first, count, end = shown.stdout.splitlines()
    assert first.startswith("ADD uint8: wrong values (emulated-builtin: x86_64, ai-edge-litert")
    assert first.endswith("; here with builtin kernels")
    here, found = (int(part.split()[0]) for part in count.removeprefix("result 0: ").split(", "))
    assert here == found > 0
    assert end == "It shows here too."
    told = json.loads((folder / "finding.json").read_bytes())
    assert told["schema"] == "edgeflare.operator-reproduction/v1"
    assert told["finding"]["condition"] == ["size ≥ 8", "sum_ratio_log2 ≥ 7"]
    names = set(np.load(folder / "values.npz"))
    assert names >= {"input 0", "device 0", "xnnpack 0", "builtin 0", "reference 0", "exact 0"}
    assert str(run_of_findings) not in json.dumps(told)


def test_its_report_of_a_bug_shows_it_without_the_zip(
    run_of_findings: Path, tmp_path: Path
) -> None:
    folder = exported(run_of_findings, 1, tmp_path)
    report = (folder / "bug_report.md").read_text(encoding="utf-8")
    assert report.startswith("# ADD uint8: wrong values with the built-in kernels\n")
    assert "emulated-builtin" not in report
    (script,) = re.findall(r"^```python\n(.*?)^```$", report, re.MULTILINE | re.DOTALL)
    shown = run_script(script)
    answered = np.load(folder / "values.npz")["device 0"]
    said = re.findall(r"\d+", shown.stdout.partition("dtype")[0])
    assert [int(one) for one in said] == answered[0].ravel().tolist()


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def test_weights_of_the_users_model_are_passed_on_if_that_is_said(
    run_of_findings: Path, tmp_path: Path
) -> None:
    directory = RunDirectory(run_of_findings)
    document = plain(read_conformance(directory))
    document["findings"][0]["smallest"]["operators"][0]["given"] = 3
    told = msgspec.convert(document, ConformDocument)
    with pytest.raises(UserError, match="add --include-weights to pass them on"):
        export_finding(directory, told, 1, tmp_path / "one.zip")
    files = export_finding(directory, told, 1, tmp_path / "one.zip", with_weights=True)
    assert "bug_report.md" in files


def test_a_crash_that_does_not_happen_does_not_show(run_of_findings: Path, tmp_path: Path) -> None:
    assert last(exported(run_of_findings, 2, tmp_path), code=1) == "It does not show here."


@pytest.mark.parametrize(
    ("ending", "symptom", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", "The process dies of SIGSEGV."),
        ("__import__('time').sleep(60)", "hang", "here with builtin kernels"),
    ],
)
def test_what_kills_the_process_shows(
    run_of_findings: Path, tmp_path: Path, ending: str, symptom: str, said: str
) -> None:
    folder = exported(run_of_findings, 2, tmp_path, symptom=symptom, verdict=symptom)
    script = folder / "reproduce.py"
    text = script.read_text().replace("HANG_SECONDS = 60", "HANG_SECONDS = 5")
    script.write_text(text.replace("        model.invoke()", f"        {ending}"))
    shown = reproduce(folder)
    assert shown.returncode == 0, shown
    assert said in shown.stdout


def test_a_bias_is_held_to_its_own_side(run_of_findings: Path, tmp_path: Path) -> None:
    """An answer that is wrong, but not off on average, is not the bias that was found."""
    folder = exported(run_of_findings, 1, tmp_path, symptom="biased")
    arrays: dict[str, Any] = dict(np.load(folder / "values.npz"))
    told = json.loads((folder / "finding.json").read_bytes())
    (result,) = told["results"]
    chosen = np.flatnonzero(arrays["counts 0"].ravel())
    nearest = arrays["builtin 0"].ravel()[chosen].astype(float)
    arrays |= {"chosen 0": chosen, "signs 0": np.ones(chosen.size)}
    for below, code in ((0.5, 0), (-0.5, 1)):
        np.savez(folder / "values.npz", **{**arrays, "nearest 0": nearest - below})
        told["results"] = [{**result, "bias": 0.5}]
        (folder / "finding.json").write_text(json.dumps(told))
        last(folder, code=code)


def test_the_script_refuses_kernels_that_there_are_not(
    run_of_findings: Path, tmp_path: Path
) -> None:
    folder = exported(run_of_findings, 1, tmp_path)
    told = json.loads((folder / "finding.json").read_bytes())
    told["found"]["kernels"] = "tpu"
    (folder / "finding.json").write_text(json.dumps(told))
    shown = reproduce(folder)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "xnnpack|builtin|reference" in shown.stderr


@pytest.mark.old_board
def test_it_runs_on_an_old_runtime_too(
    run_of_findings: Path, tmp_path: Path, old_board_python: Path
) -> None:
    folder = exported(run_of_findings, 1, tmp_path)
    shown = reproduce(folder, old_board_python)
    assert shown.returncode in (0, 1), shown.stderr
    assert "values are wrong here" in shown.stdout


def test_the_script_says_what_it_needs(run_of_findings: Path, tmp_path: Path) -> None:
    script = exported(run_of_findings, 1, tmp_path) / "reproduce.py"
    bare = [sys.executable, "-I", "-S", str(script)]  # without any installed package
    said = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    (line,) = said.stderr.splitlines()
    assert line.endswith("pip install numpy ai-edge-litert")


def test_the_script_is_short_the_same_again_and_needs_but_numpy_and_a_runtime(
    run_of_findings: Path, tmp_path: Path
) -> None:
    script = (exported(run_of_findings, 1, tmp_path) / "reproduce.py").read_text()
    assert len(script.splitlines()) < MOST_LINES
    imported = set[str]()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    tops = {name.partition(".")[0] for name in imported}
    assert tops - sys.stdlib_module_names <= {"numpy", "ai_edge_litert", "tflite_runtime"}
    again = tmp_path / "again"
    again.mkdir()
    exported(run_of_findings, 1, again)
    assert (again / "one.zip").read_bytes() == (tmp_path / "one.zip").read_bytes()


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (finding_entry(symptom="neighbours"), "finding 1 shows only beside other models"),
        (finding_entry(verdict="crash", symptom="corrupts"), "try it by `edgeflare replay`"),
        (finding_entry(smallest=SMALLEST | {"repeats": False}), "only at times, and not again"),
        (
            finding_entry(arrangement=["invoked on another number of threads"]),
            "finding 1 shows only where it is invoked on another number of threads",
        ),
        (finding_entry(7), "has no finding 1: it has those from 7 to 7"),
        (None, "has no finding 1: it found nothing"),
    ],
)
def test_what_no_script_can_show_is_refused(
    tmp_path: Path, refusal: Callable[..., str], finding: FoundFault | None, said: str
) -> None:
    document = constructed_conformance([] if finding is None else [finding])
    directory = conformed_run(tmp_path / "run", document)
    assert said in refusal(export_finding, directory, document, 1, tmp_path / "one.zip")
    assert not (tmp_path / "one.zip").exists()


def test_kernels_that_there_are_not_are_one_line(
    run_of_findings: Path, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    directory = RunDirectory(run_of_findings)
    document = read_conformance(directory)
    document = structs.replace(document, device=replace(document.device, kernels="../on_gpu"))
    said = refusal(export_finding, directory, document, 1, tmp_path / "one.zip")
    assert said.startswith("the finding is of the kernel set '../on_gpu', which this edgeflare")
    assert not (tmp_path / "one.zip").exists()


def test_a_finding_of_the_host_is_shown_by_its_kernels(
    run_of_findings: Path, tmp_path: Path
) -> None:
    host = {"verdict": "host", "wrong": ["xnnpack"], "counted": False}
    folder = exported(run_of_findings, 1, tmp_path, **host)
    shown = reproduce(folder)
    assert "(the host: ai-edge-litert 2.3.0, xnnpack kernels)" in shown.stdout
    assert "0 of" in shown.stdout
    assert shown.returncode == 1
