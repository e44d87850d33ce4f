"""Labels, held-out images and names of files, through every command that shows a run."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, refused

pytestmark = pytest.mark.slow

TEST = 40
SMALL = (
    *("--first", "10", "--max-queries", "150", "--chains", "16"),
    *("--shrink", "0", "--within", "none"),
)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Held-out images with labels, and noise on which the example's models differ now and then."""
    path = tmp_path_factory.mktemp("images") / "test.npz"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        seeds, labels = arrays["images"][:TEST], arrays["labels"][:TEST]
    noise = np.random.default_rng(5).integers(0, 256, seeds.shape, dtype=np.uint8)
    np.savez(path, images=np.concatenate([seeds, noise]), labels=np.concatenate([labels, labels]))
    return path


@pytest.fixture(scope="module")
def searched(images: Path, tmp_path_factory: Any) -> tuple[Path, Any]:
    """A search that counts what is harmful, with held-out images; its folder, and what it said."""
    run = tmp_path_factory.mktemp("harm") / "run"
    options = ("--fail-on", "harmful", "--test", images, "--out", run)
    return run, call_here("search", EXAMPLE, *SMALL, *options)


@pytest.fixture
def run(searched: tuple[Path, Any], tmp_path: Path) -> Path:
    return Path(shutil.copytree(searched[0], tmp_path / "run"))


def test_each_finding_says_who_was_right_and_the_totals_count_it(run: Path) -> None:
    told = document_of(run)
    harms = [entry["harm"] for entry in told["findings"]]
    assert len(set(harms)) > 1
    for entry in told["findings"]:
        labels, label = entry["labels"], entry["seed_label"]
        right = [arm for arm in ("original", "device") if labels[arm] == label]
        assert entry["harm"] == (f"{right[0]}-right" if right else "both-wrong")
    assert told["totals"]["harm"]["findings"] == {one: harms.count(one) for one in set(harms)}


def test_the_exit_code_counts_what_is_harmful(searched: tuple[Path, Any]) -> None:
    run, said = searched
    told = document_of(run)
    harmful = sum(entry["harm"] == "original-right" for entry in told["findings"])
    assert 0 < harmful < len(told["findings"])
    assert said.code == 1
    assert f"exit code 1: {harmful / told['totals']['seeds']:.1%} of the seeds" in said.out


def test_unmutated_images_stand_above_all_that_was_mutated(searched: tuple[Path, Any]) -> None:
    run, said = searched
    told = document_of(run)["unmutated"]
    assert told["test"]["inputs"] == 2 * TEST
    assert told["seeds"]["inputs"] == 10
    for figures in told.values():
        assert figures["rate"] == figures["deviating"] / figures["inputs"]
        assert 0 <= figures["low"] <= figures["rate"] <= figures["high"] <= 1
        assert sum(figures["harm"].values()) == figures["deviating"]
    assert said.out.index("unmutated test images") < said.out.index("findings  ")


def test_reports_show_it_the_most_harmful_first(run: Path) -> None:
    completed("report", run, "--html", "--csv", "--junit", "--summary")
    ordered = ["original-right", "both-wrong", "device-right"]
    with (run / "findings.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["list"] == "finding"]
    places = [ordered.index(row["harm"]) for row in rows]
    assert places == sorted(places)
    assert len(set(places)) > 1
    junit = (run / "junit.xml").read_text()
    assert junit.index(", original right: ") < junit.index(", device right: ")
    summary = (run / "summary.md").read_text()
    assert summary.index("unmutated seeds") < summary.index("| findings |")
    assert "The most harmful first" in summary
    page = (run / "report.html").read_text()
    assert page.index("unmutated test images") < page.index('class="gallery"')
    assert page.index('data-harm="original-right"') < page.index('data-harm="device-right"')


def test_runs_are_compared_by_it(run: Path, searched: tuple[Path, Any]) -> None:
    said = call_here("compare", run, searched[0], "--json")
    expected = document_of(run)["totals"]["harm"]["findings"]
    assert [column["harm"] for column in json.loads(said.out)["columns"]] == [expected] * 2


def test_held_out_images_are_not_evaluated_again(run: Path, images: Path) -> None:
    before = document_of(run)
    with sqlite3.connect(run / "run.db") as db:
        db.execute("DELETE FROM answers WHERE role = 'test' AND seed_id >= 70")
        db.execute("UPDATE answers SET seconds = 77 WHERE role = 'test'")
    options = ("--fail-on", "none", "--out", run, "--resume")
    completed("search", EXAMPLE, *SMALL, *options, "--test", images)
    assert document_of(run)["unmutated"] == before["unmutated"]
    with sqlite3.connect(run / "run.db") as db:
        kept = "SELECT count(*), sum(seconds = 77) FROM answers WHERE role = 'test'"
        assert db.execute(kept).fetchone() == (2 * TEST, 70)
    assert "was begun with --test" in refused("search", EXAMPLE, *SMALL, *options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Seeds as files with names of their own, and thus without labels."""
    path = tmp_path / "photographs"
    path.mkdir()
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        for n, image in enumerate(arrays["images"][:3]):
            cv2.imwrite(str(path / f"shoe {n} from above.png"), image)
    return path


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_without_labels_nothing_can_be_harmful(
    more: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ("--seeds", folder, "--fail-on", "harmful", "--out", out)
    assert refused("search", EXAMPLE, *options, *more).startswith(
        "--fail-on harmful needs to know who is right"
    )
    assert not out.exists()


def test_the_names_of_seed_files_are_kept(folder: Path, tmp_path: Path) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    options = ("--seeds", folder, *SMALL, "--first", "2", "--fail-on", "none", "--out", run)
    assert "shoe" in call_here("search", EXAMPLE, *options).out
    entries = document_of(run)["findings"]
    assert [e["seed_name"] for e in entries] == [
        f"shoe {e['seed_id']} from above.png" for e in entries
    ]
    assert all(entry["harm"] is None for entry in entries)
    assert "harm" not in document_of(run)["totals"]
    completed("report", run, "--html", "--csv", "--junit")
    for name in ("report.html", "findings.csv", "junit.xml"):
        assert entries[0]["seed_name"] in (run / name).read_text()
    assert call_here("replay", run, "--out", again).code in (0, 1)
    replayed = document_of(again)
    tried = [*replayed["findings"], *replayed["replay"]["mended"], *replayed["flaky"]]
    assert {e["seed_id"]: e["seed_name"] for e in tried} == {
        e["seed_id"]: e["seed_name"] for e in entries
    }


def test_a_replay_counts_what_is_harmful(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    said = call_here("replay", run, "--out", again, "--fail-on", "harmful")
    harms = [entry["harm"] for entry in document_of(again)["findings"]]
    assert said.code == int("original-right" in harms or bool(document_of(again)["flaky"]))
    completed(
        "replay", run, "--out", tmp_path / "more", "--fail-on", "harmful", "--baseline", again
    )
