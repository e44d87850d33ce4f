"""Views of texts, objects and masks in a document that somebody hands over make sense."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import as_json
from edgeflare.core.answer_view import SegmentationView
from edgeflare.errors import UserError
from edgeflare.run.answer_view_check import LETTERS, OBJECTS, wrong_view
from edgeflare.run.document_check import read_document
from structured_views import KINDS, MASKS, structured_finding, structured_run

BOX = {"box": [0.1, 0.1, 0.5, 0.5], "score": 0.9, "label": 0, "difference": ""}


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
        ("detection", objects(box=[0.1, nan, 0.5, 0.5])),
        ("detection", objects(box=[0.1, 0.1, inf, 0.5])),
        ("detection", objects(score=nan)),
        ("detection", {"threshold": inf}),
        ("segmentation", {"mean_iou": nan}),
        ("detection", objects(label=-1)),
        ("detection", {"classes": [3]}),
        ("segmentation", {"masks": {"device": "-1 16"}}),
        ("segmentation", {"masks": {"device": "0 8 1 8 "}}),
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
    wrong = list(wrong_view("here", msgspec.convert(mask, SegmentationView)))
    assert bool(wrong) == (max(1, pixels) != pixels - more)
