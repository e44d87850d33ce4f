"""A run as tables: readable in 80 columns, whatever the run holds."""

from __future__ import annotations

import io
import re
from copy import deepcopy
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from documents import Document
from edgeflare.report.markdown_summary import summary
from edgeflare.report.run_terminal import ROWS, print_run
from edgeflare.run.run_document import from_json


def printed(document: Document, width: int = 80) -> str:
    """What is printed, each line of it within the width."""
    file = io.StringIO()
    print_run(Console(file=file, width=width), from_json(document), "runs/laboratory")
    text = file.getvalue()
    assert all(cell_len(line) <= width for line in text.splitlines())
    return text


@pytest.fixture
def document(run: Any) -> Document:
    """The run's document, for the test to change."""
    copy: Document = deepcopy(run.document)
    copy["devices"][0]["provenance"] |= {"delegated_nodes": 3, "total_nodes": 11}
    return copy


@pytest.mark.slow
def test_it_says_what_was_found_and_where(document: Document) -> None:
    text = printed(document)
    totals = document["totals"]
    assert f"{totals['seeds']}, of which {totals['deviating_seeds']} already deviate" in text
    searched = totals["seeds"] - totals["deviating_seeds"]
    assert f"{totals['findings']} of {searched}" in text
    assert "Everything is in runs/laboratory." in text
    assert "warning" not in text
    assert "stopped" not in text


def test_seeds_that_already_deviate_come_first(document: Document) -> None:
    text = printed(document)
    assert text.index("Seeds that already deviate") < text.index("Findings, the strongest first")


def test_the_strongest_finding_comes_first_and_the_rest_is_counted(document: Document) -> None:
    (entry, *_) = document["findings"]
    entries = [{**entry, "seed_id": 900 + n, "strength": n / 100} for n in range(ROWS + 5)]
    text = printed({**document, "findings": entries})
    assert "and 5 more" in text
    shown = [f"{900 + n}" for n in reversed(range(5, ROWS + 5))]
    assert [word for line in text.splitlines() for word in line.split()[:1] if word in shown] == (
        shown
    )
    assert " 904 " not in text


def test_classes_without_names_are_numbers(document: Document) -> None:
    (entry, *_) = document["findings"]
    entry["labels"] = {"original": 941, "twin": 942, "device": 943}
    text = printed({**document, "classes": [], "findings": [entry]})
    assert all(f" {label} " in text for label in (941, 942, 943))


@pytest.mark.parametrize(
    "name",
    [
        "Siberian husky, sled dog, of the far north, photographed in winter",
        "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen",
        "长长长长长长长长长长长长长长长长长长长长长长长长长",
    ],
)
@pytest.mark.parametrize("width", [80, 120])
def test_long_class_names_stay_within_the_terminal(
    document: Document, name: str, width: int
) -> None:
    text = printed({**document, "classes": [f"{name} {n}" for n in range(3)]}, width)
    assert name[:4] in text


@pytest.mark.parametrize("name", ["[/b]", "[bold]dog", "cat [/]", ":dog:"])
def test_class_names_are_shown_as_they_are(document: Document, name: str) -> None:
    assert name in printed({**document, "classes": [name] * 3}, 120)


def test_common_words_are_not_cut_in_80_columns(document: Document) -> None:
    text = printed({**document, "classes": ["Ankle boot", "T-shirt", "Pullover"]})
    table = text[text.index("Findings, the strongest first") :]
    assert "…" not in table
    assert " Pullover " in table
    assert " compression " in table


def test_of_several_devices_each_entry_says_its_own(document: Document) -> None:
    (one,) = document["devices"]
    assert "  on  " not in printed(document)
    document["devices"] = [{**one, "name": "a phone"}, {**one, "name": "a board"}]
    first, second, *_ = document["findings"]
    first |= {"device": "a board", "strength": 0.9}
    second |= {"device": "a phone", "strength": 0.8}
    text = printed({**document, "findings": [first, second], "deviating_seeds": []})
    assert "1 a phone: " in text
    assert "2 a board: " in text
    head, *lines = text[text.index("  on  ") :].splitlines()
    assert head.split()[0] == "on"
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    at = [row[-5] for row in rows]  # before cause, strength, queries and L2
    assert at == ["2", "1"]


def test_a_crash_has_no_label_and_no_strength(document: Document) -> None:
    (entry, *_) = document["findings"]
    entry |= {"kind": "crash", "cause": None, "strength": None}
    entry["labels"]["device"] = None
    text = printed({**document, "findings": [entry]})
    assert "1 crash" in text
    (row,) = [line.split() for line in text.splitlines() if line.split()[4:5] == ["crash"]]
    assert row[3:6] == ["crash", "crash", str(entry["queries"])]


def test_a_crash_comes_first_and_is_called_one_whatever_its_cause(document: Document) -> None:
    crash, *others = document["findings"]
    crash |= {"kind": "crash", "cause": "kernel", "strength": None}
    crash["labels"]["device"] = None
    shown = {**document, "deviating_seeds": [], "findings": [*others, crash]}
    text = printed(shown)
    assert "1 crash" in text
    table = text[text.index("Findings, the strongest first") :].splitlines()
    (first, *_) = [words for line in table if (words := line.split()) and words[0].isdigit()]
    assert first[0] == str(crash["seed_id"])
    assert "crash" in first


def test_what_is_flaky_or_not_verified_has_a_table_of_its_own(document: Document) -> None:
    first, second, *_ = document["findings"]
    second |= {"labels": {}, "probabilities": {}, "tied": {}, "cause": None, "strength": None}
    flaky = {**document, "flaky": [first], "unverified": [second], "stopped_by": "interrupt"}
    text = printed(flaky)
    assert "Flaky: found once" in text
    assert "Not verified yet" in text
    assert "stopped by Ctrl-C before its end" in text
    assert "the same command with --out runs/laboratory --resume goes on" in " ".join(text.split())


def test_a_run_that_found_nothing(document: Document) -> None:
    totals = document["totals"]
    totals |= {"findings": 0, "deviating_seeds": 0, "success_rate": 0.0, "wall_seconds": 0.0}
    totals |= {"mean_queries": None, "median_queries": None, "mean_device_queries": None}
    text = printed({**document, "findings": [], "deviating_seeds": []})
    assert "– mean, – median" in text
    assert "Findings" not in text


def test_searching_and_refining_are_apart(document: Document) -> None:
    """The figures of a run of a keyword model that searched for seconds and shrank for minutes."""
    document["totals"] |= {
        "queries": 597,
        "device_queries": 150,
        "wall_seconds": 8.0,
        "refine_seconds": 198.0,
        "refined": 40,
        "refine_queries": 24200,
        "refine_device_queries": 420,
        "shrink_queries": 24160,
        "shrink_device_queries": 380,
        "shrink_seconds": 198.0,
    }
    said = {
        "searching": "597 queries, 150 on the device, 8.0 s",
        "refining": "24,200 queries, 420 on the device, 198.0 s: shrinking 24,160 in 198.0 s",
    }
    text = printed(document, 120)
    written = summary(from_json(document))
    for name, line in said.items():
        assert re.search(rf"^{name} +{re.escape(line)} *$", text, re.MULTILINE)
        assert f"| {name} | {line} |" in written


def test_gradients_are_counted_where_there_are_any(document: Document) -> None:
    assert "white box" not in printed(document)
    document["totals"] |= {"host_gradients": 1234, "translated_evaluations": 5678}
    line = next(one for one in printed(document).splitlines() if one.startswith("white box"))
    assert "1,234 host gradients, 5,678 translated evaluations" in line


def test_it_names_the_folder_that_stays_on_a_device(document: Document) -> None:
    line = "agent and models stay on laboratory 0 in ~/.cache/edgeflare/device"
    assert line not in printed(document)
    document["devices"][0]["provenance"]["cache"] = "~/.cache/edgeflare/device"
    assert line in printed(document)


def test_warnings_are_shown(document: Document) -> None:
    lines = ["the original's [outputs] hardly vary: check scale, mean and std"]
    assert f"warning: {lines[0]}" in printed({**document, "warnings": lines})
