"""The summary of a CI job: short, true, and read as nothing but what it says."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from markdown_it import MarkdownIt

from documents import REPLAY, Document
from edgeflare.report.markdown_summary import ROWS, summary
from edgeflare.run.run_document import from_json


@pytest.fixture
def document(run: Any) -> Document:
    copy: Document = deepcopy(run.document)
    return copy


def html(document: Document) -> str:
    """The summary as GitHub's flavour of Markdown is read."""
    return str(MarkdownIt("commonmark").enable("table").render(summary(from_json(document))))


def test_it_says_what_was_found(document: Document) -> None:
    text, totals = summary(from_json(document)), document["totals"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    assert f"**{totals['findings']} of {searched} seeds**" in text
    assert f"{totals['deviating_seeds']} deviate as they are" in text
    assert text.index("Seeds that already deviate") < text.index("Findings, the strongest first")
    assert document["devices"][0]["provenance"]["runtime_version"] in text


def test_its_tables_are_tables(document: Document) -> None:
    page = html(document)
    entries = len(document["findings"]) + len(document["deviating_seeds"])
    assert page.count("<table>") == 4
    assert page.count("<tr>") == 4 + 10 + entries + 3
    assert "|" not in page


def test_the_strongest_come_first_and_the_rest_is_counted(document: Document) -> None:
    (first, *_) = document["findings"]
    document["findings"] = [
        {**first, "seed_id": 900 + n, "strength": n / 100} for n in range(ROWS + 5)
    ]
    text = summary(from_json(document))
    shown = [f"| {900 + n} |" for n in reversed(range(5, ROWS + 5))]
    places = [text.index(start) for start in shown]
    assert places == sorted(places)
    assert "| 904 |" not in text
    assert "and 5 more" in text


@pytest.mark.parametrize(
    "name",
    ["a|b", "*a*", "`a`", "<script>a</script>", "[a](http://b)", "a\nb", "a_b_c", "\\", "&lt;"],
)
def test_names_are_not_read_as_markup(document: Document, name: str) -> None:
    document["classes"] = [name] * 3
    document["pair"]["name"] = name
    document["warnings"] = [name]
    page, plain = html(document), html(deepcopy(document) | {"classes": ["x"] * 3})
    assert page.count("<td>") == plain.count("<td>")
    for tag in ("<em>", "<code>", "<script", "<a "):
        assert tag not in page
    shown = " ".join(name.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"EdgeFlare: {shown}</h2>" in page
    assert f"<td>{shown}</td>" in page


def test_a_crash_has_no_label(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"kind": "crash", "strength": None}
    entry["labels"]["device"] = None
    text = summary(from_json(document))
    rows = [line for line in text.splitlines() if line.startswith(f"| {entry['seed_id']} |")]
    assert "| crash | crash | – |" in rows[0]
    assert "1 crash" in text


def test_a_run_that_found_nothing(document: Document) -> None:
    document["totals"] |= {
        "findings": 0, "deviating_seeds": 0,
        "mean_queries": None, "median_queries": None, "mean_device_queries": None,
    }  # fmt: skip
    text = summary(from_json({**document, "findings": [], "deviating_seeds": []}))
    assert "No input was found on which original and device decide differently." in text
    assert "–" in text


def test_gradients_are_counted_where_there_are_any(document: Document) -> None:
    assert "white box" not in summary(from_json(document))
    document["totals"] |= {"host_gradients": 1234, "translated_evaluations": 5678}
    row = "| white box | 1,234 host gradients, 5,678 translated evaluations |"
    assert row in summary(from_json(document))


def test_a_stopped_run_and_its_warnings_are_said(document: Document) -> None:
    text = summary(
        from_json({**document, "stopped_by": "interrupt", "warnings": ["check the scale"]})
    )
    assert "it was stopped before its end (interrupt)" in text
    assert "> [!WARNING]\n> check the scale" in text


def test_the_order_says_that_what_is_as_near_as_asked_for_comes_first(document: Document) -> None:
    assert "### Findings, the strongest first" in summary(from_json(document))
    document["findings"][0]["within"] = False
    asked = "### Findings, those as near and strong as asked for first, then the strongest\n"
    assert asked in summary(from_json(document))


def test_a_stopped_run_that_found_nothing_has_no_check_mark(document: Document) -> None:
    found, *_ = document["findings"]
    document |= {"findings": [], "deviating_seeds": [], "unverified": [found]}
    document["totals"] |= {"findings": 0, "deviating_seeds": 0}
    text = summary(from_json({**document, "stopped_by": "error"}))
    assert "⚠️ No input was found" in text
    assert "### Not verified yet" in text
    assert "✅ No input was found" in summary(from_json({**document, "stopped_by": None}))


def test_a_replay_says_what_became_of_its_inputs(document: Document) -> None:
    mended, *still = document["findings"]
    replay = {**REPLAY, "mended": [mended]}
    document |= {"findings": still, "flaky": [], "unverified": [], "replay": replay}
    count = len(still) + len(document["deviating_seeds"])
    text = summary(from_json(document))
    assert f"❌ **{count}** of" in text
    assert "| mended | 1 |" in text
    for word in ("led to an input", "queries", "already deviate"):
        assert word not in text
    document["replay"] |= {"baseline": "runs/before", "new": []}
    assert f"✅ **{count}** of" in summary(from_json(document))
    document["replay"]["new"] = [still[0]["seed_id"]]
    assert "**1** are new." in summary(from_json(document))
    assert html(document).count("<table>") == 4
    assert "still" not in summary(from_json(document))
