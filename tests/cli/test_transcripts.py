"""What follows a search, for models whose answers are texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgeflare.diagnose import explain_document
from reproductions import reproduce, unpacked
from small_pairs import write_text_pair

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
Document = dict[str, Any]

SMALL = ("--first", "4", "--max-queries", "100", "--shrink", "20", "--strengthen", "20")
IGNORED = "labels are 5 integers for each seed: the task transcript ignores them"
KINDS = {"word-substituted", "word-deleted", "word-inserted"}


def document(run: Path) -> Document:
    read: Document = json.loads((run / "run.json").read_bytes())
    return read


@pytest.fixture(scope="module")
def whole(call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_text_pair(folder / "pair")
    said = call("search", folder / "pair", *SMALL, "--fail-on", "none", "--out", folder / "run")
    assert said.code == 0, said.err
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A run of which the test may write into the folder."""
    return shutil.copytree(whole, tmp_path / "run")


def test_the_dry_run_says_how_texts_are_read(whole: Path, call: Call) -> None:
    said = call("search", whole.parent / "pair", "--dry-run")
    assert said.code == 0
    words = " ".join(said.out.split())
    assert "task: transcript, vocabulary yes, no, <b>; the models give logits" in words
    assert words.count(IGNORED) == 1


def test_labels_that_are_no_classes_are_said_to_be_ignored(whole: Path) -> None:
    assert document(whole)["warnings"].count(IGNORED) == 1


def test_findings_are_texts_of_which_a_word_differs(whole: Path) -> None:
    found = document(whole)["findings"]
    assert found
    for one in found:
        assert one["verified"]
        assert one["kind"] in KINDS
        assert one["strength"] > 0.0
        (view,), (of_seed,) = one["answers"], one["seed_answers"]
        assert view["words"]["original"] != view["words"]["device"]
        assert of_seed["words"]["original"] == of_seed["words"]["device"]


@pytest.mark.parametrize("find", ["compression", "kernel"])
def test_every_difference_can_be_looked_for(
    find: str, whole: Path, call: Call, tmp_path: Path
) -> None:
    options = ("--first", "1", "--max-queries", "20", "--fail-on", "none", "--find", find)
    said = call("search", whole.parent / "pair", *options, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    assert document(tmp_path / "run")["plan"]["goal"]["find"] == find


def test_parameters_that_the_task_has_give_way_to_those_that_are_set(
    whole: Path, call: Call, tmp_path: Path
) -> None:
    assert document(whole)["plan"]["parameters"] == {"first_leap": 2, "shortening_grid": 1}
    options = ("--first", "1", "--max-queries", "5", "--fail-on", "none", "--set", "first_leap=4")
    said = call("search", whole.parent / "pair", *options, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    expected = {"first_leap": 4, "shortening_grid": 1}
    assert document(tmp_path / "run")["plan"]["parameters"] == expected


def test_explain_compares_texts(run: Path, call: Call) -> None:
    seed_id = document(run)["findings"][0]["seed_id"]
    assert call("explain", run, seed_id).code == 0
    written = json.loads((run / "explain.json").read_bytes())
    schema = Path(explain_document.__file__).with_name("explain.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(written)
    (one,) = written["findings"].values()
    assert one["verdict"]["name"] == "compression"
    assert all(vote["described"].startswith('"') for vote in one["evidence"]["votes"])


def test_a_run_is_reported_replayed_and_compared(run: Path, call: Call, tmp_path: Path) -> None:
    assert call("report", run, "--html", "--junit", "--csv").code == 0
    for file in ("report.html", "findings.csv"):
        assert "yes" in (run / file).read_text()
    assert call("replay", run, "--out", tmp_path / "again").code == 1
    before, after = document(run), document(tmp_path / "again")
    assert after["replay"]["mended"] == []
    assert {one["kind"] for one in after["findings"]} <= KINDS
    assert {one["sha256"]: one["strength"] for one in after["findings"]} == {
        one["sha256"]: one["strength"] for one in before["findings"]
    }
    assert call("compare", run, tmp_path / "again").code == 0


def test_an_export_reads_the_same_texts(run: Path, call: Call, tmp_path: Path) -> None:
    one = document(run)["findings"][0]
    archive = tmp_path / "one.zip"
    assert call("export", run, one["seed_id"], "--out", archive).code == 0
    shown = reproduce(unpacked(archive, tmp_path / "one"))
    assert shown.returncode == 0, shown.stderr
    for arm, words in one["answers"][0]["words"].items():
        assert f"{arm}: {[words]} here, {[words]} when it was found" in shown.stdout


@pytest.mark.parametrize("strategy", ["boundary", "dflare", "dflare-published", "diffchaser"])
def test_strategies_of_the_paper_need_its_operators(
    strategy: str, whole: Path, call: Call, tmp_path: Path
) -> None:
    """Arrays have none; sounds have, see `tests/domains/audio`."""
    options = ("--strategy", strategy, "--first", "1", "--max-queries", "5", "--fail-on", "none")
    said = call("search", whole.parent / "pair", *options, "--out", tmp_path / "run")
    assert said.code == (0 if strategy == "boundary" else 2), said.err


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("blank = 7", "blank is 7, but 3 symbols and the blank are outputs 0 to 3"),
        ('decoding = "argmax"', "has 4 values a step, but vocabulary has 3 symbols: give 4"),
        ('separator = " "', "no symbol is it or begins with it"),
    ],
)
def test_a_wrong_vocabulary_is_one_line(task: str, said: str, call: Call, tmp_path: Path) -> None:
    pair = write_text_pair(tmp_path / "pair", task)
    ended = call("search", pair, "--dry-run")
    assert ended.code == 2
    assert said in ended.complaint()
