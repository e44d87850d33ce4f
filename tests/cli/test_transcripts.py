"""What follows a search, for models whose answers are texts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from called_commands import completed, document_of
from reproductions import reproduce, unpacked
from small_pairs import write_text_pair

pytestmark = pytest.mark.slow

Document = dict[str, Any]

SMALL = ("--first", "4", "--max-queries", "100", "--shrink", "20", "--strengthen", "20")
IGNORED = "labels are 5 integers for each seed: the task transcript ignores them"
KINDS = {"word-substituted", "word-deleted", "word-inserted"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_text_pair(folder / "pair")
    completed("search", folder / "pair", *SMALL, "--fail-on", "none", "--out", folder / "run")
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A run of which the test may write into the folder."""
    return shutil.copytree(whole, tmp_path / "run")


def test_the_dry_run_says_how_texts_are_read(whole: Path) -> None:
    said = completed("search", whole.parent / "pair", "--dry-run")
    words = " ".join(said.out.split())
    assert "task: transcript, vocabulary yes, no, <b>; the models give logits" in words
    assert words.count(IGNORED) == 1


def test_labels_that_are_no_classes_are_said_to_be_ignored(whole: Path) -> None:
    assert document_of(whole)["warnings"].count(IGNORED) == 1


def test_findings_are_texts_of_which_a_word_differs(whole: Path) -> None:
    found = document_of(whole)["findings"]
    assert found
    for one in found:
        assert one["verified"]
        assert one["kind"] in KINDS
        assert one["strength"] > 0.0
        (view,), (of_seed,) = one["answers"], one["seed_answers"]
        assert view["words"]["original"] != view["words"]["device"]
        assert of_seed["words"]["original"] == of_seed["words"]["device"]


def test_parameters_that_the_task_has_give_way_to_those_that_are_set(
    whole: Path, tmp_path: Path
) -> None:
    assert document_of(whole)["plan"]["parameters"] == {"first_leap": 2, "shortening_grid": 1}
    options = (
        "--first",
        "1",
        "--max-queries",
        "5",
        "--shrink",
        "0",
        "--fail-on",
        "none",
        "--set",
        "first_leap=4",
    )
    completed("search", whole.parent / "pair", *options, "--out", tmp_path / "run")
    expected = {"first_leap": 4, "shortening_grid": 1}
    assert document_of(tmp_path / "run")["plan"]["parameters"] == expected


def test_explain_compares_texts(run: Path) -> None:
    seed_id = document_of(run)["findings"][0]["seed_id"]
    completed("explain", run, seed_id)
    written = document_of(run, "explain.json")
    (one,) = written["findings"].values()
    assert one["verdict"]["name"] == "compression"
    assert all(vote["described"].startswith('"') for vote in one["evidence"]["votes"])


def test_a_run_is_reported_replayed_and_compared(run: Path, tmp_path: Path) -> None:
    completed("report", run, "--html", "--junit", "--csv")
    for file in ("report.html", "findings.csv"):
        assert "yes" in (run / file).read_text()
    completed("replay", run, "--out", tmp_path / "again", code=1)
    before, after = document_of(run), document_of(tmp_path / "again")
    assert after["replay"]["mended"] == []
    assert {one["kind"] for one in after["findings"]} <= KINDS
    assert {one["sha256"]: one["strength"] for one in after["findings"]} == {
        one["sha256"]: one["strength"] for one in before["findings"]
    }
    completed("compare", run, tmp_path / "again")


def test_an_export_reads_the_same_texts(run: Path, tmp_path: Path) -> None:
    one = document_of(run)["findings"][0]
    archive = tmp_path / "one.zip"
    completed("export", run, one["seed_id"], "--out", archive)
    shown = reproduce(unpacked(archive, tmp_path / "one"))
    assert shown.returncode == 0, shown.stderr
    for arm, words in one["answers"][0]["words"].items():
        assert f"{arm}: {[words]} here, {[words]} when it was found" in shown.stdout
