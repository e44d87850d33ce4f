"""Every report speaks of the answers of the pair's task: classes, scores or values."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from documents import finding, run_document
from edgeflare.pytest_plugin import _message
from edgeflare.report.answer_words import answer_words, decided, decisions
from edgeflare.report.csv_table import csv_table
from edgeflare.report.junit_xml import junit_xml
from edgeflare.report.markdown_summary import summary
from edgeflare.report.run_terminal import print_run
from edgeflare.run.run_document import RunDocument

SCORES = {
    "form": "threshold", "head": "", "sides": ["quiet", "wake"], "threshold": 0.5,
    "scores": {"original": 0.75, "twin": 0.4375, "device": 0.4375},
    "decisions": {"original": 1, "twin": 0, "device": 0},
}  # fmt: skip
VALUES = {
    "form": "values", "head": "frame 7", "measure": "cosine distance", "distance": 0.25,
    "tolerance": 0.1, "compared": ["original", "device"], "size": 257,
    "names": ["value 3", "value 9"],
    "values": {"original": [1.0, 2.0], "twin": [1.5, 2.0], "device": [1.5, 2.5]},
}  # fmt: skip
KIND = {
    "form": "classes", "head": "kind", "classes": ["cat", "dog"],
    "probabilities": {"original": [0.9, 0.1], "device": [0.2, 0.8]},
    "decisions": {"original": 0, "device": 1},
}  # fmt: skip
SIZE = {
    "form": "classes", "head": "size", "classes": [],
    "probabilities": {"original": [0.1, 0.2, 0.7], "device": [0.1, 0.2, 0.7]},
    "decisions": {"original": 2, "device": 2},
}  # fmt: skip


def run_of(task: str, *answers: dict[str, Any], **fields: Any) -> RunDocument:
    """A run with one finding, of which the document keeps these answers."""
    arms = ("original", "twin", "device") if len(answers) == 1 else ("original", "device")
    found = {
        "labels": dict.fromkeys(arms, 0), "strength": 1.5, "cause": "compression",
        "probabilities": dict.fromkeys(arms, ()), "answers": answers, **fields,
    }  # fmt: skip
    return run_document(pair={"task": task}, findings=[found])


WAKE_WORD = run_of("threshold", SCORES, labels={"original": 1, "twin": 0, "device": 0})
DENOISER = run_of("regression", VALUES)
TWO_HEADS = run_of("classification", KIND, SIZE, labels={"original": 2, "device": 5})


def terminal(run: RunDocument) -> str:
    printed = io.StringIO()
    print_run(Console(file=printed, width=120), run, "runs/first")
    return printed.getvalue()


def row_of(text: str, seed_id: str = "1") -> list[str]:
    return next(
        line.strip("| ").split()
        for line in text.splitlines()
        if line.strip("| ").split()[:1] == [seed_id]
    )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"original": 0, "twin": 1, "device": 1}, "original: ant; twin, device: bee"),
        ({"original": 1, "twin": 0, "device": 1}, "original, device: bee; twin: ant"),
        ({"twin": 1, "device": None}, "twin: bee; device: hang"),
        ({}, ""),
    ],
)
def test_arms_that_agree_are_named_together(labels: dict[str, Any], said: str) -> None:
    run = run_document(classes=["ant", "bee"])
    assert decisions(run, finding(labels=labels, kind="hang")) == said


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (WAKE_WORD, "original: wake (0.75); twin, device: quiet (0.4375)"),
        (TWO_HEADS, "original: cat, 2; device: dog, 2"),
        (
            DENOISER,
            "cosine distance of original and device 0.25 in frame 7, 2.5 times the tolerance 0.1",
        ),
    ],
    ids=["threshold", "heads", "regression"],
)
def test_every_report_says_what_was_answered(run: RunDocument, said: str, tmp_path: Path) -> None:
    (entry,) = run.findings
    assert decisions(run, entry) == said
    assert f"compression: {said} (strength 1.5000)" in junit_xml(run).decode()
    told = _message(run, tmp_path, 0.5, 0.1, entry)
    for part in said.split("; "):
        assert part.rpartition(": ")[2] in told


def test_scores_stand_beside_their_sides() -> None:
    for text in (terminal(WAKE_WORD), summary(WAKE_WORD).replace("| ", "")):
        row = row_of(text)
        assert row[1:7] == ["wake", "(0.75)", "quiet", "(0.4375)", "quiet", "(0.4375)"]


def test_values_have_their_distance_in_place_of_arms() -> None:
    for text in (terminal(DENOISER), summary(DENOISER).replace("| ", "")):
        title = "Findings, the farthest apart first; cosine distance, tolerance 0.1"
        assert title in " ".join(text.split())
        assert row_of(text)[1:4] == ["0.25", "2.5", "compression"]
    assert "on which original and device differ by more than the tolerance" in summary(DENOISER)


def test_labels_that_say_nothing_of_who_is_right_are_not_told() -> None:
    totals = {"harm": {"deviating_seeds": {}, "findings": {"unlabelled": 1}}}
    rate = {
        "images": 9, "deviating": 1, "by_tie": 0, "tied": 0, "rate": 0.1, "low": 0.0, "high": 0.2,
        "harm": {"unlabelled": 1}, "harm_by_tie": {}, "labelled": 0, "right": None,
    }  # fmt: skip
    run = run_document(
        pair={"task": "regression"}, totals=totals, unmutated={"seeds": rate},
        findings=[{"answers": [VALUES], "labels": {"original": 0, "device": 0}}],
    )  # fmt: skip
    for text in (terminal(run), summary(run), junit_xml(run).decode()):
        assert "labelled" not in text
        assert "who is right" not in text


def test_the_table_has_scores_and_distances_where_there_are_any() -> None:
    (row,) = csv.DictReader(io.StringIO(csv_table(WAKE_WORD)))
    assert (row["threshold"], row["original_score"], row["device_score"]) == (
        "0.5",
        "0.75",
        "0.4375",
    )
    assert (row["original"], row["original_class"], row["original_probability"]) == (
        "1", "wake", "",
    )  # fmt: skip
    (row,) = csv.DictReader(io.StringIO(csv_table(DENOISER)))
    assert (row["distance"], row["tolerance"], row["measure"]) == ("0.25", "0.1", "cosine distance")
    assert row["device"] == row["device_class"] == row["device_probability"] == ""
    (row,) = csv.DictReader(io.StringIO(csv_table(TWO_HEADS)))
    assert (row["device"], row["device_class"], row["device_probability"]) == ("5", "dog, 2", "")
    assert "threshold" not in row
    assert "distance" not in row


def test_an_arm_without_an_answer_is_called_what_it_did() -> None:
    failed = {**VALUES, "distance": None, "values": {"original": [1.0, 2.0], "device": None}}
    labels = {"original": 0, "device": None}
    run = run_of("regression", failed, labels=labels, kind="crash", strength=None)
    assert decisions(run, run.findings[0]) == "original: 257 values; device: crash"
    assert row_of(terminal(run))[1:4] == ["–", "–", "crash"]
    assert "257 values; device: crash" in junit_xml(run).decode()
    run = run_of("threshold", SCORES, labels={"original": 1, "device": None}, kind="hang")
    assert [decided(run, run.findings[0], arm) for arm in ("original", "twin", "device")] == [
        "wake (0.75)", "–", "hang",
    ]  # fmt: skip


def test_a_task_of_another_package_decides_and_has_a_strength_without_a_scale() -> None:
    words = answer_words({"task": "night-light"})
    assert words.differ == "decide differently"
    assert "from 0 to 1" in answer_words({}).strength
    assert "from 0 to 1" not in words.strength
