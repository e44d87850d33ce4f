"""A run as tables, in a terminal of 80 columns and as the summary of a CI job."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console

from documents import REPLAY, Document
from edgeflare.pages.markdown import markdown_page
from edgeflare.report.run_page import ROWS, alike_entries, print_run, run_page
from edgeflare.run.run_document import from_json


def printed(document: Document, width: int = 80) -> str:
    """What is printed, each line of it but the command at its end within the width."""
    file = io.StringIO()
    console = Console(file=file, width=width)
    print_run(console, from_json(document), "runs/laboratory")
    text = file.getvalue()
    assert all(cell_len(line) <= width for line in text.splitlines()[:-1])
    return text


def summary(document: Document) -> str:
    return markdown_page(run_page(from_json(document)))


def html(document: Document) -> str:
    """The summary as GitHub's flavour of Markdown is read."""
    return str(MarkdownIt("commonmark").enable("table").render(summary(document)))


def both(document: Document) -> tuple[str, str]:
    """What terminal and summary say, with single spaces between the cells of a row."""
    texts = (printed(document, 120), summary(document).replace("| ", ""))
    terminal, told = (
        "\n".join(" ".join(one.split()) for one in text.splitlines()) for text in texts
    )
    return terminal, told


def rows(text: str) -> list[list[str]]:
    """The words of the rows of entries, whose first is a seed id."""
    words = (line.split() for line in text[text.index("Figures") :].splitlines())
    return [one for one in words if one and one[0].isdigit()]


def test_both_say_what_was_found_and_where(document: Document) -> None:
    totals = document["totals"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    text = printed(document)
    assert f"{totals['seeds']}, of which {totals['deviating_seeds']} already deviate" in text
    assert f"{totals['findings']} of {searched}" in text
    assert (
        "Everything is in runs/laboratory; see it: edgeflare report runs/laboratory --html" in text
    )
    assert "warning" not in text
    assert "stopped" not in text
    told = summary(document)
    assert f"{totals['findings']} of {searched} seeds led to" in told
    assert f"{totals['deviating_seeds']} deviates as it is" in told
    assert document["devices"][0]["provenance"]["runtime_version"] in told
    for one in (text, told):
        assert one.index("Seeds that already deviate") < one.index("The strongest first")


def test_the_tables_of_the_summary_are_tables(document: Document) -> None:
    page = html(document)
    run = from_json(document)
    entries = sum(
        len(alike_entries(run, run.lists[key])) for key in ("findings", "deviating_seeds")
    )
    assert page.count("<table>") == 4
    assert page.count("<tr>") == 4 + 12 + entries + 3
    assert "|" not in page


def test_the_strongest_come_first_and_the_rest_is_counted(document: Document) -> None:
    (first, *_) = document["findings"]
    document["findings"] = [
        {**first, "seed_id": 900 + n, "strength": n / 100, "labels": labels_of(n)}
        for n in range(ROWS + 5)
    ]
    for text in both(document):
        shown = [int(row[0]) for row in rows(text) if int(row[0]) >= 900]
        assert shown == [900 + n for n in reversed(range(5, ROWS + 5))]
        assert f"the first {ROWS} of {ROWS + 5}" in text


def labels_of(number: int) -> dict[str, int]:
    return {"original": number % 3, "twin": number // 3 % 3, "device": number // 9}


def test_findings_of_which_the_same_is_said_share_a_row(document: Document) -> None:
    """The strongest is the example; one that another arm decides otherwise has its own row."""
    (first, *_) = document["findings"]
    document["findings"] = [
        {**first, "seed_id": 900 + n, "strength": n / 100, "labels": labels_of(n // 4)}
        for n in range(5)
    ]
    for text in both(document):
        shown = [row for row in rows(text) if int(row[0]) >= 900]
        assert [row[0] for row in shown] == ["904", "903"]
        alike = [
            row[row.index(strength) - 1]
            for row, strength in zip(shown, ("0.040", "0.030"), strict=True)
        ]
        assert alike == ["1", "4"]
        assert "5 in 2 rows" in text


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
def test_class_names_are_shown_in_the_terminal_as_they_are(document: Document, name: str) -> None:
    assert name in printed({**document, "classes": [name] * 3}, 120)


@pytest.mark.parametrize(
    "name",
    ["a|b", "*a*", "`a`", "<script>a</script>", "[a](http://b)", "a\nb", "a_b_c", "\\", "&lt;"],
)
def test_names_are_not_read_as_markup_in_the_summary(document: Document, name: str) -> None:
    document["classes"] = ["x"] * 3
    plain = html(document)
    document["classes"] = [name] * 3
    document["pair"]["name"] = name
    document["warnings"] = [name]
    page = html(document)
    assert page.count("<td>") == plain.count("<td>")
    for tag in ("<em>", "<code>", "<script", "<a "):
        assert tag not in page
    shown = " ".join(name.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"EdgeFlare report: {shown}</h2>" in page
    assert f"<td>{shown}</td>" in page


def test_common_words_are_not_cut_in_80_columns(document: Document) -> None:
    text = printed({**document, "classes": ["Ankle boot", "T-shirt", "Pullover"]})
    table = text[text.index("The strongest first") :]
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
    assert "device 1 compressed.tflite; a phone: " in " ".join(text.split())
    assert "device 2 compressed.tflite; a board: " in " ".join(text.split())
    at = [row[-5] for row in rows(text) if len(row) > 6]  # before cause, strength, queries and L2
    assert at == ["2", "1"]


def test_a_crash_comes_first_without_label_and_strength_whatever_its_cause(
    document: Document,
) -> None:
    *others, crash = document["findings"]
    crash |= {"kind": "crash", "cause": "kernel", "strength": None}
    crash["labels"]["device"] = None
    document |= {"findings": [*others, crash], "deviating_seeds": []}
    for text in both(document):
        assert "1 crash" in text
        first = rows(text)[0]
        assert first[0] == str(crash["seed_id"])
        assert first[3:5] == ["crash", "crash"]
    assert "| crash | crash | 1 | – |" in summary(document)


def test_what_is_flaky_or_not_verified_has_a_table_of_its_own(document: Document) -> None:
    first, second, *_ = document["findings"]
    second |= {"labels": {}, "probabilities": {}, "tied": {}, "cause": None, "strength": None}
    flaky = {**document, "flaky": [first], "unverified": [second], "stopped_by": "interrupt"}
    text = printed(flaky)
    assert "Flaky" in text
    assert "Not verified yet" in text
    assert "stopped by Ctrl-C before its end" in text
    told = " ".join(text.split())
    assert "the same command with --out runs/laboratory --resume goes on" in told


def test_a_run_that_found_nothing(document: Document) -> None:
    """The summary has a check mark unless the run was stopped."""
    found, *_ = document["findings"]
    document["totals"] |= {
        "findings": 0, "deviating_seeds": 0, "success_rate": 0.0, "wall_seconds": 0.0,
        "mean_queries": None, "median_queries": None, "mean_device_queries": None,
    }  # fmt: skip
    document |= {"findings": [], "deviating_seeds": []}
    text = printed(document)
    assert "queries for a finding –" in " ".join(text.split())
    assert "Findings" not in text
    told = summary(document)
    assert "✅ No input was found on which original and device decide differently." in told
    assert "–" in told
    told = summary({**document, "unverified": [found], "stopped_by": "error"})
    assert "⚠️ 1 input was found on which original and device decide differently, and none" in told
    assert "### Not verified yet" in told


def test_a_finding_that_was_not_refined_may_count_yet(document: Document) -> None:
    for entry in document["findings"]:
        entry |= {"within": False, "strong": False, "kind": "deviation", "cause": "kernel"}
    document |= {"deviating_seeds": []}
    document["totals"] |= {
        "refined": 0, "refine_queries": 479, "refine_device_queries": 61, "refine_seconds": 0.9,
        "shrink_queries": 0, "shrink_device_queries": 0, "shrink_seconds": 0.0,
    }  # fmt: skip
    assert "; none of it counts." in summary(document)
    told = summary({**document, "stopped_by": "interrupt"})
    assert "; none of it counts yet." in told
    assert "| 479 queries, 61 on the device, 0.9 s |" in told


def test_searching_and_refining_are_apart(document: Document) -> None:
    """The figures of a run of a keyword model that searched for seconds and shrank for minutes."""
    document["totals"] |= {
        "queries": 597, "device_queries": 150, "wall_seconds": 8.0, "refine_seconds": 198.0,
        "refined": 40, "refine_queries": 24200, "refine_device_queries": 420,
        "shrink_queries": 24160, "shrink_device_queries": 380, "shrink_seconds": 198.0,
    }  # fmt: skip
    searching = "searching 597 queries, 150 on the device, 8.0 s"
    refining = "refining 24,200 queries, 420 on the device, 198.0 s: shrinking 24,160 in 198.0 s"
    for text in both(document):
        for line in (searching, refining):
            assert re.search(rf"^{re.escape(line)}( \|)?$", text, re.MULTILINE)


def test_gradients_are_counted_where_there_are_any(document: Document) -> None:
    line = "white box 1,234 host gradients, 5,678 translated evaluations"
    assert not any("white box" in text for text in both(document))
    document["totals"] |= {"host_gradients": 1234, "translated_evaluations": 5678}
    assert all(line in text for text in both(document))
    document["totals"] |= {
        "refined": 2, "refine_queries": 80, "refine_device_queries": 6, "refine_seconds": 2.0,
        "refine_host_gradients": 50, "refine_translated_evaluations": 1160,
    }  # fmt: skip
    line = (
        "refining 80 queries, 6 on the device, 50 host gradients, 1,160 translated evaluations,"
        " 2.0 s"
    )
    assert all(line in text for text in both(document))
    document["totals"] |= {"refine_queries": 1, "refine_host_gradients": 1}
    line = "refining 1 query, 6 on the device, 1 host gradient, 1,160 translated evaluations"
    assert all(line in text for text in both(document))


def test_the_terminal_names_the_folder_that_stays_on_a_device(document: Document) -> None:
    line = "Agent and models stay on laboratory 0 in ~/.cache/edgeflare/device"
    assert line not in printed(document)
    document["devices"][0]["provenance"]["cache"] = "~/.cache/edgeflare/device"
    assert line in printed(document)


def test_a_stopped_run_and_its_warnings_are_said(document: Document) -> None:
    line = "the original's [outputs] hardly vary: check scale, mean and std"
    document |= {"stopped_by": "interrupt", "warnings": [line]}
    assert f"warning: {line}" in printed(document)
    told = "it was stopped by Ctrl-C before its end; the same command with --out RUN --resume"
    assert told in summary(document).replace("\\", "")
    assert "> [!WARNING]\n> the original's \\[outputs\\] hardly vary" in summary(document)


def test_the_order_says_that_what_is_as_near_as_asked_for_comes_first(document: Document) -> None:
    assert "**The strongest first**" in summary(document)
    document["findings"][0]["within"] = False
    asked = "**Those as near and strong as asked for first, then the strongest**\n"
    assert asked in summary(document)


def test_a_replay_says_what_became_of_its_inputs(document: Document) -> None:
    mended, *still = document["findings"]
    replay: dict[str, Any] = {**REPLAY, "mended": [mended]}
    document |= {"findings": still, "flaky": [], "unverified": [], "replay": replay}
    count = len(still) + len(document["deviating_seeds"])
    text = summary(document)
    assert f"❌ {count} of" in text
    assert f"| mended | 1 (seed {mended['seed_id']}) |" in text
    for word in ("led to an input", "queries", "already deviate"):
        assert word not in text
    replay["mended"] = [mended, {**mended, "seed_id": 99}]
    replay["changed_kind"] = [
        {"seed_id": seed_id, "before": "kernel", "now": "mixed"} for seed_id in range(18)
    ]
    assert f"| mended | 2 (seeds {mended['seed_id']}, 99) |" in summary(document)
    assert "seed 15: kernel → mixed; 2 more |" in summary(document)
    replay |= {"mended": [mended], "changed_kind": [], "baseline": "runs/before", "new": []}
    assert f"✅ {count} of" in summary(document)
    replay["new"] = [still[0]["seed_id"]]
    assert "; 1 is new since before." in summary(document)
    assert html(document).count("<table>") == 4
    assert "still" not in summary(document)


def test_a_run_directory_of_any_name_is_that_of_who_has_it(document: Document) -> None:
    """Only what is passed on tells no folders, whatever the run directory is called."""
    document |= {"replay": {**REPLAY, "baseline": "runs/before"}, "flaky": [], "unverified": []}
    shown, passed_on = (run_page(from_json(document), where=where) for where in ("RUN", None))
    assert "since runs/before" in shown.lead
    assert "since before" in passed_on.lead
