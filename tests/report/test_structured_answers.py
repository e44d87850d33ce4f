"""Every report speaks of texts, objects and masks in words, and counts the kinds of deviations."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from documents import run_document
from edgeflare.core.answer_view import SegmentationView, TranscriptView
from edgeflare.pytest_plugin import _message
from edgeflare.report.answer_words import answer_words, decided, decisions, edited_words
from edgeflare.report.csv_table import csv_table
from edgeflare.report.entry_names import named_kind
from edgeflare.report.figure_lines import count_kinds
from edgeflare.report.junit_xml import junit_xml
from edgeflare.report.markdown_summary import summary
from edgeflare.report.run_terminal import print_run
from edgeflare.report.structured_answers import class_shares, in_words, shortened, text_edits
from edgeflare.run.run_document import RunDocument
from structured_views import KINDS, MASKS, OBJECTS, TEXTS, structured_finding, structured_run

COMPARED = ("original", "device")
TASKS = tuple(KINDS)
SAID = {
    "transcript": "original, twin: one two three; device: one four three five; edit distance 2",
    "detection": "original: 2: face 0.51, face 0.93; twin: 1: face 0.92; device: 1: face 0.81",
    "segmentation": "mean IoU of original and device 0.5833, a deviation below 0.9; largest region "
    "that differs 4 pixels, a deviation from 3 on",
}


def terminal(run: RunDocument, width: int = 140) -> str:
    printed = io.StringIO()
    print_run(Console(file=printed, width=width), run, "runs/first")
    return printed.getvalue()


def columns_of(text: str) -> Sequence[str]:
    lines = [line.strip("| ").split() for line in text.splitlines()]
    return next(line for line in lines if line[:1] == ["seed"] and "cause" in line)


def unmarked(text: str) -> str:
    return " ".join(text.replace("| ", "").replace("\\", "").split())


@pytest.mark.parametrize("task", TASKS)
def test_every_report_says_what_was_answered_and_of_which_kind(task: str, tmp_path: Path) -> None:
    run = structured_run(task)
    (entry,) = run.findings
    kind = KINDS[task].replace("-", " ")
    assert decisions(run, entry) == SAID[task]
    assert f"kernel, {kind}: {SAID[task]} (strength 0.2500)" in junit_xml(run).decode()
    assert f'type="kernel, {kind}"' in junit_xml(run).decode()
    told = _message(run, tmp_path, 0.5, 0.1, entry)
    assert f"cause: kernel, {kind}, strength 0.250" in told
    for part in SAID[task].split("; "):
        assert part.partition(": ")[2] in told
    for text in (unmarked(terminal(run)), unmarked(summary(run))):
        assert f"kinds 1 {kind}" in text
        assert f"{kind} kernel" in text
        assert "deviation by a tie" not in text


def test_texts_have_their_edit_distance_behind_the_arms() -> None:
    run = structured_run("transcript")
    for text in (terminal(run), summary(run).replace("| ", "")):
        assert [*columns_of(text)[:5]] == ["seed", "original", "twin", "device", "edits"]
        assert "one four three five 2 word substituted" in unmarked(text)


def test_masks_have_their_mean_iou_in_place_of_arms() -> None:
    run = structured_run("segmentation")
    for text in (terminal(run), summary(run).replace("| ", "")):
        assert "least mean IoU 0.9, region from 3 pixels" in " ".join(text.split())
        assert "1 0.5833 4 low mean iou kernel" in unmarked(text)


def test_regions_are_left_out_of_what_is_said_where_they_do_not_count() -> None:
    run = structured_run(
        "segmentation", structured_finding("segmentation", {**MASKS, "least_region": None})
    )
    assert decisions(run, run.findings[0]).endswith("largest region that differs 4 pixels")
    assert "region from" not in summary(run)


@pytest.mark.parametrize("task", TASKS)
def test_tables_fit_a_terminal_of_80_columns(task: str) -> None:
    assert columns_of(terminal(structured_run(task), 80))[-3:] == ["strength", "queries", "dB"]


@pytest.mark.parametrize("task", TASKS)
def test_an_arm_that_failed_is_called_what_it_did(task: str) -> None:
    view = structured_finding(task)["answers"][0]
    key = {"transcript": "words", "detection": "boxes", "segmentation": "masks"}[task]
    view = {**view, key: {**view[key], "device": None}}
    if task == "segmentation":
        view |= {"mean_iou": None, "region": None}
    labels = {"original": 0, "device": None}
    entry = structured_finding(task, view, kind="crash", labels=labels, strength=None)
    run = structured_run(task, entry)
    said = decisions(run, run.findings[0])
    assert said.endswith("device: crash")
    assert said.startswith("original: ")
    assert "kinds" not in summary(run) + terminal(run)
    (row,) = csv.DictReader(io.StringIO(csv_table(run)))
    assert row["kind"] == "crash"


def test_an_arm_that_failed_beside_a_deviation_gave_no_answer() -> None:
    labels = {"original": 0, "twin": None, "device": 1}
    run = structured_run("detection", structured_finding("detection", labels=labels))
    assert decided(run, run.findings[0], "twin") == "no answer"


def test_the_table_has_texts_objects_and_masks() -> None:
    rows = {
        task: next(csv.DictReader(io.StringIO(csv_table(structured_run(task))))) for task in TASKS
    }
    texts, objects, masks = (rows[task] for task in TASKS)
    assert texts["device_text"] == "one four three five"
    assert (texts["kind"], texts["edit_distance"]) == ("word-substituted", "2")
    assert (objects["original_objects"], objects["device_objects"]) == ("2", "1")
    assert [masks[key] for key in ("mean_iou", "least_iou", "region", "least_region")] == [
        "0.5833", "0.9", "4", "3",
    ]  # fmt: skip
    for row in rows.values():
        assert row["device"] == row["device_class"] == row["device_probability"] == ""
        assert row["device_tied"] == "False"
    assert "device_text" not in objects
    assert "device_objects" not in masks
    assert "mean_iou" not in texts


def test_a_text_that_reads_as_a_formula_or_as_markup_is_neither() -> None:
    evil = {**TEXTS, "words": {"original": ["=1+1"], "device": ["<b>", "\x1b[2J", "|"]}}
    labels = {"original": 0, "device": 1}
    run = structured_run("transcript", structured_finding("transcript", evil, labels=labels))
    (row,) = csv.DictReader(io.StringIO(csv_table(run)))
    assert row["original_text"] == "'=1+1"
    assert "\x1b" not in row["device_text"] + terminal(run) + summary(run) + junit_xml(run).decode()
    assert r"\<b\>" in summary(run)


def test_a_long_text_is_shortened_in_tables_only() -> None:
    words = ["word"] * 400
    long = {**TEXTS, "words": {"original": words, "device": [*words, "more"]}}
    entry = structured_finding("transcript", long, labels={"original": 0, "device": 1})
    run = structured_run("transcript", entry)
    assert terminal(run).count("word") < 60
    assert summary(run).count("word") < 200
    (row,) = csv.DictReader(io.StringIO(csv_table(run)))
    assert len(row["device_text"].split()) == 401
    assert decisions(run, run.findings[0]).endswith("edit distance 1")


def test_texts_that_take_long_to_align_have_no_edit_distance() -> None:
    long = {**TEXTS, "words": {"original": ["a"] * 600, "device": ["b"] * 600}}
    run = structured_run("transcript", structured_finding("transcript", long))
    assert edited_words(run, run.findings[0]) is None
    assert "edit distance" not in decisions(run, run.findings[0])


def test_kernel_searches_compare_the_twins_text() -> None:
    run = structured_run("transcript", find="kernel")
    other = {**TEXTS, "words": {**TEXTS["words"], "twin": ["one", "four", "three", "five"]}}
    assert edited_words(run, run.findings[0]) == 2
    run = structured_run("transcript", structured_finding("transcript", other), find="kernel")
    assert edited_words(run, run.findings[0]) == 0


def test_classes_without_names_have_those_of_the_pair_or_numbers() -> None:
    entry = structured_finding("detection", {**OBJECTS, "classes": []})
    for classes, named in (([], "1: 0 0.81"), (["cat"], "1: cat 0.81")):
        run = structured_run("detection", entry, classes=classes)
        assert decided(run, run.findings[0], "device") == named


def test_more_than_three_objects_and_none_are_said() -> None:
    box = OBJECTS["boxes"]["device"][0]
    boxes = {"original": [{**box, "score": 0.9 - n / 10} for n in range(4)], "device": []}
    run = structured_run("detection", structured_finding("detection", {**OBJECTS, "boxes": boxes}))
    assert decided(run, run.findings[0], "original") == "4: face 0.9, face 0.8, face 0.7, …"
    assert decided(run, run.findings[0], "device") == "no object"


def test_a_mask_is_said_by_the_shares_of_its_classes() -> None:
    view = msgspec.convert(MASKS, SegmentationView)
    assert in_words(view, "device") == "background 75.0%, person 25.0%"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 50)), min_size=1))
def test_shares_of_classes_add_up_and_fall(runs: list[tuple[int, int]]) -> None:
    shares = class_shares(" ".join(str(number) for run in runs for number in run))
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert set(shares) == {label for label, _ in runs}


@given(st.text(), st.integers(1, 40))
def test_a_shortened_text_begins_alike(text: str, most: int) -> None:
    short = shortened(text, most)
    assert len(short) <= most
    assert short == text if len(text) <= most else text.startswith(short[:-1])


def test_an_empty_text_is_said() -> None:
    view = TranscriptView("", " ", {"original": (), "device": None})
    assert in_words(view, "original") == "(no words)"
    assert text_edits(view, COMPARED) is None


def test_kinds_are_counted_where_the_task_tells_them_apart() -> None:
    kinds = ("object-moved", "object-vanished", "object-moved", "crash")
    found = [structured_finding("detection", kind=kind, seed_id=n) for n, kind in enumerate(kinds)]
    run = structured_run("detection", *found)
    assert list(count_kinds(run.findings).items()) == [("object moved", 2), ("object vanished", 1)]
    assert "2 object moved, 1 object vanished" in unmarked(terminal(run))


@pytest.mark.parametrize("kind", ["deviation", "crash", "hang", "invalid-output"])
def test_classifiers_have_no_kinds(kind: str) -> None:
    entry: dict[str, Any] = {"labels": {"original": 0, "device": 1}, "kind": kind}
    run = run_document(findings=[entry])
    assert named_kind(run.findings[0]) == ""
    assert "kind" not in terminal(run) + summary(run)


@pytest.mark.parametrize("task", TASKS)
def test_strength_has_words_of_its_own(task: str) -> None:
    assert "confidently" not in answer_words({"task": task}).strength
