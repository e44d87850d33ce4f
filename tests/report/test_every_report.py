"""Every report speaks of inputs, answers and distances as the pair's domain and task do."""

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

from documents import REPLAY, Document, finding, run_document, run_pair
from edgeflare.errors import UserError
from edgeflare.pages.answers.masks import SegmentationView, class_shares
from edgeflare.pages.answers.texts import TranscriptView
from edgeflare.pages.facts import shortened
from edgeflare.pages.junit import junit_xml
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.page import Sentences, Table
from edgeflare.pytest_results import _message
from edgeflare.report.entry_words import (
    answer_cell,
    answer_columns,
    answer_words,
    decided,
    decisions,
    edited_words,
    input_words,
    named_kind,
)
from edgeflare.report.html.charts import charts_of
from edgeflare.report.html.run_html import run_html
from edgeflare.report.nearness_figure import draw_nearness
from edgeflare.report.run_csv import run_csv
from edgeflare.report.run_figures import count_kinds, nearness_lines, unmutated_lines
from edgeflare.report.run_page import NOT_MEANT, coverage_blocks, print_run, run_page
from edgeflare.report.run_suite import run_suite
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument, from_json
from recorded_run import Run
from structured_views import KINDS, MASKS, OBJECTS, TEXTS, structured_finding, structured_run

TASKS = tuple(KINDS)
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
LABELS = {"original": 0, "device": 1}


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


def terminal(run: RunDocument, width: int = 140) -> str:
    printed = io.StringIO()
    print_run(Console(file=printed, width=width), run, "runs/first")
    return printed.getvalue()


def summary(run: RunDocument) -> str:
    return markdown_page(run_page(run))


def junit(run: RunDocument) -> str:
    return junit_xml(run_suite(run)).decode()


def csv_row(run: RunDocument) -> dict[str, str]:
    (row,) = csv.DictReader(io.StringIO(run_csv(run)))
    return row


def tables(run: RunDocument) -> tuple[str, str]:
    """What terminal and summary say, without what makes tables of it."""
    return terminal(run), summary(run).replace("| ", "").replace("\\", "")


def flat(text: str) -> str:
    return " ".join(text.split())


def row_of(text: str, first: str = "1") -> list[str]:
    """The words of the row of entries that begins so."""
    lines = (line.strip("| ").split() for line in text[text.index("Figures") :].splitlines())
    return next(line for line in lines if line[:1] == [first])


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


ANSWERED = [
    (WAKE_WORD, "original: wake (0.75); twin, device: quiet (0.4375)"),
    (TWO_HEADS, "original: cat, 2; device: dog, 2"),
    (
        DENOISER,
        "cosine distance of original and device 0.25 in frame 7, 2.5 times the tolerance 0.1",
    ),
    (
        structured_run("transcript"),
        "original, twin: one two three; device: one four three five; edit distance 2",
    ),
    (
        structured_run("detection"),
        "original: 2: face 0.51, face 0.93; twin: 1: face 0.92; device: 1: face 0.81 (0.31 there)",
    ),
    (
        structured_run("segmentation"),
        "mean IoU of original and device 0.5833, a deviation below 0.9; largest region "
        "that differs 4 pixels, a deviation from 3 on",
    ),
]


@pytest.mark.parametrize(("run", "said"), ANSWERED, ids=[run.pair.task for run, _ in ANSWERED])
def test_every_report_says_what_was_answered_and_of_which_kind(
    run: RunDocument, said: str, tmp_path: Path
) -> None:
    (entry,) = run.findings
    kind = KINDS.get(run.pair.task_name, "").replace("-", " ").replace("iou", "IoU")
    sort = f"{entry.cause}, {kind}" if kind else str(entry.cause)
    assert decisions(run, entry) == said
    assert f"{sort}: {said} (strength {entry.strength:.4f})" in junit(run)
    assert f'type="{sort}"' in junit(run)
    told = _message(run, tmp_path, 0.5, 0.1, entry)
    assert f"cause: {sort}, strength {entry.strength:.3f}" in told
    for part in said.split("; "):
        assert part.rpartition(": ")[2] in told
    for text in map(flat, tables(run)):
        assert ("kinds" in text) == bool(kind)
        if kind:
            assert f"kinds 1 {kind}" in text
            assert f"{kind} kernel" in text
            assert "deviation by a tie" not in text


def test_tables_have_what_is_compared_in_the_place_of_classes() -> None:
    """Scores beside sides, distances and mean IoU in place of arms, edits behind them."""
    for text in tables(WAKE_WORD):
        assert row_of(text)[1:7] == ["wake", "(0.75)", "quiet", "(0.4375)", "quiet", "(0.4375)"]
    for text in tables(DENOISER):
        title = "The farthest apart first; cosine distance, tolerance 0.1"
        assert title in flat(text)
        assert row_of(text)[1:4] == ["0.25", "2.5", "compression"]
    assert "on which original and device differ by more than the tolerance" in summary(DENOISER)
    for text in tables(structured_run("transcript")):
        assert row_of(text, "seed")[:5] == ["seed", "original", "twin", "device", "edits"]
        assert "one four three five 2 word substituted" in flat(text)
    for text in tables(structured_run("segmentation")):
        assert "least mean IoU 0.9, region from 3 pixels" in flat(text)
        assert "1 0.5833 4 low mean IoU kernel" in flat(text)


def test_regions_are_left_out_of_what_is_said_where_they_do_not_count() -> None:
    without = structured_finding("segmentation", {**MASKS, "least_region": None})
    run = structured_run("segmentation", without)
    assert decisions(run, run.findings[0]).endswith("largest region that differs 4 pixels")
    assert "region from" not in summary(run)


@pytest.mark.parametrize("task", TASKS)
def test_tables_fit_a_terminal_of_80_columns(task: str) -> None:
    head = row_of(terminal(structured_run(task), 80), "seed")
    assert "strength" in head
    assert {"queries", "dB"} & set(head)


def test_labels_that_say_nothing_of_who_is_right_are_not_told() -> None:
    totals = {"harm": {"deviating_seeds": {}, "findings": {"unlabelled": 1}}}
    rate = {**RATE, "harm": {"unlabelled": 1}, "harm_by_tie": {}}
    run = run_document(
        pair={"task": "regression"}, totals=totals, unmutated={"seeds": rate},
        findings=[{"answers": [VALUES], "labels": {"original": 0, "device": 0}}],
    )  # fmt: skip
    for text in (terminal(run), summary(run), junit(run)):
        assert "labelled" not in text
        assert "who is right" not in text


@pytest.mark.parametrize(
    ("run", "cells", "absent"),
    [
        (
            WAKE_WORD,
            {
                "threshold": "0.5", "original_score": "0.75", "device_score": "0.4375",
                "original": "1", "original_class": "wake", "original_probability": "",
            },
            "distance",
        ),
        (
            DENOISER,
            {
                "distance": "0.25", "tolerance": "0.1", "measure": "cosine distance",
                "device": "", "device_class": "", "device_probability": "",
            },
            "threshold",
        ),
        (
            TWO_HEADS,
            {"device": "5", "device_class": "dog, 2", "device_probability": ""},
            "threshold",
        ),
        (
            structured_run("transcript"),
            {
                "device_text": "one four three five", "kind": "word-substituted",
                "edit_distance": "2", "device": "", "device_class": "", "device_tied": "False",
            },
            "mean_iou",
        ),
        (
            structured_run("detection"),
            {"original_objects": "2", "device_objects": "1", "device": "", "device_class": ""},
            "device_text",
        ),
        (
            structured_run("segmentation"),
            {
                "mean_iou": "0.5833", "least_iou": "0.9", "region": "4", "least_region": "3",
                "device": "", "device_probability": "",
            },
            "device_objects",
        ),
    ],
)  # fmt: skip
def test_csv_has_columns_of_the_task_where_there_are_any(
    run: RunDocument, cells: dict[str, str], absent: str
) -> None:
    row = csv_row(run)
    assert {name: row[name] for name in cells} == cells
    assert absent not in row


def test_an_arm_without_an_answer_is_called_what_it_did() -> None:
    failed = {**VALUES, "distance": None, "values": {"original": [1.0, 2.0], "device": None}}
    labels = {"original": 0, "device": None}
    run = run_of("regression", failed, labels=labels, kind="crash", strength=None)
    assert decisions(run, run.findings[0]) == "original: 257 values; device: crash"
    assert row_of(terminal(run))[1:4] == ["–", "–", "crash"]
    assert "257 values; device: crash" in junit(run)
    run = run_of("threshold", SCORES, labels={"original": 1, "device": None}, kind="hang")
    said = [decided(run, run.findings[0], arm) for arm in ("original", "twin", "device")]
    assert said == ["wake (0.75)", "–", "hang"]


@pytest.mark.parametrize("task", TASKS)
def test_an_arm_that_failed_gave_no_answer_of_any_structure(task: str) -> None:
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
    assert csv_row(run)["kind"] == "crash"
    beside = structured_run(task, structured_finding(task, labels={**LABELS, "twin": None}))
    assert decided(beside, beside.findings[0], "twin") == "no answer"


def test_a_task_of_another_package_decides_and_has_a_strength_without_a_scale() -> None:
    words = answer_words(run_pair(task="night-light"))
    assert words.differ == "decide differently"
    assert "from 0 to 1" in answer_words(run_pair()).strength
    assert "from 0 to 1" not in words.strength
    assert not any("confidently" in answer_words(run_pair(task=task)).strength for task in TASKS)


def transcripts(words: dict[str, Sequence[str]], **fields: Any) -> RunDocument:
    entry = structured_finding("transcript", {**TEXTS, "words": words}, labels=LABELS)
    return structured_run("transcript", entry, **fields)


def test_a_text_that_reads_as_a_formula_or_as_markup_is_neither() -> None:
    run = transcripts({"original": ["=1+1"], "device": ["<b>", "\x1b[2J", "|"]})
    row = csv_row(run)
    assert row["original_text"] == "'=1+1"
    assert "\x1b" not in row["device_text"] + terminal(run) + summary(run) + junit(run)
    assert r"\<b\>" in summary(run)


def test_a_long_text_is_shortened_in_tables_only() -> None:
    words = ["word"] * 400
    run = transcripts({"original": words, "device": [*words, "more"]})
    assert terminal(run).count("word") < 60
    assert summary(run).count("word") < 200
    assert len(csv_row(run)["device_text"].split()) == 401
    assert decisions(run, run.findings[0]).endswith("edit distance 1")


def test_texts_that_take_long_to_align_have_no_edit_distance() -> None:
    run = transcripts({"original": ["a"] * 600, "device": ["b"] * 600})
    assert edited_words(run, run.findings[0]) is None
    assert "edit distance" not in decisions(run, run.findings[0])


def test_kernel_searches_compare_the_twins_text() -> None:
    words = TEXTS["words"]
    for twin, edits in ((words["twin"], 2), (words["device"], 0)):
        run = transcripts({**words, "twin": twin}, find="kernel")
        assert edited_words(run, run.findings[0]) == edits


@pytest.mark.parametrize(("classes", "named"), [([], "1: 0 0.81"), (["cat"], "1: cat 0.81")])
def test_classes_without_names_have_those_of_the_pair_or_numbers(
    classes: list[str], named: str
) -> None:
    boxes = {"device": OBJECTS["boxes"]["device"]}
    entry = structured_finding("detection", {**OBJECTS, "classes": [], "boxes": boxes})
    run = structured_run("detection", entry, classes=classes)
    assert decided(run, run.findings[0], "device") == named


def test_objects_of_which_the_scores_alone_differ_share_a_row() -> None:
    boxes = {**OBJECTS["boxes"], "device": [{**OBJECTS["boxes"]["device"][0], "score": 0.7}]}
    entries = [
        structured_finding("detection", {**OBJECTS, "boxes": some}, seed_id=n)
        for n, some in enumerate((OBJECTS["boxes"], boxes))
    ]
    for text in tables(structured_run("detection", *entries)):
        assert "2 in 1 row: " in flat(text)


def test_more_than_three_objects_and_none_are_said() -> None:
    box = OBJECTS["boxes"]["device"][0]
    boxes = {"original": [{**box, "score": 0.9 - n / 10} for n in range(4)], "device": []}
    run = structured_run("detection", structured_finding("detection", {**OBJECTS, "boxes": boxes}))
    assert decided(run, run.findings[0], "original") == "4: face 0.9, face 0.8, face 0.7, …"
    assert decided(run, run.findings[0], "device") == "no object"


def test_a_mask_is_said_by_the_shares_of_its_classes_and_an_empty_text_too() -> None:
    view = msgspec.convert(MASKS, SegmentationView)
    assert view.decision("device") == "background 75.0%, person 25.0%"
    text = TranscriptView("", " ", {"original": (), "device": None})
    assert text.decision("original") == "(no words)"
    assert text.edits(("original", "device")) is None


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


def test_kinds_are_counted_where_the_task_tells_them_apart() -> None:
    kinds = ("object-moved", "object-vanished", "object-moved", "crash")
    found = [structured_finding("detection", kind=kind, seed_id=n) for n, kind in enumerate(kinds)]
    run = structured_run("detection", *found)
    assert list(count_kinds(run.findings).items()) == [("object moved", 2), ("object vanished", 1)]
    assert "2 object moved, 1 object vanished" in flat(terminal(run))
    for kind in ("deviation", "crash", "hang", "invalid-output"):
        classifier = run_document(findings=[{"labels": LABELS, "kind": kind}])
        assert named_kind(classifier.findings[0]) == ""
        assert "kind" not in terminal(classifier) + summary(classifier)


RATE = {
    "inputs": 50, "deviating": 1, "by_tie": 0, "tied": 0, "rate": 0.02, "low": 0.01, "high": 0.1,
    "harm": None, "harm_by_tie": None, "labelled": 0, "right": None,
}  # fmt: skip
PLAN = {
    "strategy": "random",
    "rng_seed": 0,
    "goal": {"find": "any", "ties": False},
    "within_db": 30,
}
NEARNESS = {
    "db": [{"at_least_db": 30, "seeds": 1, "share": 0.5}],
    "linf": [{"at_most_levels": 8, "seeds": 1, "share": 0.5}],
    "area": 0.25,
}


def run_in(pair: dict[str, Any], **fields: Any) -> RunDocument:
    """A run with one finding and all figures, whose inputs are of the domain of a pair."""
    found = {
        "labels": LABELS, "nearness_db": 31.5, "strength": 0.25,
        "probabilities": {"original": [0.9, 0.1], "device": [0.3, 0.7]},
        "file": "findings/000001.wav", "seed_file": "seeds/000001.wav",
    }  # fmt: skip
    unmutated = {"seeds": RATE, "test": RATE}
    return run_document(
        pair=pair, plan=PLAN, unmutated=unmutated, nearness=NEARNESS, findings=[found], **fields
    )


@pytest.mark.parametrize(
    ("pair", "one"),
    [
        ({}, "image"),
        ({"domain": "image"}, "image"),
        ({"domain": "audio"}, "sound"),
        ({"domain": "array"}, "array"),
        ({"domain": "smells"}, "input"),
    ],
)
def test_lines_name_the_inputs_of_the_domain(pair: dict[str, Any], one: str) -> None:
    run = run_in(pair)
    assert input_words(run.pair).one == one
    assert unmutated_lines(run)[1][0] == f"unmutated test {one}s"


@pytest.mark.parametrize("fields", [{}, {"replay": REPLAY}], ids=["search", "replay"])
@pytest.mark.parametrize("domain", ["audio", "array", "smells"])
def test_no_report_names_an_image(domain: str, fields: dict[str, Any], tmp_path: Path) -> None:
    run = run_in({"domain": domain}, **fields)
    told = _message(run, tmp_path, 0.5, 0.1, run.findings[0])
    assert f"{input_words(run.pair).one}: {tmp_path / 'findings/000001.wav'}" in told
    table = run_csv(run)
    for text in (terminal(run), summary(run), junit(run), table, told.replace(str(tmp_path), "")):
        for word in ("image", "pixel", "gray"):
            assert word not in text.lower()


@pytest.fixture(scope="module")
def of_sounds(run: Run) -> RunDocument:
    """A run whose distances are by SNR, of which the nearest is 23.4 dB."""
    near = dict(run.document["nearness"])
    shares = [{**one, "at_least_db": one["at_least_db"] - 10.0} for one in near["db"]]
    copy: Document = {
        **run.document,
        "pair": {**run.document["pair"], "domain": "audio"},
        "findings": [{**one, "nearness_db": 23.4} for one in run.document["findings"]],
        "deviating_seeds": [
            {**one, "nearness_db": None} for one in run.document["deviating_seeds"]
        ],
        "nearness": {**near, "measure": "SNR", "curve": [0.0, 50.0], "db": shares},
    }
    return from_json(copy)


def test_every_report_names_the_measure_of_distances(of_sounds: RunDocument) -> None:
    lines = dict(nearness_lines(of_sounds))
    assert lines["seeds within an SNR of"].endswith(" 40 dB 4%")
    assert "seeds within an SNR of" in terminal(of_sounds)
    assert " 23 " in terminal(of_sounds)
    assert "| 23 |" in summary(of_sounds)
    assert "distance to the seed: SNR 23.4 dB" in junit(of_sounds)
    assert "PSNR" not in junit(of_sounds)
    rows = csv.DictReader(io.StringIO(run_csv(of_sounds)))
    assert {row["nearness_db"] for row in rows if row["list"] == "finding"} == {"23.4"}


@pytest.mark.slow
def test_the_curves_of_a_page_are_against_the_measure(of_sounds: RunDocument) -> None:
    charts = {chart.title: chart for chart in charts_of(of_sounds)}
    near, largest = charts["Nearness to the seeds"], charts["Largest change"]
    assert "SNR to the seed, dB" in near.svg
    assert "PSNR" not in near.svg
    assert near.rows[0][0] == "10 dB"
    assert "an SNR of at least" in near.words
    assert "L∞ to the seed, levels" in largest.svg


@pytest.mark.slow
def test_the_figure_of_several_runs_names_what_they_share(
    of_sounds: RunDocument, tmp_path: Path
) -> None:
    figure = tmp_path / "figure.svg"
    sound, image = run_in({"domain": "audio"}), run_in({})
    for runs, levels in (({"a": image}, "gray levels"), ({"a": sound, "b": sound}, "levels")):
        draw_nearness(runs, figure)
        assert f">L∞ to the seed, {levels}<" in figure.read_text(encoding="utf-8")
    figure.unlink()
    with pytest.raises(UserError, match="sound measures nearness by SNR, image by PSNR") as caught:
        draw_nearness({"image": image, "sound": of_sounds}, figure)
    assert "\n" not in str(caught.value)
    assert not figure.exists()


COVERAGE: dict[str, Any] = {
    "thresholds": [0, 0.5],
    "seeds": 1,
    "findings": 1,
    "others": 2,
    "device_queries": 0,
    "arms": [
        {
            "arm": "twin", "neurons": 1184,
            "seeds": [0.5, 0.25], "with_findings": [0.625, 0.25], "with_others": [0.75, 0.25],
        },
    ],
    "notes": ["the device is left out: it <b>captures</b> no tensor"],
}  # fmt: skip


@pytest.mark.slow
def test_every_report_shows_neuron_coverage_and_what_it_does_not_mean(
    document: Document, run: Run
) -> None:
    read = from_json({**document, "coverage": COVERAGE})
    table, sentences = coverage_blocks(read)
    assert isinstance(table, Table)
    assert isinstance(sentences, Sentences)
    assert table.header == ("neuron coverage", "inputs", "> 0", "> 0.5")
    assert table.rows == [
        ("twin, 1,184 neurons", "1 seed", "50.0%", "25.0%"),
        ("twin, 1,184 neurons", "1 seed + 1 finding", "62.5%", "25.0%"),
        ("twin, 1,184 neurons", "1 seed + 2 other seeds", "75.0%", "25.0%"),
    ]
    assert sentences.sentences == [
        "The device is left out: it <b>captures</b> no tensor.",
        NOT_MEANT,
    ]
    page = run_html(read, RunDirectory(run.folder), {})
    for shown in (terminal(read, 400), summary(read), page):
        assert "1 seed + 2 other seeds" in shown
        assert NOT_MEANT in shown
    assert "<b>captures" not in page + summary(read)
    without = from_json(document)
    assert coverage_blocks(without) == []
    assert NOT_MEANT not in summary(without)


def test_without_findings_the_coverage_of_the_seeds_stands_alone(document: Document) -> None:
    (arm,) = COVERAGE["arms"]
    alone = {**arm, "with_findings": None, "with_others": None}
    counts = {"findings": 0, "others": 0, "seeds": 6, "arms": [alone]}
    read = from_json({**document, "coverage": {**COVERAGE, **counts}})
    table, sentences = coverage_blocks(read)
    assert isinstance(table, Table)
    assert isinstance(sentences, Sentences)
    assert [row[1] for row in table.rows] == ["6 seeds"]
    assert sentences.sentences[0].startswith("No search ended in a finding")


CLASSES = {
    "form": "classes", "head": "kind", "classes": ["cat"], "probabilities": {}, "decisions": {},
}  # fmt: skip
ALIVE = {
    "form": "threshold", "head": "alive", "sides": ["no", "yes"], "threshold": 0.5,
    "scores": {"original": 0.7, "device": 0.3}, "decisions": {"original": 1, "device": 0},
}  # fmt: skip
FAR_APART = {
    "form": "values", "head": "", "measure": "distance", "distance": 2.0, "tolerance": 0.5,
    "compared": ["original", "device"], "size": 1, "names": ["one"], "values": {},
}  # fmt: skip


def test_a_score_beside_a_head_of_classes_is_in_the_table() -> None:
    run = structured_run("detection", structured_finding("detection", answers=[CLASSES, ALIVE]))
    (row,) = csv.DictReader(io.StringIO(run_csv(run)))
    assert (row["threshold"], row["original_score"], row["device_score"]) == ("0.5", "0.7", "0.3")


def test_a_column_of_values_says_nothing_of_masks() -> None:
    of_values, of_masks = (
        structured_finding("segmentation", answers=[view], seed_id=n)
        for n, view in enumerate((FAR_APART, MASKS))
    )
    run = structured_run("segmentation", of_values, of_masks)
    cells = {
        entry.seed_id: [answer_cell(run, entry, column) for column in answer_columns(run.findings)]
        for entry in run.findings
    }
    assert cells == {0: ["2", "4"], 1: ["–", "–"]}
