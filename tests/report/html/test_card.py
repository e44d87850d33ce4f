"""An entry as a card: who decided what and how surely, in the form of each kind of task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from documents import Document, finding, run_document
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.pages.answers.classes import ClassRow, ClassTable
from edgeflare.pages.page_allowance import PageAllowance
from edgeflare.report.html.card import EntryCard, make_card
from edgeflare.run.run_directory import RunDirectory


def entry_of(directory: RunDirectory, **changes: Any) -> Document:
    image = directory.store_input("findings", 3, np.zeros((4, 4, 1), np.uint8), ImageDomain()).path
    return {
        "seed_id": 3, "seed_label": 1, "kind": "deviation", "cause": "mixed", "strength": 0.2,
        "labels": {"original": 0, "twin": 1, "device": 2},
        "probabilities": {
            "original": [0.5, 0.1, 0.2, 0.1, 0.06, 0.03997, 0.00003],
            "twin": [0.2, 0.5, 0.1, 0.1, 0.05, 0.05, 0.0],
            "device": [0.1, 0.2, 0.6, 0.02, 0.03, 0.05, 0.0],
        },
        "operators": [], "file": image, "seed_file": image, "refined": None,
        "distortion": {"linf": 0.0},
        **changes,
    }  # fmt: skip


@pytest.fixture
def directory(tmp_path: Any) -> RunDirectory:
    return RunDirectory(tmp_path)


def card(directory: RunDirectory, find: str = "any", **changes: Any) -> EntryCard:
    document = run_document(classes=["ant", "bee", "cat"], find=find)
    entry = finding(**entry_of(directory, **changes))
    return make_card(document, entry, directory, PageAllowance(10_000))


def table(made: EntryCard) -> ClassTable:
    (block,) = made.answers
    assert isinstance(block, ClassTable)
    return block


def rows(made: EntryCard) -> tuple[ClassRow, ...]:
    return table(made).rows


def test_it_names_the_decisions(directory: RunDirectory) -> None:
    made = card(directory)
    assert made.title == "ant → cat"
    assert made.words == "original: ant; twin: bee; device: cat"
    assert made.truth == "Labelled bee."
    assert made.labels == {0: "ant", 1: "bee", 2: "cat"}
    assert made.sort == "mixed"


def test_a_search_for_kernels_compares_the_twin(directory: RunDirectory) -> None:
    made = card(directory, "kernel", labels={"twin": 1, "device": 0}, seed_label=None)
    assert made.title == "bee → ant"
    assert made.words == "twin: bee; device: ant"
    assert made.truth is None
    assert card(directory, seed_target="two objects").truth == "Target: two objects."


def test_the_rows_are_the_first_five_of_each_arm(directory: RunDirectory) -> None:
    made = card(directory)
    assert table(made).arms == ("original", "twin", "device")
    assert [row.name for row in rows(made)] == ["cat", "ant", "bee", "3", "4", "5"]
    for row in rows(made)[:3]:
        assert sum(cell.top for cell in row.cells) == 1
    assert [cell.percent for cell in rows(made)[1].cells] == pytest.approx([50, 20, 10])
    assert [cell.top for cell in rows(made)[1].cells] == [True, False, False]


def test_what_is_all_but_impossible_is_left_out_unless_it_was_decided(
    directory: RunDirectory,
) -> None:
    sure = {"original": [1.0, 0.0, 0.0], "device": [0.0002, 0.0002, 0.0001]}
    made = card(directory, labels={"original": 0, "device": 2}, probabilities=sure)
    assert [row.name for row in rows(made)] == ["ant", "cat"]


def test_an_arm_that_failed_has_no_column(directory: RunDirectory) -> None:
    given = {"original": [0.6, 0.4], "twin": [0.5, 0.5], "device": []}
    labels = {"original": 0, "twin": 0, "device": None}
    made = card(directory, kind="crash", cause="kernel", labels=labels, probabilities=given)
    assert table(made).arms == ("original", "twin")
    assert made.title == "ant → crash"
    assert made.sort == "crash"
    assert made.labels == {0: "ant"}


def test_repeated_operators_are_counted_in_order(directory: RunDirectory) -> None:
    made = card(directory, operators=["blur", "blur", "noise", "blur"])
    assert made.operators == ("blur ×2", "noise", "blur")


def test_an_entry_that_was_not_verified_has_nothing_but_its_pictures(
    directory: RunDirectory,
) -> None:
    made = card(directory, labels={}, probabilities={}, cause=None, strength=None)
    assert (made.title, made.words, made.answers, made.labels) == ("deviation", "", (), {})
    (group,) = made.shots
    assert len(group.shots) == 1
