"""Views of answers that are no classes: what a document keeps of them, and which it refuses."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import Document, as_json
from edgeflare.core.joint_answer import joint_answer
from edgeflare.core.query import Arm, Outcome
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.models.pair_interface import PairInterface
from edgeflare.pages.answers.boxes import OBJECTS
from edgeflare.pages.answers.masks import SegmentationView
from edgeflare.pages.answers.texts import LETTERS
from edgeflare.report.html.run_html import run_html
from edgeflare.run.finding_outcomes import labels_of
from edgeflare.run.load_document import load_document, read_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.tasks.classification import ClassDecoder
from laboratory import CLASSES, SIDE, Laboratory, linear
from structured_views import FACE, KINDS, MASKS, structured_finding, structured_run

BOX = {**FACE, "score": 0.9}


def objects(**fields: Any) -> dict[str, Any]:
    return {"boxes": {"device": [{**BOX, **fields}]}}


def stored(folder: Path, task: str, key: str = "answers", **fields: Any) -> Path:
    """Write a run whose finding has such a view, changed."""
    entry = structured_finding(task, seed_answers=structured_finding(task)["answers"])
    entry[key] = [{**entry[key][0], **fields}]
    path = folder / "run.json"
    path.write_text(json.dumps(as_json(structured_run(task, entry))))
    return path


@pytest.mark.parametrize("task", KINDS)
def test_views_that_make_sense_are_read(task: str, tmp_path: Path) -> None:
    (entry,) = read_document(stored(tmp_path, task)).findings
    assert entry.answers == entry.seed_answers


@pytest.mark.parametrize("key", ["answers", "seed_answers"])
@pytest.mark.parametrize(
    ("task", "fields", "named"),
    [
        ("detection", objects(label=2**40), "label is 1099511627776, not a class"),
        ("detection", {"boxes": {"device": [BOX] * (OBJECTS + 1)}}, "more than 10,000"),
        ("segmentation", {"masks": {"device": "0 8 1 7"}}, "not the 16 pixels of a mask"),
        ("segmentation", {"masks": {"device": "0 16 1 0"}}, "not the 16 pixels of a mask"),
        ("segmentation", {"masks": {"device": "0 8 1"}}, "not the 16 pixels of a mask"),
        ("segmentation", {"masks": {"device": ""}}, "not the 16 pixels of a mask"),
        ("segmentation", {"masks": {"device": f"{2**31} 16"}}, "not a class"),
        ("transcript", {"words": {"device": ["a" * LETTERS]}}, "more than 100,000"),
        ("transcript", {"separator": LETTERS * " "}, "more than 100,000"),
    ],
)
def test_a_view_without_sense_is_named_with_its_place(
    key: str, task: str, fields: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as raised:
        read_document(stored(tmp_path, task, key, **fields))
    assert str(raised.value).startswith(f"{tmp_path}/run.json is damaged: findings[0].{key}[0]")
    assert named in str(raised.value)


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("detection", objects(box=[0.1, 0.1, 0.5])),
        ("detection", objects(box=[0.1, 0.1, inf, 0.5])),
        ("detection", {"threshold": nan}),
        ("detection", objects(label=-1)),
        ("detection", {"classes": [3]}),
        ("segmentation", {"masks": {"device": "-1 16"}}),
        ("segmentation", {"masks": {"device": "0 " + 5000 * "1"}}),
        ("segmentation", {"rows": 100_000}),
        ("transcript", {"words": {"device": [1]}}),
    ],
)
def test_the_schema_and_the_reader_refuse_what_they_can(
    task: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    path = stored(tmp_path, task)
    plain = json.loads(path.read_text())
    plain["findings"][0]["answers"][0] |= fields
    path.write_text(json.dumps(plain))
    with pytest.raises(UserError, match="damaged"):
        read_document(path)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1), st.integers(-3, 3))
def test_runs_are_refused_unless_they_add_up(runs: list[tuple[int, int]], more: int) -> None:
    pixels = sum(length for _, length in runs) + more
    numbers = " ".join(str(number) for run in runs for number in run)
    mask = {**MASKS, "rows": max(1, pixels), "columns": 1, "masks": {"device": numbers}}
    wrong = list(msgspec.convert(mask, SegmentationView).wrong("here"))
    assert bool(wrong) == (max(1, pixels) != pixels - more)


TOLERANCE = 0.2


@pytest.fixture(scope="module")
def regression(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Document]:
    rng = np.random.default_rng(7)
    images = rng.integers(0, 256, (4, SIDE, SIDE, 1), dtype=np.uint8)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    bent = weights + rng.normal(scale=0.1, size=weights.shape).astype(np.float32)
    laboratory = Laboratory(
        tmp_path_factory.mktemp("regression"),
        images,
        {Arm.ORIGINAL: linear(weights), Arm.TWIN: linear(bent), Arm.DEVICE: linear(bent, 0.01)},
        interface=PairInterface(task="regression", task_settings={"tolerance": TOLERANCE}),
    )
    return laboratory.folder / "run", laboratory.run("run")


def damaged(folder: Path, document: Document, change: dict[str, Any]) -> str:
    """Return why a document is refused, one view of which is changed."""
    entries = document["deviating_seeds"] + document["findings"]
    view = change if "head" in change else {**entries[0]["answers"][0], **change}
    entry = {**entries[0], "answers": [view]}
    content = {**document, "findings": [entry], "deviating_seeds": []}
    (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError) as refused:
        load_document(RunDirectory(folder))
    return str(refused.value)


def test_distances_are_kept_with_the_values_of_each_arm(regression: tuple[Path, Document]) -> None:
    folder, document = regression
    entries = [*document["deviating_seeds"], *document["findings"]]
    assert entries
    for entry in entries:
        (view,) = entry["answers"]
        assert view["form"] == "values"
        assert view["tolerance"] == TOLERANCE < view["distance"]
        assert entry["strength"] == pytest.approx(view["distance"] / TOLERANCE - 1)
        given = view["values"]
        difference = np.abs(np.subtract(given["original"], given["device"]))
        assert difference.max() == pytest.approx(view["distance"], rel=1e-5)
        assert entry["probabilities"] == {arm: [] for arm in given}
    read = load_document(RunDirectory(folder))
    assert "times the tolerance 0.2" in run_html(read, RunDirectory(folder), {})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tolerance": 0}, "answers[0]"),
        ({"form": "smells"}, "answers[0]"),
        ({"values": {"device": [1.0]}}, "answers[0].values.device has 1 values, but names 3"),
        (
            {"form": "classes", "head": "", "classes": [], "probabilities": {},
             "decisions": {"twin": 2}},
            "decisions.twin is 2, but twin has 0 probabilities",
        ),
    ],
)  # fmt: skip
def test_a_damaged_view_is_refused(
    regression: tuple[Path, Document], tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    assert why in damaged(tmp_path, regression[1], change)


def test_joint_decisions_that_are_too_many_are_numbered() -> None:
    decoder = ClassDecoder((Tensor("scores", (1, 10), "float32"),), 0, "logits")

    def clip(*classes: int) -> Any:
        rows = RawBatch(np.eye(10, dtype=np.float32)[list(classes)])
        return joint_answer(list(decoder.read(rows)))

    first, other = clip(*[9] * 30), clip(*[9] * 29, 3)
    assert first.decision > 2**53
    outcomes = [Outcome({Arm.ORIGINAL: first, Arm.DEVICE: one}) for one in (other, first)]
    assert labels_of(outcomes) == ({"original": 0, "device": 1}, {"original": 0, "device": 0})
