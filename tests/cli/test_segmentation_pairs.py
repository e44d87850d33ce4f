"""The commands on models that give a class for each pixel."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import call_here, completed, document_of, refused
from reproductions import reproduce, unpacked
from segmentation_pairs import write_mask_model, write_segmentation_pair

pytestmark = pytest.mark.slow

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
def whole(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("segmentation")
    pair = write_segmentation_pair(folder / "pair", REGIONS)
    refined = ("--first", "3", "--strengthen", "20", "--shrink", "20", "--within", "none")
    completed("search", pair, "--out", folder / "run", *SHORT, *refined)
    return Searched(pair, folder / "run")


@pytest.fixture
def searched(whole: Searched, tmp_path: Path) -> Searched:
    """A run of which the test may write into the folder."""
    return Searched(whole.pair, shutil.copytree(whole.run, tmp_path / "run"))


def pixels(runs: str) -> int:
    return sum(map(int, runs.split()[1::2]))


def deviations(run: Path) -> dict[int, Document]:
    read = document_of(run)
    return {entry["seed_id"]: entry for entry in (*read["findings"], *read["deviating_seeds"])}


def test_both_kinds_are_found_and_kept_with_their_masks(searched: Searched) -> None:
    read = document_of(searched.run)
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


def test_explain_and_report_say_something_of_each(searched: Searched) -> None:
    completed("explain", searched.run)
    written = document_of(searched.run, "explain.json")
    assert written["findings"].keys() == {str(seed_id) for seed_id in deviations(searched.run)}
    for one in written["findings"].values():
        assert one["verdict"]["name"] == "compression"
        described = [vote["described"] for vote in one["evidence"]["votes"]]
        assert all(re.match(r"(ground|blob) \d+ %", text) for text in described)
    completed("report", searched.run, "--html", "--junit", "--csv")
    page = (searched.run / "report.html").read_text()
    assert all(f"seed {seed_id}" in page.lower() for seed_id in deviations(searched.run))


def test_a_replay_finds_the_same_masks_again(searched: Searched, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for of, to in ((searched.run, first), (first, second)):
        completed("replay", of, "--out", to, code=1)  # all of it still deviates
    assert document_of(second)["replay"]["mended"] == []
    for seed_id, entry in deviations(second).items():
        before = deviations(searched.run)[seed_id]
        assert (entry["kind"], entry["answers"]) == (before["kind"], before["answers"])
    completed("compare", searched.run, second)


def test_an_export_shows_the_overlap_without_edgeflare(searched: Searched, tmp_path: Path) -> None:
    of_each_kind = {entry["kind"]: entry for entry in deviations(searched.run).values()}
    assert of_each_kind.keys() == KINDS
    for entry in of_each_kind.values():
        seed_id = entry["seed_id"]
        archive = tmp_path / f"{seed_id}.zip"
        completed("export", searched.run, seed_id, "--out", archive)
        shown = reproduce(unpacked(archive, archive.with_suffix("")))
        assert shown.returncode == 0, shown.stderr
        said = re.search(r"^mean IoU (\S+), largest region that differs (\d+) ", shown.stdout, re.M)
        assert said
        (view,) = entry["answers"]
        assert float(said[1]) == pytest.approx(view["mean_iou"], abs=1e-4)
        assert int(said[2]) == view["region"]


@pytest.mark.parametrize("find", ["compression", "kernel"])
def test_other_deviations_are_searched_too(find: str, searched: Searched, tmp_path: Path) -> None:
    options = ("--find", find, *SHORT, "--first", "2", "--shrink", "0")
    completed("search", searched.pair, *options, "--out", tmp_path / "out")
    found = document_of(tmp_path / "out")["findings"]
    assert {one["cause"] for one in found} == ({"compression"} if find == "compression" else set())


def test_the_dry_run_says_what_is_compared(searched: Searched) -> None:
    said = completed("search", searched.pair, "--dry-run", "--device", "emulated-builtin")
    assert "task: segmentation, overlap 0.88, region 12" in said.out
    assert "climb" in said.out


def test_outputs_that_are_no_masks_are_said_in_the_dry_run(tmp_path: Path) -> None:
    task = 'name = "segmentation"\npixels = "classes"'
    pair = write_segmentation_pair(tmp_path / "pair", task)
    said = call_here("search", pair, "--dry-run", "--device", "emulated-builtin")
    words = " ".join(said.out.split())
    assert said.code == 0
    assert "device has no answer to" in words
    assert "(invalid-output): check the preprocessing and the keys of [task]" in words


def test_masks_of_other_sizes_are_one_line(tmp_path: Path) -> None:
    pair = write_segmentation_pair(tmp_path / "pair")
    weights = np.ones((1, 3, 3, 3), np.float32)
    write_mask_model(pair / "compressed.tflite", weights, padded=False)
    assert "masks of 24 x 24 pixels and the compressed model of 22 x 22" in refused(
        "search", pair, "--dry-run", "--device", "emulated-builtin"
    )
