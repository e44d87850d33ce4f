"""The commands on models that give a class for each pixel."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from edgeflare.diagnose import explain_document
from edgeflare.run import run_document
from reproductions import reproduce, unpacked
from segmentation_pairs import write_mask_model, write_segmentation_pair

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
Document = dict[str, Any]

REGIONS = 'name = "segmentation"\noverlap = 0.88\nregion = 12'
KINDS = {"low-mean-iou", "other-region"}
DEVICE = ("--device", "emulated-builtin")
SHORT = ("--max-queries", "150", "--fail-on", "none", *DEVICE)


@dataclass(frozen=True)
class Searched:
    """A run, and the pair that it searched."""

    pair: Path
    run: Path


@pytest.fixture(scope="module")
def whole(call: Call, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("segmentation")
    pair = write_segmentation_pair(folder / "pair", REGIONS)
    refined = ("--first", "3", "--strengthen", "20", "--shrink", "20", "--within", "none")
    ended = call("search", pair, "--out", folder / "run", *SHORT, *refined)
    assert ended.code == 0, ended.err
    return Searched(pair, folder / "run")


@pytest.fixture
def searched(whole: Searched, tmp_path: Path) -> Searched:
    """A run of which the test may write into the folder."""
    return Searched(whole.pair, shutil.copytree(whole.run, tmp_path / "run"))


def document(run: Path) -> Document:
    read: Document = json.loads((run / "run.json").read_bytes())
    return read


def pixels(runs: str) -> int:
    return sum(map(int, runs.split()[1::2]))


def deviations(run: Path) -> dict[int, Document]:
    read = document(run)
    return {entry["seed_id"]: entry for entry in (*read["findings"], *read["deviating_seeds"])}


def test_both_kinds_are_found_and_kept_with_their_masks(searched: Searched) -> None:
    read = document(searched.run)
    schema = Path(run_document.__file__).with_name("run.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(read)
    assert read["plan"]["strategy"] == "climb"
    assert {one["kind"] for one in read["findings"]} == KINDS
    for one in read["findings"]:
        assert one["verified"]
        assert one["strength"] > 0.0
        (trigger,), (seed,) = one["answers"], one["seed_answers"]
        for view in (trigger, seed):
            assert {pixels(runs) for runs in view["masks"].values()} == {24 * 24}
        low = trigger["mean_iou"] < trigger["least_iou"]
        assert one["kind"] == ("low-mean-iou" if low else "other-region")
        assert low or trigger["region"] >= trigger["least_region"] == 12
        assert seed["mean_iou"] >= 0.88
        assert seed["region"] < 12


def test_explain_and_report_say_something_of_each(searched: Searched, call: Call) -> None:
    assert call("explain", searched.run).code == 0
    written = json.loads((searched.run / "explain.json").read_bytes())
    schema = Path(explain_document.__file__).with_name("explain.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(written)
    assert written["findings"].keys() == {str(seed_id) for seed_id in deviations(searched.run)}
    for one in written["findings"].values():
        assert one["verdict"]["name"] == "compression"
        described = [vote["described"] for vote in one["evidence"]["votes"]]
        assert all(re.match(r"(ground|blob) \d+ %", text) for text in described)
    said = call("report", searched.run, "--html", "--junit", "--csv")
    assert said.code == 0, said.err
    page = (searched.run / "report.html").read_text()
    assert all(f"seed {seed_id}" in page.lower() for seed_id in deviations(searched.run))


def test_a_replay_finds_the_same_masks_again(
    searched: Searched, call: Call, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for of, to in ((searched.run, first), (first, second)):
        assert call("replay", of, "--out", to).code == 1  # all of it still deviates
    assert document(second)["replay"]["mended"] == []
    for seed_id, entry in deviations(second).items():
        before = deviations(searched.run)[seed_id]
        assert (entry["kind"], entry["answers"]) == (before["kind"], before["answers"])
    assert call("compare", searched.run, second).code == 0


def test_an_export_shows_the_overlap_without_edgeflare(
    searched: Searched, call: Call, tmp_path: Path
) -> None:
    of_each_kind = {entry["kind"]: entry for entry in deviations(searched.run).values()}
    assert of_each_kind.keys() == KINDS
    for entry in of_each_kind.values():
        seed_id = entry["seed_id"]
        archive = tmp_path / f"{seed_id}.zip"
        assert call("export", searched.run, seed_id, "--out", archive).code == 0
        shown = reproduce(unpacked(archive, archive.with_suffix("")))
        assert shown.returncode == 0, shown.stderr
        said = re.search(r"^mean IoU (\S+), largest region that differs (\d+) ", shown.stdout, re.M)
        assert said
        (view,) = entry["answers"]
        assert float(said[1]) == pytest.approx(view["mean_iou"], abs=1e-4)
        assert int(said[2]) == view["region"]


@pytest.mark.parametrize("find", ["compression", "kernel"])
def test_other_deviations_are_searched_too(
    find: str, searched: Searched, call: Call, tmp_path: Path
) -> None:
    options = ("--find", find, *SHORT, "--first", "2", "--shrink", "0")
    said = call("search", searched.pair, *options, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    found = document(tmp_path / "out")["findings"]
    assert {one["cause"] for one in found} == ({"compression"} if find == "compression" else set())


def test_boundary_finds_masks_that_deviate(searched: Searched, call: Call, tmp_path: Path) -> None:
    options = ("--strategy", "boundary", *SHORT, "--first", "2", "--shrink", "0")
    said = call("search", searched.pair, *options, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    read = document(tmp_path / "out")
    assert {one["kind"] for one in read["findings"]} <= KINDS
    assert len(read["findings"]) == read["totals"]["searched"] > 0


@pytest.mark.parametrize("strategy", ["random", "dflare", "dflare-published", "diffchaser"])
def test_other_strategies_take_masks(
    strategy: str, searched: Searched, call: Call, tmp_path: Path
) -> None:
    options = ("--strategy", strategy, *SHORT, "--first", "1", "--max-queries", "20")
    said = call("search", searched.pair, *options, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert document(tmp_path / "out")["plan"]["strategy"] == strategy


def test_the_dry_run_says_what_is_compared(searched: Searched, call: Call) -> None:
    said = call("search", searched.pair, "--dry-run", "--device", "emulated-builtin")
    assert said.code == 0
    assert "task: segmentation, overlap 0.88, region 12" in said.out
    assert "climb" in said.out


def test_outputs_that_are_no_masks_are_said_in_the_dry_run(call: Call, tmp_path: Path) -> None:
    task = 'name = "segmentation"\npixels = "classes"'
    pair = write_segmentation_pair(tmp_path / "pair", task)
    said = call("search", pair, "--dry-run", "--device", "emulated-builtin")
    words = " ".join(said.out.split())
    assert said.code == 0
    assert "device has no answer to" in words
    assert "(invalid-output): check the preprocessing and the keys of [task]" in words


def test_compressed_models_are_ranked_by_their_masks(
    searched: Searched, call: Call, tmp_path: Path
) -> None:
    other = write_segmentation_pair(tmp_path / "other", REGIONS)
    shutil.copy(other / "original.tflite", other / "compressed.tflite")
    described = (other / "pair.toml").read_text()
    (other / "pair.toml").write_text(described.replace('"blobs"', '"uncompressed"'))
    options = ("--first", "1", "--max-queries", "20", "--shrink", "0", *DEVICE)
    said = call("rank", searched.pair, other, *options, "--out", tmp_path / "rank")
    assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ('name = "segmentation"\nthreshold = nan', "task.threshold is nan: write a finite number"),
        ('name = "segmentation"\nregion = 600', "a mask has 24 x 24 = 576 pixels: give fewer"),
        ('name = "segmentation"\noverlap = 2.0', "overlap is 2.0; expected a mean IoU from 0 to 1"),
        ('name = "segmentation"\npixels = "classes"\nthreshold = 0.5', "remove the key threshold"),
        ('name = "classification"', "(fits regression or segmentation)"),
    ],
)
def test_a_task_that_does_not_fit_is_one_line(
    task: str, said: str, call: Call, tmp_path: Path
) -> None:
    pair = write_segmentation_pair(tmp_path / "pair", task)
    answer = call("search", pair, "--dry-run", "--device", "emulated-builtin")
    assert answer.code == 2
    assert said in answer.complaint()


def test_masks_of_other_sizes_are_one_line(call: Call, tmp_path: Path) -> None:
    pair = write_segmentation_pair(tmp_path / "pair")
    weights = np.ones((1, 3, 3, 3), np.float32)
    write_mask_model(pair / "compressed.tflite", weights, padded=False)
    answer = call("search", pair, "--dry-run", "--device", "emulated-builtin")
    assert answer.code == 2
    assert "masks of 24 x 24 pixels and the compressed model of 22 x 22" in answer.complaint()
