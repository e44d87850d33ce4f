"""Tests of `edgeflare repair` by fitting a model to its original."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest

from brief_commands import brief_repairs, only
from called_commands import EXAMPLE, Said, call_here, completed, document_of, refused
from edgeflare.repair import candidate_check
from edgeflare.repair.candidate_store import Attempt, StoredCandidates
from edgeflare.repair.repair_cost import Latency
from networks import pair_of

pytest.importorskip("litert_quantizer")

WRITE = StoredCandidates.write
RANGES = ("--method", "ranges", "--device", "emulated-xnnpack")


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    with brief_repairs():
        yield


@pytest.fixture
def briefer() -> Iterator[None]:
    """Judge by still fewer inputs, where no gain has to be sure."""
    with brief_repairs(judged=60, fitted=40):
        yield


@pytest.fixture
def two_methods() -> Iterator[None]:
    with only("ranges", "rounding"):
        yield


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fresh") / "fresh.npz"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(path, images=arrays["images"][:50], labels=arrays["labels"][:50])
    return path


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with half of its seeds, of which fewer inputs to judge by are made."""
    pair = tmp_path_factory.mktemp("half") / "pair"
    shutil.copytree(EXAMPLE, pair, ignore=shutil.ignore_patterns("*.py"))
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(pair / "seeds.npz", images=arrays["images"][:100], labels=arrays["labels"][:100])
    return pair


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory, fresh: Path) -> tuple[Path, Said]:
    out = tmp_path_factory.mktemp("repaired") / "out"
    return out, completed("repair", EXAMPLE, *RANGES, "--test", fresh, "--out", out)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--seeds", "--test"])
def test_labels_beyond_the_classes_are_refused(option: str, tmp_path: Path) -> None:
    file, out = tmp_path / "labelled.npz", tmp_path / "out"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(file, images=arrays["images"], labels=arrays["labels"] + 1)
    said = refused("repair", EXAMPLE, *RANGES, option, file, "--dry-run", "--out", out)
    assert "and the model has 10 classes, 0 to 9: number labels from 0" in said


@pytest.mark.slow
def test_a_repair_in_place_mends_more_than_it_breaks(repaired: tuple[Path, Said]) -> None:
    out, said = repaired
    found = document_of(out, "repair.json")
    assert found["written"]
    assert found["chosen"] == "ranges"
    assert found["seeds"] == {"fit": 120, "choose": 40, "judge": 40}
    for name in ("tight", "wide", "sampled"):
        one = found["judged"][name]
        assert one["before"]["deviating"] - one["after"]["deviating"] == (
            one["mended"] - one["broken"]
        )
    assert sum(found["judged"][name]["mended"] for name in ("tight", "wide", "sampled")) > 2 * sum(
        found["judged"][name]["broken"] for name in ("wide", "sampled")
    )
    assert found["judged"]["fresh"]["after"]["inputs"] == 50
    (device,) = found["on_devices"]
    assert device["same_labels"] == device["inputs"]
    content = (out / "repaired.tflite").read_bytes()
    assert len(content) == (EXAMPLE / "compressed.tflite").stat().st_size
    assert hashlib.sha256(content).hexdigest() == found["repaired"]["sha256"]
    assert found["repaired"]["recipe"] is None
    assert "A repaired model is written: " in said.out
    assert "repaired.tflite, by ranges, is as large as before" in " ".join(said.out.split())
    assert f"Search it: edgeflare search {out}\n" in said.out


@pytest.mark.slow
def test_a_pair_is_repaired_by_other_seeds_or_fewer(fresh: Path, run: Path, tmp_path: Path) -> None:
    given = ("repair", EXAMPLE, *RANGES, "--dry-run", "--out", tmp_path / "out")
    assert "30 seeds to fit with" in completed(*given, "--seeds", fresh).out
    assert "36 seeds to fit with" in completed(*given, "--limit", "60").out
    for of_a_pair in (("--seeds", fresh), ("--limit", "60")):
        assert "a run has its own seeds" in refused("repair", run, *of_a_pair, *given[-2:])


@pytest.mark.slow
def test_some_inputs_that_it_mends_and_breaks_are_stored(repaired: tuple[Path, Said]) -> None:
    out, _ = repaired
    found = document_of(out, "repair.json")
    for change, right, wrong in (("mended", "after", "before"), ("broken", "before", "after")):
        shown = [one for one in found["shown"] if one["change"] == change]
        assert len(shown) == min(12, sum(one[change] for one in found["judged"].values()))
        margins = [one["original"]["margin"] for one in shown]
        assert margins == sorted(margins, reverse=True)
        for one in shown:
            assert one[right]["label"] == one["original"]["label"] != one[wrong]["label"]
    files = {str(path.relative_to(out)) for path in (out / "inputs").iterdir()}
    assert files == {one["file"] for one in found["shown"]}
    images = [cv2.imread(str(out / name)) for name in files]
    assert all(one is not None and one.shape == (28, 28, 3) for one in images)


@pytest.mark.slow
def test_the_folder_is_a_pair_to_search(repaired: tuple[Path, Said]) -> None:
    out, _ = repaired
    assert "it holds a repair: search its model first" in refused("explain", out)
    said = completed("search", out, "--first", "2", "--dry-run")
    assert "0 of the first 2 seeds already deviate" in said.out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all seeds of the example, with few findings."""
    folder = tmp_path_factory.mktemp("searched") / "run"
    options = ("--max-queries", "6", "--shrink", "0", "--fail-on", "none")
    completed("search", EXAMPLE, *RANGES[2:], *options, "--out", folder)
    return folder


@pytest.mark.slow
def test_auto_tries_shifts_of_a_run_last_and_passes_over_too_few_triggers(
    run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with only("ranges"):
        completed("repair", run, "--out", out)
    first, last = document_of(out, "repair.json")["candidates"]
    assert (first["name"], last["name"]) == ("ranges", "shifts")
    assert first["score"] is not None
    assert "triggering inputs from the seeds to fit with, and the 5 folds" in last["set_aside"]


@pytest.mark.slow
def test_too_few_triggers_are_an_error_where_only_shifts_are_asked_for(
    run: Path, tmp_path: Path
) -> None:
    said = call_here("repair", run, "--method", "shifts", "--out", tmp_path / "out")
    assert said.code == 2
    line = said.err.splitlines()[-1]
    assert f"edgeflare: {run} has " in line
    assert "the 5 folds of shifts need at least 25: search from more seeds" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_run_gives_the_same_model_which_is_searched_again(
    repaired: tuple[Path, Said], run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    said = completed("repair", run, *RANGES[:2], "--search-again", "--out", out)

    before, after = document_of(repaired[0], "repair.json"), document_of(out, "repair.json")
    assert after["repaired"]["sha256"] == before["repaired"]["sha256"]
    (one,), (other,) = before["candidates"], after["candidates"]
    assert one["sets"] == other["sets"]
    again = after["search"]
    assert (again["strategy"], again["stopped_by"]) == ("boundary", None)
    for figures, folder in (("before", run), ("after", out / "again")):
        searched = document_of(folder)
        assert again[figures] == {key: searched["totals"][key] for key in again[figures]}
        assert again[figures]["seeds"] == 200
    assert searched["pair"]["sha256"]["compressed"] == after["repaired"]["sha256"]
    assert "Searched again" in said.out


@pytest.mark.slow
@pytest.mark.usefixtures("briefer")
def test_what_does_not_surely_gain_is_not_written(half: Path, tmp_path: Path) -> None:
    pair = Path(shutil.copytree(half, tmp_path / "pair"))
    shutil.copy(pair / "original.tflite", pair / "compressed.tflite")
    out = tmp_path / "out"
    said = completed("repair", pair, "--method", "weights-only", "--out", out)
    found = document_of(out, "repair.json")
    assert not found["written"]
    assert found["chosen"] is None
    made = {"repair.json", "candidates", "contents.jsonl"}
    assert {path.name for path in out.iterdir()} == made
    assert "No model is written: nothing deviates on the inputs to choose by" in said.out


@pytest.mark.slow
def test_what_is_too_slow_is_not_written_and_what_it_would_give_is_said(
    half: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Latency("emulated-builtin", 44e-6, 126e-6, 2.87, 2.8, 2.9, 10)
    monkeypatch.setattr(candidate_check, "latency_on", lambda *_: slow)
    out = tmp_path / "out"
    said = completed("repair", half, "--method", "weights-only", "--out", out)
    found = document_of(out, "repair.json")
    assert not found["written"]
    assert found["why"] == "the limits exclude every candidate"
    offered = found["offered"]
    assert offered["candidate"] == "rounding+weights-only"
    (tried,) = (one for one in found["candidates"] if one["name"] == offered["candidate"])
    assert (tried["needs"], tried["latency"][0]["ratio_low"]) == ({"--max-latency": "+187%"}, 2.8)
    assert (out / tried["file"]).is_file()
    counts = [offered["judged"][name] for name in ("tight", "wide", "sampled")]
    before, after = (sum(one[when]["deviating"] for one in counts) for when in ("before", "after"))
    words = " ".join(said.out.split())
    assert f"rounding+weights-only: {after} instead of {before} of these inputs near" in words
    assert "which needs --max-latency +187%: --max-latency none" in words
    completed("report", out, "--html")
    assert f"{after} instead of {before} of these" in (out / "repair.html").read_text()


@pytest.mark.slow
def test_a_dry_run_says_what_would_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    said = completed("repair", EXAMPLE, "--in-place", "--out", out, "--dry-run")
    words = " ".join(said.out.split())
    assert "120 seeds to fit with, 40 to choose by, 40 to judge" in words
    rounded = "ranges+rounding, rounding where ranges gains nothing within the limits"
    fitted = f"Candidates: ranges, {rounded}, equalization+ranges+rounding"
    assert f"{fitted}{', learning' if find_spec('jax') else ''}; on" in words
    assert "chosen within --max-size +5% and --max-latency +5%." in words
    monkeypatch.setitem(sys.modules, "jax", None)
    said = call_here("repair", EXAMPLE, "--out", out, "--dry-run")
    words = " ".join(said.out.split())
    assert "precision-search where weights-only gains nothing within the limits; on" in words
    without = (
        "+5%. Left out, since jax is not installed: learning; pip install 'edgeflare[whitebox]'."
    )
    assert without in words
    assert not out.exists()


def _write_and_interrupt(stored: StoredCandidates, plan: str, attempts: Sequence[Attempt]) -> None:
    WRITE(stored, plan, attempts)
    signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.usefixtures("briefer", "two_methods")
def test_a_stopped_repair_goes_on_with_what_it_tried(
    half: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    arguments = ("repair", half, "--out", out)
    with monkeypatch.context() as patch:
        patch.setattr(StoredCandidates, "write", _write_and_interrupt)
        said = completed(*arguments, code=130)
    assert said.err.rstrip().endswith("the same command with --resume goes on")
    assert not (out / "repair.json").exists()
    (first,) = (out / "candidates").glob("r*.json")
    tried = json.loads(first.read_bytes())

    for how in ((), ("--dry-run",)):
        assert f"{out} was begun with --rng-seed 0, not 1: repeat" in refused(
            *arguments, "--rng-seed", "1", "--resume", *how
        )
    assert "holds a repair that was stopped: the same command with --resume" in refused(
        "report", out
    )
    completed(*arguments, "--resume")

    found = document_of(out, "repair.json")
    assert [one["name"] for one in found["candidates"]] == ["ranges", "ranges+rounding", "rounding"]
    kept = found["candidates"][0]["seconds"]
    assert kept == tried[0]["tried"]["seconds"]
    whole = tmp_path / "whole"
    completed(*arguments[:-1], whole)
    unstopped = document_of(whole, "repair.json")
    for key in ("chosen", "judged", "shown", "seeds", "residual"):
        assert found[key] == unstopped[key]
    for one in found["candidates"]:
        assert (out / one["file"]).read_bytes() == (whole / one["file"]).read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("briefer")
def test_a_search_for_precision_says_its_path_and_the_blocks_to_blame(
    half: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = completed("repair", half, "--method", "precision", "--out", out)
    found = document_of(out, "repair.json")
    by_name = {one["name"]: one for one in found["candidates"]}
    searched = [one["details"]["precision"] for one in by_name.values() if one["details"]]
    first = searched[0]
    names = [one["name"] for one in found["residual"]["blocks"]]
    assert len(names) == 4
    assert all(set(one["promoted"]) <= set(names) for one in searched)
    errors = [one["margin_difference"] for one in first["path"] if not one["taken_back"]]
    assert errors[-1] == min(errors)
    for one in by_name.values():
        assert one["score"] is not None or one["latency_ratio"] is None
    assert found["front"]
    assert set(found["front"]) <= {name for name, one in by_name.items() if one["score"]}
    assert min(by_name.values(), key=lambda one: one["score"] or 2)["name"] in found["front"]
    shown = " ".join(said.out.split())
    assert f"To blame: {found['residual']['blamed']}." in shown
    assert "precision-search 20/20" in said.err  # 4 blocks, each alone and in 4 steps of the path
    assert f"Pareto front of score, time and bytes: {', '.join(found['front'])}." in shown


def test_an_original_of_another_network_is_refused_at_once(tmp_path: Path) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(pair_of("mobilenet")[0])
    for more in ((), ("--dry-run",)):
        assert "has no counterpart" in refused(
            "repair", EXAMPLE, "--original", other, "--out", tmp_path / "out", *more
        )
