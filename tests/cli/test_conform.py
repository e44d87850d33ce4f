"""`edgeflare conform` on real kernels: what it finds, says, writes, and goes on with."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, refused
from edgeflare.conform.drafts.draft import DraftSource
from edgeflare.conform.record.conform_document import CoveredShare, read_conformance
from edgeflare.conform.record.finding_files import load_finding
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.models.runtime_versions import installed_version
from edgeflare.run.run_directory import RunDirectory
from made_once import made_once
from reproductions import reproduce, unpacked

pytestmark = pytest.mark.slow

WRONG = (
    *("conform", "--device", "emulated-reference"),
    *("--ops", "SUM", "--dtype", "int8", "--models", "16"),
)
"""The reference kernels of ai-edge-litert 2.3 sum raw values of int8."""

SOUND = ("conform", "--ops", "FLOOR", "--models", "48", "--time-limit", "1h")
"""Three rounds, which are short with a time limit, of an operator that the kernels get right."""

VERSION = installed_version()[1]


def untimed(run: Path) -> dict[str, Any]:
    document = msgspec.to_builtins(read_conformance(RunDirectory(run)))
    return {key: value for key, value in document.items() if key != "seconds"}


@pytest.fixture(scope="session")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on `emulated-reference` that found a known issue of its kernels, and what it said."""

    def make(folder: Path) -> None:
        said = call_here(*WRONG, "--versions", VERSION, "--out", folder / "run")
        (folder / "said.json").write_text(json.dumps([said.code, said.out, said.err]))

    return made_once(tmp_path_factory, "conformed", make)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that found nothing."""

    def make(folder: Path) -> None:
        said = call_here(*SOUND, "--out", folder / "run")
        assert (said.code, "no fault" in said.out) == (0, True), said

    return made_once(tmp_path_factory, "sound_conformance", make) / "run"


def test_a_fault_of_the_device_is_found_and_named(wrong: Path) -> None:
    code, out, err = json.loads((wrong / "said.json").read_bytes())
    assert code == 1, err
    assert "1 fault in 1 operator" in out
    assert "1 SUM int8: wrong values " in out
    assert f"edgeflare report {wrong / 'run'} --html" in out
    document = read_conformance(RunDirectory(wrong / "run"))
    first = document.findings[0]
    assert (first.verdict, first.counted, first.unit) == ("device", True, "steps")
    assert first.worst is not None
    assert first.worst > 10
    assert {"device", "reference"} == set(first.wrong)
    assert document.coverage.cells == CoveredShare(covered=1, total=1, refused=0)


def test_its_smallest_model_lies_beside_with_all_answers(wrong: Path) -> None:
    directory = RunDirectory(wrong / "run")
    for finding in read_conformance(directory).findings:
        files = load_finding(directory, finding.smallest.file)
        lost = finding.wrong if finding.verdict in ("crash", "hang") else ()
        for arm in ("device", "xnnpack", "builtin", "reference", "exact"):
            assert len(files.answers(arm)) == (arm not in lost)
        assert sum(one[0].size for one in files.operands) == finding.smallest.elements


def test_its_findings_are_exported_and_replayed(wrong: Path, tmp_path: Path) -> None:
    run = wrong / "run"
    for finding in read_conformance(RunDirectory(run)).findings:
        path = tmp_path / f"{finding.number}.zip"
        completed("export", run, str(finding.number), "--out", path)
        shown = reproduce(unpacked(path, path.with_suffix("")))
        assert shown.returncode == 0, shown
    said = call_here("replay", run, "--out", tmp_path / "again")
    assert (said.code, "mended: 0" in said.out) == (1, True), said


def test_a_finding_names_its_thread_and_since_which_version_it_shows(wrong: Path) -> None:
    _, out, _ = json.loads((wrong / "said.json").read_bytes())
    known = "known issue: tensorflow#102490, open in September 2026: the sum of raw values"
    assert known in " ".join(out.split())
    found = document_of(wrong / "run", "conform.json")["findings"][0]
    assert found["issue"]["work_around"] == "built-in kernels or XNNPACK"
    since = document_of(wrong / "run", "versions.json")["findings"][0]["since"]
    assert since["reference"] == "wrong"
    said = refused("conform", "--device", "emulated-all", "--versions", VERSION)
    assert "--versions is for the findings of one device" in said


def test_a_table_of_all_kernel_sets_of_this_host(tmp_path: Path) -> None:
    asked = ("--ops", "SUM", "--dtype", "int8", "--models", "4")
    said = completed("conform", "--matrix", *asked, "--out", tmp_path / "kernels")
    assert "4 models of 1 operators and types" in said.out
    table = document_of(tmp_path / "kernels", "kernels.json")
    names = {column["kernels"] for column in table["columns"]}
    assert {"xnnpack", "builtin", "reference"} <= names
    (total,) = (row for row in table["rows"] if row["operator"] == "SUM")
    (reference,) = (name for name in total["kernels"] if name.startswith("reference@"))
    assert total["kernels"][reference]["wrong"] > 0
    assert (tmp_path / "kernels" / "kernels.csv").read_text().startswith("operator,type,models,")


def test_accepted_findings_do_not_count(wrong: Path, tmp_path: Path) -> None:
    run = shutil.copytree(wrong / "run", tmp_path / "run")
    completed("report", run, "--accepted")
    known = run / "accepted.toml"
    again = completed(*WRONG, "--accepted", known, "--out", run, "--resume")
    findings = read_conformance(RunDirectory(run)).findings
    counted = [finding for finding in findings if finding.counted]
    said = f"no fault that is not accepted, {len(counted)} accepted"
    assert said in " ".join(again.out.split())
    assert (counted[0].accepted or "").startswith("found on emulated-reference ai-edge-litert")


def test_a_run_that_has_ended_is_resumed_as_it_was_and_printed_as_asked(sound: Path) -> None:
    """With its own limits, where none is given."""
    before, resumed = untimed(sound), ("--out", sound, "--resume")
    request = read_conformance(RunDirectory(sound)).plan
    without = SOUND[: SOUND.index("--models")]
    said = completed(*without, *resumed, "--json")
    assert json.loads(said.out) == document_of(sound, "conform.json")
    assert untimed(sound) == before
    assert read_conformance(RunDirectory(sound)).plan == request
    said = call_here(*SOUND, *resumed, "--quiet")
    assert (said.code, said.out, said.err) == (0, f"{sound}\n", "")
    assert untimed(sound) == before


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    said = completed(*WRONG, *out, "--dry-run")
    assert "emulated-reference: ai-edge-litert" in said.out
    assert "1 operator, 1 operator and type: 1 in int8" in said.out
    assert "ends after 16 models" in said.out
    said = call_here("conform", "--from", EXAMPLE, *out, "--dry-run")
    assert "first the 11 distinct operators of compressed.tflite as they stand" in said.out
    assert "ends after 600 seconds" in said.out
    convolutions = ("--from", EXAMPLE / "compressed.tflite", "--ops", "CONV_2D")
    said = call_here("conform", *convolutions, *out, "--dry-run")
    assert "first the 2 distinct operators of compressed.tflite as they stand" in said.out
    said = call_here("conform", *convolutions, "--models", "1", *out, "--dry-run")
    assert "at most 1 of the 2 distinct operators of compressed.tflite" in said.out
    assert not list(tmp_path.iterdir())


def test_a_run_is_gone_on_with_as_it_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("conform", "--ops", "FLOOR", "--models", "16")
    out = ("--out", tmp_path / "run")
    completed(*run, *out)
    document = tmp_path / "run" / "conform.json"
    kept, before = document.read_bytes(), untimed(tmp_path / "run")
    assert "holds a run already" in refused(*run, *out)
    said = refused("conform", "--ops", "ABS", "--models", "16", *out, "--resume")
    assert said == refused("conform", "--ops", "ABS", *run[3:], *out, "--resume", "--dry-run")
    assert "with --ops FLOOR --dtype float32, not ABS --dtype" in said
    assert "repeat the command that began it, with --resume, or name another folder" in said
    assert "without --time-limit, not with --time-limit 60s" in refused(
        *run, "--time-limit", "1m", *out, "--resume"
    )
    with monkeypatch.context() as patch:
        digest = "edgeflare.conform.conformance_arms.specification_digest"
        patch.setattr(digest, lambda: "another")
        assert "other declarations of the operators" in refused(*run, *out, "--resume")
    document.write_text("{")
    assert "--resume writes it anew" in refused("report", tmp_path / "run")
    document.write_bytes(kept)
    completed(*run, *out, "--resume")
    assert untimed(tmp_path / "run") == before


def test_a_device_without_a_runtime_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put_profile: Callable[..., None]
) -> None:
    for package in ("ai_edge_litert", "tflite_runtime"):
        (tmp_path / "hidden" / package).mkdir(parents=True)
        (tmp_path / "hidden" / package / "__init__.py").write_text("raise ImportError('hidden')")
    python = tmp_path / "python"
    hidden = f'export PYTHONPATH="{tmp_path / "hidden"}"'
    python.write_text(f'#!/bin/sh\n{hidden}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    put_profile("bare", f'description = "bare"\ntransport = "emulated"\npython = "{python}"\n')
    said = refused("conform", "--device", "bare", "--trust", "--out", tmp_path / "run")
    assert "no TFLite runtime is installed: pip install ai-edge-litert" in said
    assert not (tmp_path / "run").exists()


def test_a_model_is_begun_with(tmp_path: Path) -> None:
    model = EXAMPLE / "compressed.tflite"
    asked = ("conform", "--from", model, "--ops", "CONV_2D", "--models", "8")
    said = call_here(*asked, "--out", tmp_path)
    assert said.code in (0, 1), said.err
    document = read_conformance(RunDirectory(tmp_path))
    assert document.model is not None
    assert document.model.file == "compressed.tflite"
    assert document.plan.cells == (("CONV_2D", "int8"),)
    assert document.cells[0].operator == "CONV_2D"
    assert (document.model.tried, document.model.distinct) == (2, 2)
    assert "tried 2 of 2 as they stand" in " ".join(said.out.split())


def test_what_is_not_run_of_a_model_is_not_tried(tmp_path: Path) -> None:
    asked = ("conform", "--from", EXAMPLE / "compressed.tflite", "--models", "1")
    said = call_here(*asked, "--out", tmp_path)
    assert said.code in (0, 1), said.err
    model = read_conformance(RunDirectory(tmp_path)).model
    assert model is not None
    assert model.tried == 1 < model.distinct
    printed = " ".join(said.out.split())
    assert f"tried 1 of {model.distinct} as they stand" in printed
    assert 0 < model.arithmetic_tried < model.arithmetic
    assert "the run ended before it: give it more --models or a longer --time-limit" in printed


@contextmanager
def once_a_round_is_kept(act: Callable[[], None]) -> Iterator[None]:
    """Have something happen after the first round of a run."""
    draw = ConformRounds.draw

    def drawn(rounds: ConformRounds, source: DraftSource, count: int) -> int:
        run = draw(rounds, source, count)
        patch.undo()
        act()
        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConformRounds, "draw", drawn)
        yield


def test_ctrl_c_leaves_a_run_that_goes_on_as_if_nothing_had_happened(
    sound: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with once_a_round_is_kept(lambda: signal.raise_signal(signal.SIGINT)):
        said = call_here(*SOUND, "--out", out)
    assert said.code == 130, said.err
    assert f"the same command with --out {out} --resume goes on" in said.err
    document = read_conformance(RunDirectory(out))
    assert document.stopped_by == "interrupt"
    assert 0 < document.models < 48
    completed("report", out)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgeflare.cli.conformance_launch.run_conformance", full)
        said = call_here(*SOUND, "--out", out, "--resume")
    assert said.code == 3
    assert f"the same command with --out {out} --resume goes on" in said.err.splitlines()[-1]
    completed(*SOUND, "--out", out, "--resume")
    assert untimed(out) == untimed(sound)


def test_a_lost_device_is_exit_code_3_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeflare.devices.device.REOPEN_PAUSES_SECONDS", (0.0, 0.1))
    out = tmp_path / "run"
    with running_agent(tmp_path) as (agent, port):
        command = (*SOUND, "--device", f"grpc://127.0.0.1:{port}", "--out", out)
        with once_a_round_is_kept(agent.kill):
            said = call_here(*command)
    assert said.code == 3, said
    assert f"the same command with --out {out} --resume goes on" in said.err.splitlines()[-1]
    assert f"--out {out} --resume" in refused("report", out)

    with running_agent(tmp_path, "--port", str(port)):
        said = call_here(*command, "--resume")
    assert said.code == 0, said.err
    assert "no fault, in 48 models" in " ".join(said.out.split())


@contextmanager
def running_agent(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start an agent, as somebody does on a device; yield its process and port."""
    command = [sys.executable, "-m", "edgeflare_agent", "--store", str(folder / "store"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["port"]
        finally:
            process.kill()


def test_the_list_has_all_operators_and_one_operators_parameters() -> None:
    whole = call_here("conform", "--list")
    assert (whole.code, "CONV_2D" in whole.out) == (0, True)
    listed = json.loads(call_here("conform", "--list", "--json").out)
    assert len(listed) >= 60
    assert sum(len(one["types"]) for one in listed) >= 200
    one = call_here("conform", "--list", "--ops", "conv_2d")
    assert one.out.startswith("CONV_2D: float32")
    assert "stride_w" in one.out
    int8 = json.loads(call_here("conform", "--list", "--dtype", "int8", "--json").out)
    assert {tuple(one["types"]) for one in int8} == {("int8",)}
